"""A message to send, and the certificate that the test's peers serve with."""

from __future__ import annotations

import pytest

from notifier.domain.states import Channel
from notifier.domain.values import Destination, RenderedMessage, Secret
from notifier.ports.sending import Envelope
from peers.certificates import Certificate, loopback_certificate


@pytest.fixture(scope="session")
def certificate() -> Certificate:
    return loopback_certificate()


@pytest.fixture
def envelope() -> Envelope:
    return make_envelope()


def make_envelope(
    *,
    address: str = "mara@example.test",
    subject: str = "Reset your password",
    text: str = "Open https://example.test/r?t=abc\n",
    html: str | None = "<p>Open <a href='https://example.test/r?t=abc'>this</a></p>\n",
    reference: str = "ref7Kx2",
    budget_s: float = 5.0,
) -> Envelope:
    message = RenderedMessage(
        Channel.EMAIL, subject, Secret(text), Secret(html) if html else None, "digest"
    )
    destination = Destination(Channel.EMAIL, address)
    return Envelope(destination, message, reference, "event-1:email:first", budget_s, 600)
