"""What the runner sets, the app takes; and its secrets outlive a restart."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from notifier.domain.policy import parse_policy
from notifier.settings import load_settings
from peers.run_settings import POLICY_FILE, Secrets, Surroundings, settings
from peers.traffic import SHORT_LIFE_S

AROUND = Surroundings(
    link_url="http://127.0.0.1:4000/link-requests",
    smtp_port=2525,
    postmark_url="http://127.0.0.1:4001",
    resend_url="http://127.0.0.1:4003",
    twilio_url="http://127.0.0.1:4002",
)


@pytest.mark.parametrize("email", ["postmark", "resend", "smtp"])
def test_the_app_takes_what_the_runner_sets(tmp_path: Path, email: str) -> None:
    known = Secrets.load(tmp_path / "secrets.json")
    taken = load_settings(settings(known, AROUND, data_dir=tmp_path, port=8123, email=email))
    assert taken.public_base == "http://127.0.0.1:8123"
    assert len(taken.ingest_secrets) == 1
    assert (taken.email_providers[0], taken.sms_providers) == (email, ("twilio",))
    assert (taken.postmark_base_url, taken.resend_base_url, taken.twilio_base_url) == (
        AROUND.postmark_url,
        AROUND.resend_url,
        AROUND.twilio_url,
    )


def test_the_runner_s_policy_is_taken_and_lets_a_short_life_have_a_text_in_time() -> None:
    policy = parse_policy(POLICY_FILE.read_bytes())
    life_s = SHORT_LIFE_S
    decided_s = min(policy.observation_window_s(life_s), life_s - policy.fallback_reserve_s(life_s))
    assert 15 <= decided_s <= 25
    assert decided_s + policy.call_timeout_s.sms + policy.poll_every_s <= (
        life_s - policy.safety_margin_s.sms
    )


def test_secrets_are_made_once_and_only_their_owner_can_read_them(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    first = Secrets.load(path)
    assert Secrets.load(path) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Secrets.load(tmp_path / "other.json").ingest != first.ingest
