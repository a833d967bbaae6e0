"""What is read out of the providers' journals."""

from __future__ import annotations

import smtplib
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from peers.testing import running_inbox
from tests.chaos_run.explain import NO_ANSWER
from tests.chaos_run.journals import mails_seen
from tests.chaos_run.plan import Plan

MAIL = "From: a@example.test\r\nSubject: x\r\n\r\nx\r\n"


@pytest.mark.parametrize(
    "fate", ["drop-at-data", "drop-in-body", "reset-after-dot", "garbage-after-dot"]
)
def test_a_mail_s_request_tells_the_fate_that_struck_after_it(fate: str) -> None:
    with running_inbox() as inbox:
        for local in (fate, "deliver"):
            with (
                suppress(smtplib.SMTPException, OSError),
                smtplib.SMTP("127.0.0.1", inbox.smtp_port, timeout=5) as line,
            ):
                line.sendmail("a@example.test", [f"{local}+1@example.test"], MAIL)
        ground: Any = SimpleNamespace(mail=inbox)
        seen = mails_seen(ground, Plan(mail="smtp"))

    assert [each.fate for each in seen.posts] == [fate, "deliver"]
    assert fate in NO_ANSWER
    assert seen.faulty == 1
