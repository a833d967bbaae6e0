"""The description agrees with the running app: routes, schemas, answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError
from werkzeug.test import TestResponse

from notifier.domain.event_document import EventInvalid, EventRules, parse_event
from notifier.store.database import StoreUnavailable
from notifier.web.machines.openapi import build_document
from notifier.web.services import PartReport
from tests.web.machines.edge import NOTICE, Edge, event_document

PROBLEM = "application/problem+json"


@pytest.fixture
def document(edge: Edge) -> dict[str, Any]:
    served: dict[str, Any] = json.loads(edge.ask("GET", "/openapi.json").text)
    return served


def schema_of(document: dict[str, Any], schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": document["components"]})


def test_the_document_lists_exactly_the_routes_of_the_app(
    edge: Edge, document: dict[str, Any]
) -> None:
    described = {
        (path, method.upper()) for path, item in document["paths"].items() for method in item
    }
    running = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule), method)
        for rule in edge.app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if rule.endpoint != "static"
    }
    assert described == running


def test_every_schema_is_sound_and_every_reference_leads_somewhere(
    document: dict[str, Any],
) -> None:
    assert document["openapi"].startswith("3.1.")
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    references = re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document))
    assert references
    for reference in references:
        target = document
        for step in reference.split("/"):
            target = target[step]


def test_every_path_parameter_is_described(document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        for operation in item.values():
            described = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert described == set(re.findall(r"{(\w+)}", path))


def objects(schema: object) -> Iterator[dict[str, Any]]:
    """Every object's schema within a schema."""
    if isinstance(schema, list):
        for each in schema:
            yield from objects(each)
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield schema
        for each in schema.values():
            yield from objects(each)


def test_every_field_says_what_it_is(document: dict[str, Any]) -> None:
    fields = [
        (name, field)
        for each in objects(document["components"]["schemas"])
        for name, field in each["properties"].items()
    ]
    assert len(fields) > 80
    for name, field in fields:
        assert field.get("description", "").endswith("."), name
    for item in document["paths"].values():
        for operation in item.values():
            for parameter in operation.get("parameters", []):
                assert parameter["description"].endswith("."), parameter


def test_each_answer_that_asks_to_come_again_names_the_header_that_says_when(
    document: dict[str, Any],
) -> None:
    seen = 0
    for path, item in document["paths"].items():
        for method, operation in item.items():
            for status, answer in operation["responses"].items():
                described = follow(document, answer)
                if status in {"429", "503"} and path != "/readyz":
                    schema = described["headers"]["Retry-After"]["schema"]
                    assert (schema["type"], schema["minimum"]) == ("integer", 1)
                    seen += 1
                else:
                    assert "Retry-After" not in described.get("headers", {}), (path, method)
    assert seen >= 7


def test_the_headers_that_sign_are_described_wherever_one_signs(document: dict[str, Any]) -> None:
    signed = [
        operation
        for item in document["paths"].values()
        for operation in item.values()
        if operation.get("security") == [{"signature": []}]
    ]
    assert len(signed) == 2
    for operation in signed:
        described = {p["name"]: p for p in operation["parameters"]}
        for name in ("webhook-id", "webhook-timestamp"):
            assert (described[name]["in"], described[name]["required"]) == ("header", True)


def test_the_page_of_a_trail_has_the_size_that_is_described(
    edge: Edge, document: dict[str, Any]
) -> None:
    path = "/v1/reset-events/{event_id}/transitions"
    parameters = {p["name"]: p for p in document["paths"][path]["get"]["parameters"]}
    limit = parameters["limit"]["schema"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 500, 200)
    edge.behind.rows = 600
    for asked, rows in (("", 200), ("?limit=0", 1), ("?limit=501", 500), ("?limit=7", 7)):
        answer = edge.ask("GET", f"/v1/reset-events/evt-1/transitions{asked}", "status-token")
        assert len(json.loads(answer.text)["transitions"]) == rows
    assert "nearest" in parameters["limit"]["description"]


def test_a_key_beside_the_body_is_described_as_one_that_only_agrees(
    document: dict[str, Any],
) -> None:
    parameters = document["paths"]["/v1/reset-events"]["post"]["parameters"]
    [key] = [each for each in parameters if each["name"] == "Idempotency-Key"]
    assert "not signed" in key["description"]
    assert "422" in key["description"]


