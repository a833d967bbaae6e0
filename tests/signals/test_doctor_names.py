"""Whatever the doctor finds wrong, it names the variable to be looked at."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from notifier.doctor import Finding, examine
from notifier.providers.registry import probe_all
from notifier.setting_names import unknown_settings
from notifier.settings import Settings, load_settings
from notifier.starting import CannotStart, database_at_hand
from peers.app_process import ROOT
from peers.run_settings import Secrets, Surroundings, mail_only, settings

CLOSED = "http://127.0.0.1:1"
NOBODY = Surroundings(f"{CLOSED}/links", 1, CLOSED, CLOSED, CLOSED)


def given(folder: Path, **more: str) -> dict[str, str]:
    known = Secrets.load(folder / "secrets.json")
    return settings(known, NOBODY, data_dir=folder, port=1) | more


def found(chosen: Settings, url: str, **more: str) -> dict[str, Finding]:
    told = examine(
        chosen,
        url,
        lambda policy: probe_all(chosen, policy),
        probe_links=lambda: (True, ""),
        environ=more,
    )
    return {each.part: each for each in told}


@pytest.mark.parametrize(
    ("email", "others", "see"),
    [
        ("smtp", (), "NOTIFIER_SMTP_URL"),
        ("postmark", ("twilio",), "NOTIFIER_POSTMARK_TOKEN and NOTIFIER_POSTMARK_BASE_URL"),
        ("resend", ("twilio",), "NOTIFIER_RESEND_API_KEY and NOTIFIER_RESEND_BASE_URL"),
    ],
)
def test_a_provider_that_is_not_well_names_its_settings(
    tmp_path: Path, database_url: str, email: str, others: tuple[str, ...], see: str
) -> None:
    chosen = load_settings(given(tmp_path, NOTIFIER_EMAIL_PROVIDERS=email))

    told = found(chosen, database_url)

    assert not told[f"provider {email}"].ok
    assert told[f"provider {email}"].detail.endswith(f"; see {see}")
    for other in others:
        assert told[f"provider {other}"].detail.endswith(
            "; see NOTIFIER_TWILIO_ACCOUNT_SID, NOTIFIER_TWILIO_AUTH_TOKEN and "
            "NOTIFIER_TWILIO_BASE_URL"
        )


def test_an_address_that_pages_nobody_names_its_setting(tmp_path: Path) -> None:
    chosen = load_settings(given(tmp_path, NOTIFIER_ALERT_URLS="https://hooks.example.com/x"))

    told = found(chosen, f"postgresql://nobody@{CLOSED.removeprefix('http://')}/none")

    (pager,) = [each for part, each in told.items() if part.startswith("pager")]
    assert (pager.ok, pager.detail.endswith("; see NOTIFIER_ALERT_URLS")) == (False, True)
    assert told["database"].detail.endswith("see NOTIFIER_DATABASE_URL")


def test_a_variable_that_nothing_reads_is_named_with_what_may_have_been_meant(
    tmp_path: Path,
) -> None:
    odd = {"NOTIFIER_WORKER": "s3cret", "NOTIFIER_ZZZ": "1", "notifier_bind": "1", "OTHER": "1"}
    chosen = given(tmp_path)

    told = found(load_settings(chosen), "postgresql://nobody@127.0.0.1:1/none", **chosen, **odd)

    assert told["settings"] == Finding(
        "settings",
        ok=False,
        detail="NOTIFIER_WORKER is no setting, perhaps NOTIFIER_WORKERS; NOTIFIER_ZZZ is no "
        "setting; notifier_bind is no setting, perhaps NOTIFIER_BIND",
    )
    assert list(unknown_settings(chosen)) == []
    assert found(load_settings(chosen), "postgresql://nobody@127.0.0.1:1/none", **chosen)[
        "settings"
    ].ok


@pytest.mark.parametrize("folder", ["/proc/x", "/dev/null/x"])
def test_a_data_folder_that_cannot_be_made_names_its_setting(tmp_path: Path, folder: str) -> None:
    chosen = load_settings(given(tmp_path, NOTIFIER_DATA_DIR=folder))
    with (
        pytest.raises(CannotStart, match=r"^NOTIFIER_DATA_DIR cannot be used \(.+\); it wants a"),
        database_at_hand(chosen),
    ):
        pass


def test_a_command_on_such_a_folder_ends_with_that_sentence_alone(tmp_path: Path) -> None:
    known = Secrets.load(tmp_path / "secrets.json")
    wrong = mail_only(known, data_dir=Path("/proc/x"), port=1, link_url=CLOSED, smtp_port=1)
    ended = subprocess.run(
        [sys.executable, "-m", "flask", "--app", "app", "doctor"],
        cwd=ROOT, env=os.environ | wrong, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ended.returncode == 1
    assert ended.stderr.startswith("NOTIFIER_DATA_DIR cannot be used (")
    assert len(ended.stderr.splitlines()) == 1
