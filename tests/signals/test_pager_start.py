"""An address that pages nobody forbids the start: whoever set it believes in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from notifier.assembly.alerting import check_pager
from notifier.settings import Settings, SettingsInvalid, load_settings
from notifier.signals.apprise_pager import name_of, receivers_of
from peers.app_process import ROOT
from peers.run_settings import Secrets, mail_only

HOOK = "jsons://hooks.example.com/t0k3n"
BARE = "https://hooks.example.com/t0k3n"


def given(folder: Path, urls: str) -> dict[str, str]:
    known = Secrets.load(folder / "secrets.json")
    link_url = "http://127.0.0.1:1/links"
    plain = mail_only(known, data_dir=folder, port=1, link_url=link_url, smtp_port=1)
    return plain | {"NOTIFIER_ALERT_URLS": urls}


def settings(folder: Path, urls: str) -> Settings:
    return load_settings(given(folder, urls))


def test_an_address_that_pages_nobody_is_a_fault_of_the_settings(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        check_pager(settings(tmp_path, f"{HOOK},{BARE}"))
    assert str(caught.value) == (
        "NOTIFIER_ALERT_URLS cannot be used (address 2: not an Apprise address; a web hook is "
        "json://host); it wants Apprise URLs, comma-separated"
    )
    assert "t0k3n" not in str(caught.value)


def test_the_product_does_not_start_where_an_address_pages_nobody(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "app.py")]
    environ = os.environ | given(tmp_path, BARE)
    ended = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 1
    assert "NOTIFIER_ALERT_URLS cannot be used (address 1: not an Apprise" in ended.stderr
    assert "t0k3n" not in ended.stdout + ended.stderr


def test_addresses_that_are_understood_forbid_nothing(tmp_path: Path) -> None:
    check_pager(settings(tmp_path, HOOK))
    check_pager(settings(tmp_path, ""))


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (HOOK, "jsons://hooks.example.com"),
        ("json://ada:t0k3n@127.0.0.1:8133/x?y=t0k3n#t0k3n", "json://127.0.0.1:8133"),
        ("mailtos://ada:t0k3n@mail.example.com?to=on@example.com", "mailtos"),
        ("mailtos://ada:t0k3n@mail.example.com", "mailtos://mail.example.com"),
        ("json://ada:t0k/3n@host.example.com/", "json"),
        ("json://[::1]:80/t0k3n", "json"),
        ("slack://t0k3n/t0k3n/t0k3n", "slack"),
        ("pagerduty://t0k3n@t0k3n", "pagerduty"),
        ("t0k3n", "unknown"),
    ],
)
def test_p7_a_receiver_is_named_by_what_holds_no_secret(url: str, name: str) -> None:
    assert name_of(url) == name


def test_receivers_of_one_host_are_told_apart() -> None:
    urls = [SecretStr(each) for each in (HOOK, f"{HOOK}-2", HOOK)]
    names = [each.name for each in receivers_of(urls)]
    assert names == ["jsons://hooks.example.com", "jsons://hooks.example.com (2)"]
