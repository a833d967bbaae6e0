"""Strict JSON: what Python's parser takes and we do not."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifier.web.documents import MAX_DEPTH, BodyFault, BodyInvalid, read_json, read_object


def fault_of(raw: bytes) -> BodyFault:
    with pytest.raises(BodyInvalid) as caught:
        read_object(raw)
    return caught.value.code


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b"", "not_json"),
        (b"{", "not_json"),
        (b'{"a":1} x', "not_json"),
        (b'{"a":1}{"a":1}', "not_json"),
        (b"{'a':1}", "not_json"),
        (b'{"a":01}', "not_json"),
        (b'{"a":NaN}', "not_json"),
        (b'{"a":{"b":[-Infinity]}}', "not_json"),
        (b'{"a":"\x00"}', "not_json"),
        (b'{"a":"\n"}', "not_json"),
        (b'{"a":"\xff"}', "not_utf8"),
        (b'{"a":"\xed\xa0\x80"}', "not_utf8"),
        ('{"a":1}'.encode("utf-16"), "not_utf8"),
        (b'\xef\xbb\xbf{"a":1}', "byte_order_mark"),
        (b'{"a":1,"a":1}', "duplicate_key"),
        (b'{"a":1,"\\u0061":2}', "duplicate_key"),
        (b'{"x":[{"a":1,"a":2}]}', "duplicate_key"),
        (b'{"a":1e999}', "number_out_of_range"),
        (b'{"a":-1e999}', "number_out_of_range"),
        (b'{"a":' + b"9" * 5000 + b"}", "number_out_of_range"),
        (b'{"a":-' + b"9" * 19 + b"}", "number_out_of_range"),
        (b'{"a":"x\\u0000"}', "nul_character"),
        (b'{"x":[{"a\\u0000":1}]}', "nul_character"),
        (b'{"a":"a\\ud800@example.test"}', "lone_surrogate"),
        (b'{"a":["\\udc00\\ud800"]}', "lone_surrogate"),
        (b'{"\\ud800":1}', "lone_surrogate"),
        (b"[]", "not_an_object"),
        (b"null", "not_an_object"),
        (b'"text"', "not_an_object"),
    ],
)
def test_a_body_outside_the_agreed_form_is_refused_with_its_fault(raw: bytes, fault: str) -> None:
    assert fault_of(raw) == fault


def test_a_whole_surrogate_pair_is_one_character() -> None:
    assert read_object(b'{"a":"\\ud83d\\ude00"}') == {"a": "\N{GRINNING FACE}"}


def test_nesting_is_bounded_and_brackets_in_strings_do_not_count() -> None:
    inside = b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1)
    assert read_object(b'{"a":' + inside + b"}")
    assert fault_of(b'{"a":[' + inside + b"]}") == "too_deep"
    assert read_object(b'{"a":"' + b"[{" * 9000 + b'"}')
    assert read_object(b'{"a":"\\"' + b"[" * 90 + b'"}')


@pytest.mark.parametrize(
    "unit", [b"[", b'{"a":', b'"', b'"\\', b'\\"', b'"\\"', b'{"', b"[[]", b"[1,", b'["\\u0000",']
)
def test_no_body_of_full_size_takes_long(unit: bytes) -> None:
    for raw in (unit * (65_536 // len(unit)), b'"' + unit * (65_535 // len(unit))):
        began = time.thread_time()
        fault_of(raw)
        assert time.thread_time() - began < 0.5


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
)
documents = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text("abc\u00e9"), inner)
)


@given(document=documents, escaped=st.booleans())
def test_what_a_sound_sender_writes_is_read_unchanged(document: object, escaped: bool) -> None:
    assert read_json(json.dumps(document, ensure_ascii=escaped).encode()) == document


@given(raw=st.binary(max_size=200) | st.text().map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_give_a_document_or_a_named_fault(raw: bytes) -> None:
    outcome = "document"
    try:
        read_json(raw)
    except BodyInvalid as fault:
        outcome = fault.code
    assert outcome in {"document", *BodyFault}
