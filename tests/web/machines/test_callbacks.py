"""What a provider's callback is answered, and what of it is counted and logged (P11)."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from notifier.logs import configure_logs
from notifier.metrics import Metrics
from notifier.ports.asking import ProviderReceipt
from notifier.web.machines.callbacks import CallbackServices, callbacks_blueprint
from notifier.web.problems import install_problems
from notifier.web.requests import install_requests
from tests.providers.http_sending import CALLBACK_PASSWORD, asking_postmark, asking_twilio

GENUINE = f"Basic {base64.b64encode(f'postmark:{CALLBACK_PASSWORD}'.encode()).decode()}"
DELIVERED = {"RecordType": "Delivery", "MessageID": "b7bc2f4a-0000", "Metadata": {}}
UNREADABLE = [b"", b"{", b"[]", b"\xff", b"{}", b'{"MessageID": "a", "MessageID": "b"}']


@dataclass
class Door:
    """The callbacks alone in an app, and what came through them."""

    metrics: Metrics = field(default_factory=lambda: Metrics(providers=["postmark"]))
    taken: list[ProviderReceipt] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    log: io.StringIO = field(default_factory=io.StringIO)

    def __post_init__(self) -> None:
        self.app = Flask("callbacks")
        install_requests(self.app, self.metrics)
        install_problems(self.app)
        services = CallbackServices(
            "https://notices.example.test",
            self.metrics,
            {"postmark": asking_postmark(), "twilio": asking_twilio()},
            self.take,
            self.refused.append,
            self.unreadable.append,
        )
        self.app.register_blueprint(callbacks_blueprint(services))
        configure_logs(self.log, as_json=True)

    def take(self, receipts: Sequence[ProviderReceipt]) -> None:
        for each in receipts:
            self.metrics.receipt(each.provider, each.status)
        self.taken.extend(receipts)

    def post(self, body: bytes, authorization: str = GENUINE) -> TestResponse:
        headers = {"Authorization": authorization, "Content-Type": "application/json"}
        return self.app.test_client().post("/callbacks/postmark/", data=body, headers=headers)

    def counted(self, status: str) -> float:
        labels = {"provider": "postmark", "status": status}
        return self.metrics.registry.get_sample_value("notifier_receipts_total", labels) or 0.0

    def logged(self, event: str) -> list[dict[str, object]]:
        lines = [json.loads(line) for line in self.log.getvalue().splitlines()]
        return [line for line in lines if line.get("event") == event]


@pytest.mark.parametrize("body", UNREADABLE)
def test_p11_a_genuine_callback_that_cannot_be_read_is_counted_and_logged(body: bytes) -> None:
    door = Door()

    assert door.post(body).status_code == 204

    assert door.taken == []
    assert door.counted("unreadable") == 1
    assert (door.refused, door.unreadable) == ([], ["postmark"])
    [line] = door.logged("callback_unreadable")
    assert (line["provider"], line["level"]) == ("postmark", "warning")


def test_what_can_be_read_is_counted_by_what_it_says() -> None:
    door = Door()

    assert door.post(json.dumps(DELIVERED).encode()).status_code == 204

    assert [each.status for each in door.taken] == ["delivered"]
    assert (door.counted("delivered"), door.counted("unreadable")) == (1, 0)
    assert door.logged("callback_unreadable") == []


@pytest.mark.parametrize("body", [*UNREADABLE, json.dumps(DELIVERED).encode()])
def test_p11_a_forged_one_is_a_refusal_whether_it_could_be_read_or_not(body: bytes) -> None:
    door = Door()

    assert door.post(body, "Basic Z3Vlc3NlZA==").status_code == 401

    labels = {"edge": "postmark", "reason": "signature"}
    refused = door.metrics.registry.get_sample_value("notifier_signature_refusals_total", labels)
    assert (refused, door.counted("unreadable"), door.taken) == (1, 0, [])
    assert (door.refused, door.unreadable) == (["postmark"], [])
