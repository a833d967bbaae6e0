"""The reset event: which documents are one, and when two are the same."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import babel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifier.domain.event import Absent, Given, Invalid, NoneThere, PolicyMode, ResetEvent
from notifier.domain.event_document import EventInvalid, EventRules, parse_event
from notifier.domain.regions import REGIONS

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
RULES = EventRules(86_400.0, lambda name, revision: (name, revision) == ("password-reset", "1"))

LEAST: dict[str, Any] = {
    "event_id": "evt-1",
    "reset_request_id": "req-1",
    "account_id": "acc-1",
    "requested_at": "2026-03-01T12:00:00Z",
    "expires_at": "2026-03-01T12:10:00Z",
    "template": {"id": "password-reset", "revision": "1"},
}
FULL: dict[str, Any] = LEAST | {
    "idempotency_key": "key-1",
    "ticket_id": "TICKET:1",
    "locale": "pt-BR",
    "policy": {
        "mode": "email_only",
        "reason_code": "self_service",
        "decision_id": "dec-1",
        "digest": "sha256:00ff",
        "inputs": {"email_consent": True, "sms_consent": False, "region": "GB"},
    },
    "destinations": {"email": "Ann@Example.test", "sms": "+44 7700 900123"},
    "supersedes_earlier": True,
    "correlation_id": "cor-1",
}


def parsed(document: dict[str, Any], rules: EventRules = RULES) -> ResetEvent:
    return parse_event(document, NOW, rules)


def changed(pointer: str, value: object, base: dict[str, Any] = FULL) -> dict[str, Any]:
    document = copy.deepcopy(base)
    *parents, last = pointer.strip("/").split("/")
    inner = document
    for parent in parents:
        inner = inner[parent]
    inner[last] = value
    return document


def faults_of(document: dict[str, Any], rules: EventRules = RULES) -> set[tuple[str, str]]:
    with pytest.raises(EventInvalid) as caught:
        parsed(document, rules)
    return {(problem.pointer, problem.code) for problem in caught.value.problems}


def test_the_least_event_gets_the_defaults() -> None:
    event = parsed(LEAST)
    assert event.idempotency_key == "evt-1"
    assert event.mode is PolicyMode.EMAIL_THEN_SMS
    assert (event.email, event.sms) == (Absent(), Absent())
    assert (event.email_consent, event.sms_consent, event.region) == (None, None, None)
    assert event.supersedes_earlier is False
    assert event.expires_at == NOW + timedelta(minutes=10)


def test_a_full_event_keeps_every_field() -> None:
    event = parsed(FULL)
    assert event.ticket_id == "TICKET:1"
    assert event.mode is PolicyMode.EMAIL_ONLY
    assert (event.email_consent, event.sms_consent, event.region) == (True, False, "GB")
    assert (event.decision_id, event.decision_digest) == ("dec-1", "sha256:00ff")
    assert isinstance(event.email, Given)
    assert isinstance(event.sms, Given)
    assert event.sms.destination.reveal() == "+447700900123"
    assert event.correlation_id == "cor-1"


def test_the_trace_id_serves_where_the_document_has_no_correlation_id() -> None:
    assert parse_event(LEAST, NOW, RULES, "f" * 32).correlation_id == "f" * 32
    assert parse_event(FULL, NOW, RULES, "f" * 32).correlation_id == "cor-1"


def test_a_destination_may_be_absent_none_invalid_or_given() -> None:
    event = parsed(LEAST | {"destinations": {"email": None, "sms": "+1 202 555 CALL"}})
    assert event.email == NoneThere()
    assert isinstance(event.sms, Invalid)


@pytest.mark.parametrize("name", sorted(LEAST))
def test_each_required_field_is_missed_by_name(name: str) -> None:
    document = {key: value for key, value in LEAST.items() if key != name}
    assert faults_of(document) == {(f"/{name}", "required")}


def test_every_fault_is_reported_at_once_and_none_with_its_value() -> None:
    document: dict[str, Any] = {
        "event_id": "canary 1",
        "reset_request_id": 7,
        "requested_at": "canary",
        "expires_at": 1924992000,
        "template": {"id": "password-reset", "revision": 1, "canary-9": 0},
        "policy": {"mode": "canary", "inputs": {"email_consent": 1, "region": "XX"}},
        "destinations": {"email": 5, "fax": "canary"},
        "surprise": True,
    }
    assert faults_of(document) == {
        ("/event_id", "not_an_id"),
        ("/reset_request_id", "not_a_string"),
        ("/account_id", "required"),
        ("/requested_at", "not_an_rfc3339_time_with_offset"),
        ("/expires_at", "not_an_rfc3339_time_with_offset"),
        ("/template/revision", "not_a_string"),
        ("/template", "unknown_field"),
        ("/policy/mode", "unknown_mode"),
        ("/policy/inputs/email_consent", "not_a_boolean"),
        ("/policy/inputs/region", "unknown_region"),
        ("/destinations/email", "not_a_string"),
        ("/destinations/fax", "unknown_field"),
        ("/surprise", "unknown_field"),
    }


def test_ten_thousand_unknown_fields_are_a_short_answer() -> None:
    assert len(faults_of(LEAST | {f"{'x' * (i % 30)}{i}": 1 for i in range(10_000)})) == 1
    letters = {"".join(chr(97 + int(d)) for d in str(i)): 1 for i in range(10_000)}
    assert len(faults_of(LEAST | letters)) == 21


IDS = ["event_id", "idempotency_key", "reset_request_id", "account_id", "ticket_id"]


@pytest.mark.parametrize("name", [*IDS, "correlation_id"])
@pytest.mark.parametrize(
    "value",
    ["", " evt-1", "evt-1\t", "evt-1\n", "e\u0301", "\u00e9", "a\u200bb", "a/b", "x" * 129, "٣"],
)
def test_an_id_outside_the_alphabet_or_length_is_refused(name: str, value: str) -> None:
    assert faults_of(changed(name, value)) == {(f"/{name}", "not_an_id")}


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("value", ["a", "Evt-1", "A.b_c:d-e", "x" * 128, "..", "0"])
def test_an_id_is_kept_byte_for_byte(name: str, value: str) -> None:
    assert getattr(parsed(changed(name, value)), name) == value


@pytest.mark.parametrize("name", ["requested_at", "expires_at"])
@pytest.mark.parametrize(
    "value",
    [
        1924992000000,
        1924992000.5,
        "1924992000",
        1e20,
        -1,
        0,
        True,
        None,
        [],
        9223372036854775807,
        "",
        "2026-03-01T12:00:00",
        "2026-03-01",
        "2026-03-01 12:00:00Z",
        "2026-W09-7T12:00:00Z",
        "20260301T120000Z",
        "2026-02-30T12:00:00Z",
        "2026-03-01T24:00:00Z",
        "2026-03-01T12:00:60Z",
        "2026-03-01T12:00:00+24:00",
        "2026-03-01T12:00:00+0100",
        "2026-03-01T12:00:00Z\n",
        "2026-03-01T12:00:00,5Z",
        "٢٠٢٦-03-01T12:00:00Z",
        "9999-12-31T23:59:59-12:00",
        "0001-01-01T00:00:00+12:00",
    ],
)
def test_a_time_is_a_text_with_an_offset_and_nothing_is_guessed(name: str, value: object) -> None:
    assert (f"/{name}", "not_an_rfc3339_time_with_offset") in faults_of(changed(name, value))


@pytest.mark.parametrize(
    ("written", "offset"),
    [("12:00:00Z", 0), ("14:30:00+02:30", 0), ("07:00:00.000001-05:00", 1), ("12:00:00z", 0)],
)
def test_one_instant_is_one_instant_in_every_offset(written: str, offset: int) -> None:
    event = parsed(changed("requested_at", f"2026-03-01T{written}"))
    assert event.requested_at == NOW + timedelta(microseconds=offset)
    assert event.requested_at.tzinfo is UTC


@pytest.mark.parametrize(
    ("requested", "expires", "fault"),
    [
        ("2026-03-01T12:05:00.000001Z", "2026-03-01T12:10:00Z", ("/requested_at", "in_the_future")),
        ("2036-03-01T12:00:00Z", "2036-03-01T12:10:00Z", ("/requested_at", "in_the_future")),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:10:00Z", ("/requested_at", "too_long_ago")),
        ("2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z", ("/expires_at", "not_after_request")),
        ("2026-03-01T12:00:00Z", "2026-03-01T11:59:59Z", ("/expires_at", "not_after_request")),
        ("2026-03-01T12:00:00Z", "2026-03-02T12:00:00.1Z", ("/expires_at", "life_too_long")),
        ("2026-03-01T12:00:00Z", "9999-12-31T23:59:59Z", ("/expires_at", "life_too_long")),
    ],
)
def test_times_lie_inside_a_bounded_horizon(
    requested: str, expires: str, fault: tuple[str, str]
) -> None:
    assert faults_of(LEAST | {"requested_at": requested, "expires_at": expires}) == {fault}


@pytest.mark.parametrize(
    ("requested", "expires"),
    [
        ("2026-03-01T12:05:00Z", "2026-03-01T12:10:00Z"),
        ("2026-03-01T12:00:00Z", "2026-03-02T12:00:00Z"),
        ("2025-03-01T12:00:00Z", "2025-03-01T12:10:00Z"),
        ("2026-03-01T11:59:58Z", "2026-03-01T11:59:59Z"),
    ],
)
def test_the_edges_of_the_horizon_and_past_events_are_taken(requested: str, expires: str) -> None:
    event = parsed(LEAST | {"requested_at": requested, "expires_at": expires})
    assert event.expires_at == datetime.fromisoformat(expires)


@pytest.mark.parametrize("name", ["email_consent", "sms_consent"])
@pytest.mark.parametrize("value", [1, 0, "true", None, [], {}])
def test_consent_is_a_boolean_and_nothing_like_one(name: str, value: object) -> None:
    pointer = f"/policy/inputs/{name}"
    assert faults_of(changed(pointer, value)) == {(pointer, "not_a_boolean")}


@pytest.mark.parametrize("value", ["gb", "UK", "XX", "GBR", "", " GB", "ZZ"])
def test_a_region_is_an_assigned_country_code(value: str) -> None:
    fault = ("/policy/inputs/region", "unknown_region")
    assert faults_of(changed("/policy/inputs/region", value)) == {fault}


def test_the_country_codes_agree_with_an_independent_list() -> None:
    territories = {str(name) for name in babel.Locale("en").territories}
    territories = {name for name in territories if len(name) == 2}
    beyond_iso = {"AC", "CP", "CQ", "DG", "EA", "EU", "EZ", "IC", "QO", "TA", "UN"}
    assert territories - beyond_iso - {"XA", "XB", "XK", "ZZ"} == REGIONS


@pytest.mark.parametrize("value", ["en_GB", "", "x" * 5000, "../../etc", "e", "en--GB"])
def test_a_malformed_locale_is_no_error_and_is_not_kept(value: str) -> None:
    event = parsed(changed("locale", value))
    assert event.locale is None
    assert event.malformed_locale is not None


@pytest.mark.parametrize("name", ["template", "policy", "destinations", "policy/inputs"])
@pytest.mark.parametrize("value", [None, [], "text", 1])
def test_what_must_be_an_object_is_one(name: str, value: object) -> None:
    assert faults_of(changed(name, value)) == {(f"/{name}", "not_an_object")}


def test_an_unknown_template_is_named_as_one() -> None:
    assert faults_of(changed("template/revision", "2")) == {("/template", "unknown_template")}


def test_parallel_is_for_listed_reason_codes_only() -> None:
    document = changed("policy/mode", "parallel")
    assert faults_of(document) == {("/policy/mode", "parallel_not_permitted")}
    listed = EventRules(86_400.0, RULES.template_exists, frozenset({"self_service"}))
    assert parsed(document, listed).mode is PolicyMode.PARALLEL


def test_p1_an_event_against_todays_rules_alone_can_still_be_known_as_a_repeat() -> None:
    stricter = EventRules(60.0, lambda _name, _revision: False)
    with pytest.raises(EventInvalid) as caught:
        parsed(FULL, stricter)
    assert caught.value.event is not None
    assert caught.value.event.canonical() == parsed(FULL).canonical()


def test_p1_order_spacing_offsets_and_written_defaults_do_not_change_the_content() -> None:
    same = [
        dict(reversed(LEAST.items())),
        LEAST | {"idempotency_key": "evt-1", "supersedes_earlier": False, "destinations": {}},
        LEAST | {"policy": {"mode": "email_then_sms", "inputs": {}}},
        LEAST | {"requested_at": "2026-03-01T13:00:00.000+01:00"},
        LEAST | {"correlation_id": "another"},
    ]
    assert {parsed(document).canonical() for document in same} == {parsed(LEAST).canonical()}


DIFFERENT = [
    ("event_id", "evt-2"),
    ("idempotency_key", "key-2"),
    ("reset_request_id", "req-2"),
    ("account_id", "acc-2"),
    ("ticket_id", "TICKET:2"),
    ("requested_at", "2026-03-01T12:00:00.000001Z"),
    ("expires_at", "2026-03-01T12:10:01Z"),
    ("locale", "pt"),
    ("locale", "pt_BR"),
    ("policy/mode", "sms_only"),
    ("policy/reason_code", "other"),
    ("policy/decision_id", "dec-2"),
    ("policy/digest", "sha256:00fe"),
    ("policy/inputs/email_consent", False),
    ("policy/inputs/sms_consent", True),
    ("policy/inputs/region", "FR"),
    ("destinations/email", "Bob@Example.test"),
    ("destinations/email", "no address"),
    ("destinations/email", None),
    ("destinations/sms", "+447700900124"),
    ("destinations/sms", None),
    ("supersedes_earlier", False),
]


def test_p1_every_field_but_the_correlation_id_makes_other_content() -> None:
    forms = [parsed(changed(pointer, value)).canonical() for pointer, value in DIFFERENT]
    forms += [parsed(FULL).canonical(), parsed(LEAST).canonical()]
    assert len(set(forms)) == len(DIFFERENT) + 2


def test_p7_an_event_shows_neither_address_nor_number() -> None:
    shown = repr(parsed(FULL)) + repr(parsed(changed("destinations/email", "canary at home")))
    assert "Ann" not in shown
    assert "7700" not in shown
    assert "canary" not in shown


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
POINTERS = [p for p, _ in DIFFERENT] + ["template", "policy", "policy/inputs", "destinations"]


@given(pointer=st.sampled_from([*POINTERS, "template/id", "surprise"]), value=values)
def test_any_value_in_any_field_gives_an_event_or_named_faults(pointer: str, value: object) -> None:
    pointers = []
    try:
        form = parsed(changed(pointer, value)).canonical()
    except EventInvalid as invalid:
        form = b""
        pointers = [problem.pointer for problem in invalid.problems]
    assert bool(form) is not bool(pointers)
    assert all(each.startswith("/") for each in pointers)
