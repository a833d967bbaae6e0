"""Reads the body of a machine's request: how large, of what type, and strictly as JSON.

Python's parser takes more than RFC 8259 allows and Postgres stores less, so everything in
between is refused here: duplicate keys, NaN and Infinity, numbers without a faithful value,
NUL, lone surrogates, a byte order mark, and nesting that no contract asks for.
"""

from __future__ import annotations

import json
import math
import re
from enum import StrEnum
from typing import Any, Final, NoReturn

from flask import Request
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.http import parse_options_header

ADMISSION_LIMIT: Final = 64 * 1024
"""Largest body of admission and cancel, bytes (contract, section 1)."""

CALLBACK_LIMIT: Final = 1024 * 1024
"""Largest body of a provider's callback, bytes (contract, section 1)."""

FORM_LIMIT: Final = 64 * 1024
"""Largest form of a person, bytes: several times the policy's, which is the largest there is."""

MAX_DEPTH: Final = 32
MAX_DIGITS: Final = 18
"""An integer of more digits does not fit the 64 bits of a database column."""

_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


class BodyFault(StrEnum):
    """Why a body is no document that we can take."""

    BYTE_ORDER_MARK = "byte_order_mark"
    DUPLICATE_KEY = "duplicate_key"
    LONE_SURROGATE = "lone_surrogate"
    NOT_AN_OBJECT = "not_an_object"
    NOT_JSON = "not_json"
    NOT_UTF8 = "not_utf8"
    NUL_CHARACTER = "nul_character"
    NUMBER_OUT_OF_RANGE = "number_out_of_range"
    TOO_DEEP = "too_deep"


class BodyInvalid(Exception):
    """The body is not a document we can take; `code` says why and nothing of its content."""

    def __init__(self, code: BodyFault) -> None:
        super().__init__(code)
        self.code = code


class MediaTypeUnsupported(Exception):
    """The body is not declared as JSON in UTF-8."""


def raw_body(request: Request, limit: int) -> bytes:
    """The body's bytes as sent; `RequestEntityTooLarge` before more than `limit` are kept.

    A body of unannounced size is read one byte beyond the limit: Werkzeug cuts it off there
    without a word.
    """
    if (request.content_length or 0) > limit:
        raise RequestEntityTooLarge
    request.max_content_length = limit + 1
    raw = request.get_data(cache=False, parse_form_data=False)
    if len(raw) > limit:
        raise RequestEntityTooLarge
    return raw


def require_json(request: Request) -> None:
    """Raise `MediaTypeUnsupported` unless the body is declared `application/json`, UTF-8, plain."""
    kind, options = parse_options_header(request.headers.get("Content-Type"))
    if kind.lower() != "application/json" or options.get("charset", "utf-8").lower() != "utf-8":
        raise MediaTypeUnsupported
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise MediaTypeUnsupported


def read_object(raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`; `BodyInvalid` for anything else."""
    document = read_json(raw)
    if not isinstance(document, dict):
        raise BodyInvalid(BodyFault.NOT_AN_OBJECT)
    return document


def read_json(raw: bytes) -> Any:
    """The JSON value in `raw` with all of its strings storable; `BodyInvalid` otherwise."""
    text = _decoded(raw)
    _check_depth(text)
    try:
        document = _DECODER.decode(text)
    except (ValueError, RecursionError):
        raise BodyInvalid(BodyFault.NOT_JSON) from None
    if "\\u" in text:
        _check_strings(document)
    return document


def _decoded(raw: bytes) -> str:
    try:
        text = raw.decode("utf-8", errors="strict")
    except UnicodeDecodeError:
        raise BodyInvalid(BodyFault.NOT_UTF8) from None
    if text.startswith("\N{ZERO WIDTH NO-BREAK SPACE}"):
        raise BodyInvalid(BodyFault.BYTE_ORDER_MARK)
    return text


def _check_depth(text: str) -> None:
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        if depth > MAX_DEPTH:
            raise BodyInvalid(BodyFault.TOO_DEEP)


def _check_strings(value: object) -> None:
    """Look for what only an escape can bring in: NUL and half of a surrogate pair."""
    if isinstance(value, str):
        if "\0" in value:
            raise BodyInvalid(BodyFault.NUL_CHARACTER)
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise BodyInvalid(BodyFault.LONE_SURROGATE)
    elif isinstance(value, dict):
        for key, member in value.items():
            _check_strings(key)
            _check_strings(member)
    elif isinstance(value, list):
        for member in value:
            _check_strings(member)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise BodyInvalid(BodyFault.DUPLICATE_KEY)
    return members


def _no_constant(_name: str) -> NoReturn:
    raise BodyInvalid(BodyFault.NOT_JSON)


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise BodyInvalid(BodyFault.NUMBER_OUT_OF_RANGE)
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise BodyInvalid(BodyFault.NUMBER_OUT_OF_RANGE)
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_once,
    parse_constant=_no_constant,
    parse_int=_integer,
    parse_float=_float,
)