def test_callbacks_are_described_where_providers_have_them() -> None:
    paths = build_document(["/callbacks/postmark"])["paths"]
    assert set(paths["/callbacks/postmark"]) == {"post"}


def follow(document: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in answer:
        return answer
    found: dict[str, Any] = document["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    return found


def check(document: dict[str, Any], path: str, method: str, answer: TestResponse) -> None:
    described = follow(
        document, document["paths"][path][method]["responses"][str(answer.status_code)]
    )
    media_type = answer.content_type.partition(";")[0]
    schema = described["content"][media_type]["schema"]
    if media_type != "text/plain":
        schema_of(document, schema).validate(json.loads(answer.text))


def test_answers_of_every_kind_have_the_described_form(
    edge: Edge, document: dict[str, Any]
) -> None:
    event, trail = "/v1/reset-events/{event_id}", "/v1/reset-events/{event_id}/transitions"
    cancel, admit = "/v1/reset-events/{event_id}/cancel", "/v1/reset-events"
    ticket, link = "/v1/tickets/{ticket_id}", "/v1/tickets/{ticket_id}/notices/{notification_id}"
    posts: list[tuple[str, bytes | dict[str, Any]]] = [
        (admit, event_document()),
        (admit, event_document(event_id="")),
        (admit, b"{"),
        (admit, b"x" * 70_000),
        (cancel, {"reason": "used"}),
        (cancel, {"reason": ""}),
    ]
    for path, body in posts:
        check(document, path, "post", edge.post(body, path.format(event_id="evt-1")))
        check(document, path, "post", edge.ask("POST", path.format(event_id="evt-1")))
    for path, method in ((event, "get"), (trail, "get"), (ticket, "get"), (link, "put")):
        odd = path.format(event_id="a b", ticket_id="a b", notification_id=NOTICE)
        check(document, path, method, edge.ask(method.upper(), odd, "status-token"))
    check(document, cancel, "post", edge.post({"reason": "used"}, cancel.format(event_id="a b")))
    edge.behind.fault = StoreUnavailable("PoolTimeout")
    for path, body in posts[:1] + posts[4:5]:
        check(document, path, "post", edge.post(body, path.format(event_id="evt-1")))
    check(document, event, "get", edge.ask("GET", event.format(event_id="evt-1"), "status-token"))
    edge.behind.fault = None
    gets = [(event, "get"), (trail, "get"), (ticket, "get"), (link, "put")]
    for path, method in gets:
        for token in (None, "status-token", "tickets-token"):
            for name in ("evt-1", "other"):
                real = path.format(event_id=name, ticket_id=name, notification_id=NOTICE)
                check(document, path, method, edge.ask(method.upper(), real, token))
    edge.behind.wait_s = 1.0
    check(document, admit, "post", edge.post(event_document()))
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json"):
        check(document, path, "get", edge.ask("GET", path))
    edge.behind.parts = [PartReport("database", ok=False, detail="unreachable")]
    check(document, "/readyz", "get", edge.ask("GET", "/readyz"))


leaves = st.sampled_from([None, True, 1, "", "GB", "a b", "email_only", "2026-03-01T12:00:00Z"])
values = leaves | st.dictionaries(
    st.sampled_from(
        ["id", "revision", "mode", "inputs", "region", "email", "sms", "email_consent"]
    ),
    leaves | st.dictionaries(st.sampled_from(["region", "email_consent"]), leaves),
)
NAMES = [*event_document(), "idempotency_key", "policy", "destinations", "locale", "surprise"]


@given(changes=st.dictionaries(st.sampled_from([*NAMES, "supersedes_earlier"]), values))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
def test_the_schema_and_the_reader_take_the_same_events(
    edge: Edge, changes: dict[str, Any]
) -> None:
    described = build_document()
    event = event_document(**changes)
    validator = schema_of(described, described["components"]["schemas"]["ResetEvent"])
    lenient = EventRules(1e9, lambda _id, _revision: True)
    try:
        parse_event(event, datetime.now(UTC), lenient)
    except EventInvalid as invalid:
        about_time = {"in_the_future", "too_long_ago", "not_after_request", "life_too_long"}
        if {problem.code for problem in invalid.problems} <= about_time:
            return
        with pytest.raises(ValidationError):
            validator.validate(event)
    else:
        validator.validate(event)
