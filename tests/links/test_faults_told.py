"""A link request without a usable answer is told: one log entry, one count, no content."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest

from notifier.announcing import Announcer
from notifier.domain.destinations import check_destination
from notifier.domain.link_faults import LinkFault
from notifier.links.auth_service import AuthService
from notifier.logs import configure_logs
from notifier.metrics import Metrics
from notifier.ports.links import LinkUnavailable
from notifier.signatures import parse_secret
from tests.links.scripted_http import ADDRESS, LINK, answering, granted, http
from tests.links.test_auth_service import EMAIL, LOOK_UP, SECRET_TEXT


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    configure_logs(stream, as_json=True)
    yield stream
    configure_logs()


def counted(metrics: Metrics, purpose: str, fault: LinkFault) -> float | None:
    labels = {"channel": "email", "purpose": purpose, "fault": str(fault)}
    return metrics.registry.get_sample_value("notifier_link_faults_total", labels)


def test_p7_each_fault_is_logged_and_counted_and_nothing_of_the_answer_is(
    lines: io.StringIO,
) -> None:
    metrics = Metrics()
    with answering(http(401, {"error": f"{LINK} {ADDRESS}"})) as peer:
        source = AuthService(
            peer.url,
            parse_secret(SECRET_TEXT),
            check_destination,
            tell=Announcer(metrics).link_fault,
        )
        source.ask(EMAIL, 3)
        source.ask(LOOK_UP, 3)
        peer.answer = granted(reset_url=f"http://{ADDRESS.partition('@')[2]}/r")
        source.ask(EMAIL, 3)
        source.close()

    entries = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [
        (each["event"], each["level"], each["phase"], each["detail"], each["http_status"])
        for each in entries
    ] == [
        ("link_unavailable", "warning", "send", "http_401", 401),
        ("link_unavailable", "warning", "look_up", "http_401", 401),
        ("link_unavailable", "warning", "send", "reset_url_not_https", 200),
    ]
    assert {(each["event_id"], each["reset_request_id"]) for each in entries} == {
        ("event-1", "reset-1")
    }
    assert counted(metrics, "send", LinkFault.HTTP_401) == 1.0
    assert counted(metrics, "look_up", LinkFault.HTTP_401) == 1.0
    assert counted(metrics, "send", LinkFault.RESET_URL_NOT_HTTPS) == 1.0
    told = lines.getvalue() + metrics.text().decode()
    assert LINK not in told
    assert ADDRESS not in told
    assert ADDRESS.partition("@")[2] not in told


def test_a_fault_without_an_answer_has_no_status(lines: io.StringIO) -> None:
    Announcer(Metrics()).link_fault(EMAIL, LinkUnavailable(LinkFault.NO_ANSWER_IN_TIME))
    entry = json.loads(lines.getvalue())
    assert (entry["detail"], entry["http_status"]) == ("no_answer_in_time", None)
