"""Live, ready, measured."""

from __future__ import annotations

import json
import threading
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from notifier.metrics import Metrics, Reading, SignatureFault
from notifier.web.services import PartReport
from tests.web.machines import edge as edges
from tests.web.machines.edge import Edge, event_document
from tests.web.machines.test_admission import problem


def test_live_asks_nobody(edge: Edge) -> None:
    edge.behind.fault = RuntimeError("canary")
    answer = edge.ask("GET", "/healthz")
    assert (answer.status_code, json.loads(answer.text)) == (200, {"live": True})


def test_ready_when_every_part_is(edge: Edge) -> None:
    answer = edge.ask("GET", "/readyz")
    assert answer.status_code == 200
    assert json.loads(answer.text)["ready"] is True


def test_p11_not_ready_names_the_part_and_for_how_long(edge: Edge) -> None:
    edge.behind.parts = [
        PartReport("database", ok=True, detail=""),
        PartReport("sweep claim", ok=False, detail="last ended 95 s ago"),
    ]
    answer = edge.ask("GET", "/readyz")
    assert answer.status_code == 503
    wrong = [part for part in json.loads(answer.text)["parts"] if not part["ok"]]
    assert wrong == [{"part": "sweep claim", "ok": False, "detail": "last ended 95 s ago"}]


def test_a_look_that_fails_is_not_ready_and_quotes_nothing(edge: Edge) -> None:
    edge.behind.fault = RuntimeError("canary")
    answer = edge.ask("GET", "/readyz")
    assert answer.status_code == 503
    assert json.loads(answer.text)["parts"][0]["detail"] == "RuntimeError"
    assert "canary" not in answer.text + edge.log.getvalue()


def test_ready_answers_in_its_own_time_while_a_look_hangs_and_starts_no_second() -> None:
    released = threading.Event()
    looks = []

    def hang() -> list[PartReport]:
        looks.append(1)
        released.wait(20)
        return [PartReport("database", ok=True, detail="")]

    with edges.edge(readiness_limit_s=0.1) as edge:
        edge.behind.readiness = hang  # type: ignore[method-assign]
        for _ in range(3):
            began = time.monotonic()
            answer = edge.ask("GET", "/readyz")
            assert time.monotonic() - began < 10
            assert answer.status_code == 503
            assert "no answer within 0.1 s" in answer.text
        assert len(looks) == 1
        (thread,) = [each for each in threading.enumerate() if each.name == "readiness"]
        released.set()
        thread.join(5)
        assert edge.ask("GET", "/readyz").status_code == 200
        assert len(looks) == 2


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:8000"])
def test_metrics_need_no_token_of_who_asks_on_this_machine(edge: Edge, host: str) -> None:
    assert edge.ask("GET", "/metrics", host=host).status_code == 200


def test_metrics_need_a_token_where_others_may_ask() -> None:
    with edges.edge(asked_from_here_alone=False) as public:
        problem(public.ask("GET", "/metrics"), 401, "token_invalid")
        problem(public.ask("GET", "/metrics", "status-token"), 403, "scope_missing")
        assert public.ask("GET", "/metrics", "metrics-token").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example:8000"},
        {"host": ""},
        {"host": "a" * 64},
        {"x_forwarded_for": "198.51.100.7"},
        {"x_forwarded_proto": "https"},
        {"x_forwarded_host": "notices.example.test"},
        {"x_real_ip": "198.51.100.7"},
        {"forwarded": "for=198.51.100.7"},
        {"via": "1.1 proxy"},
    ],
    ids=str,
)
def test_metrics_need_a_token_of_whom_a_proxy_or_another_name_led_here(
    edge: Edge, headers: dict[str, str]
) -> None:
    answer = edge.ask("GET", "/metrics", **headers)
    assert answer.status_code in {400, 401}
    assert "notifier_" not in answer.text


@pytest.mark.parametrize("path", ["/metrics/", "//metrics", "//healthz", "/readyz/", "//v1/x"])
def test_a_proxy_that_keeps_an_address_to_itself_is_not_passed_by_with_another_spelling(
    edge: Edge, path: str
) -> None:
    answer = edge.app.test_client().get("/", environ_overrides={"PATH_INFO": path})
    problem(answer, 404, "not_found")


def test_p7_scanning_and_many_people_leave_the_series_bounded_and_nameless(edge: Edge) -> None:
    def series() -> set[str]:
        lines = edge.ask("GET", "/metrics").text.splitlines()
        return {line.rpartition(" ")[0] for line in lines if not line.startswith("#")}

    def visit(number: int) -> None:
        name = f"canary{number}"
        edge.post(event_document(event_id=name, destinations={"email": f"{name}@example.test"}))
        edge.ask("GET", f"/v1/{name}")
        edge.ask("GET", f"/v1/reset-events/{name}", name)
        edge.ask(f"CANARY{number}", "/healthz")

    series()
    visit(0)
    before = series()
    for number in range(1, 60):
        visit(number)
    assert series() == before
    assert "canary" not in "".join(before).lower()


def test_gauges_are_read_when_they_are_asked_for() -> None:
    age = [1.0]
    metrics = Metrics(
        lambda: [
            Reading("queue_age_seconds", "Oldest due delivery", age[0], ("channel", "email")),
            Reading("queue_age_seconds", "Oldest due delivery", 7.0, ("channel", "sms")),
            Reading("open_halts", "Halts in force", 2.0),
        ]
    )

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(f"notifier_{name}", labels)

    assert value("queue_age_seconds", channel="email") == 1.0
    age[0] = 90.0
    assert value("queue_age_seconds", channel="email") == 90.0
    assert value("queue_age_seconds", channel="sms") == 7.0
    assert value("open_halts") == 2.0
    assert value("readings_available") == 1.0


def test_p11_a_scrape_answers_and_says_so_when_the_gauges_cannot_be_read() -> None:
    def fail() -> list[Reading]:
        message = "canary"
        raise RuntimeError(message)

    text = Metrics(fail).text().decode()
    assert "notifier_readings_available 0.0" in text
    assert list(text_string_to_metric_families(text))


@pytest.mark.parametrize("name", ["smtp", "canary", ""])
def test_an_unknown_provider_is_counted_as_other(name: str) -> None:
    metrics = Metrics(providers=["smtp"])
    metrics.signature_refused(name, SignatureFault.SIGNATURE)
    label = "smtp" if name == "smtp" else "other"
    labels = {"edge": label, "reason": "signature"}
    sample = metrics.registry.get_sample_value("notifier_signature_refusals_total", labels)
    assert sample == 1.0
