"""The parts that the description of each endpoint is put together from."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from notifier.signatures import ID_HEADER, TIMESTAMP_HEADER, TOLERANCE_S
from notifier.web.machines.schema_words import sentence_of
from notifier.web.machines.schemas import STRING, text
from notifier.web.problems import CODES, PROBLEM_TYPE, Code
from notifier.web.requests import HEADER

Part = dict[str, Any]

_ANY = (Code.INTERNAL_ERROR,)
SIGNING = (
    (
        ID_HEADER,
        STRING | {"minLength": 1, "maxLength": 256},
        "This message, in ASCII; a sender that repeats it may keep it or take another.",
    ),
    (
        TIMESTAMP_HEADER,
        text("-?[0-9]{1,32}"),
        f"When it was signed, whole seconds of Unix time; at most {TOLERANCE_S} s from our clock.",
    ),
)
KEY = (
    "Optional. It is not signed, so it brings no key of its own: it may repeat the body's "
    "idempotency_key, or its event_id where the body has none. Anything else is 422 "
    "(differs_from_header)."
)
TRACE = "W3C Trace Context; its trace id is the correlation_id where the body has none."
AFTER = "Rows behind this sequence."
LIMIT = "At most so many rows; a number beyond the bounds is taken as the nearest one."
_ALWAYS: Part = {HEADER: {"description": "This request's id.", "schema": STRING}}
_AGAIN: Part = {
    "Retry-After": {
        "description": "Seconds to wait before the same is sent again.",
        "schema": {"type": "integer", "minimum": 1},
    }
}
_LATER = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
ADMITTED_HEADERS: Part = {
    "Location": {"description": "The status_url.", "schema": STRING | {"format": "uri"}},
    "Idempotent-Replayed": {
        "description": "true on every answer but the first.",
        "schema": {"const": "true"},
    },
}


def answers(good: dict[HTTPStatus, str], *problems: Code, headers: Part | None = None) -> Part:
    """The answers by status; where codes share a status, their names stand in one."""
    found: Part = {
        str(int(status)): content(status.phrase, "application/json", ref(name))
        | {"headers": _ALWAYS | (headers or {})}
        for status, name in good.items()
    }
    by_status: dict[int, list[Code]] = {}
    for code in (*problems, *_ANY):
        by_status.setdefault(int(CODES[code][0]), []).append(code)
    for status, codes in by_status.items():
        shared = problem(codes[0]) | {"description": ", ".join(codes)}
        single = {"$ref": f"#/components/responses/{codes[0]}"}
        found[str(status)] = single if len(codes) == 1 else shared
    return found


def problem(code: Code) -> Part:
    """The answer to a refused request."""
    return {
        "description": CODES[code][1],
        "headers": _ALWAYS | (_AGAIN if CODES[code][0] in _LATER else {}),
        "content": {PROBLEM_TYPE: {"schema": ref("Problem")}},
    }


def content(description: str, media_type: str, schema: Part) -> Part:
    """An answer of one media type."""
    return {"description": description, "content": {media_type: {"schema": schema}}}


def json_body(schema: str) -> Part:
    """A JSON body of a named schema."""
    return {"application/json": {"schema": ref(schema)}}


def ref(schema: str) -> Part:
    """A named schema."""
    return {"$ref": f"#/components/schemas/{schema}"}


def in_path(name: str, schema: Part) -> Part:
    """A parameter within the path."""
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": sentence_of("", name),
        "schema": schema,
    }


def in_query(name: str, what: str, bounds: Part) -> Part:
    """A whole number behind the question mark, within `bounds`."""
    schema = {"type": "integer"} | bounds
    return {"name": name, "in": "query", "description": what, "schema": schema}


def header(name: str, schema: Part, what: str, *, required: bool = False) -> Part:
    """A header of the request."""
    return {
        "name": name,
        "in": "header",
        "required": required,
        "description": what,
        "schema": schema,
    }
