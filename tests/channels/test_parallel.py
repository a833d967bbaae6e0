"""Both channels at once, for the reason codes that the policy lists and for no other."""

from __future__ import annotations

from pathlib import Path

from notifier.store.embedded import EmbeddedServer
from tests.channels.conftest import TIMES, both_channels
from tests.database import fresh_database


def test_parallel_is_refused_but_for_listed_reason_codes_and_then_sends_both(
    postgres: EmbeddedServer, tmp_path: Path
) -> None:
    policy = 'parallel_reason_codes = ["account-takeover"]\n' + TIMES
    with (
        fresh_database(postgres) as url,
        both_channels(url, tmp_path, policy=policy) as channels,
    ):
        for why in ("self_service", None):
            refused = channels.event("deliver", mode="parallel", reason_code=why)
            if why is None:
                del refused["policy"]["reason_code"]
            answer = channels.app.post(refused)
            assert answer.status == 422
            [fault] = answer.json()["errors"]
            assert (fault["pointer"], fault["code"]) == ("/policy/mode", "parallel_not_permitted")
        assert channels.around.rows("SELECT event_id FROM admission") == []

        event = channels.event("deliver", mode="parallel", reason_code="account-takeover")
        channels.app.admit(event)
        for channel in ("email", "sms"):
            channels.reaches(event, channel, "delivered")
        assert (channels.mails(event), channels.texts(event)) == (1, 1)
