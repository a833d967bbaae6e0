"""What the doctor says of the addresses that are paged; nobody is told anything."""

from __future__ import annotations

from pathlib import Path

from notifier.doctor import examine
from notifier.settings import load_settings
from peers.run_settings import Secrets, mail_only

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"


def findings(folder: Path, **given: str) -> list[tuple[bool, str]]:
    """What is said of the pager, with no database to be reached."""
    known = Secrets.load(folder / "secrets.json")
    link_url = "http://127.0.0.1:1/links"
    plain = mail_only(known, data_dir=folder, port=1, link_url=link_url, smtp_port=1)
    settings = load_settings(plain | given)
    found = examine(settings, NOWHERE, lambda _: (), probe_links=lambda: (True, ""))
    return [(each.ok, each.detail) for each in found if each.part.startswith("pager")]


def test_the_doctor_names_an_address_that_would_page_nobody(tmp_path: Path) -> None:
    urls = "jsons://hooks.example.com/t0k3n,https://hooks.example.com/t0k3n"
    [good, bad] = findings(tmp_path, NOTIFIER_ALERT_URLS=urls)
    assert good == (True, "understood")
    assert bad == (
        False,
        "not an Apprise address; a web hook is json://host; see NOTIFIER_ALERT_URLS",
    )
    assert "t0k3n" not in str((good, bad))


def test_the_doctor_says_that_nobody_is_paged(tmp_path: Path) -> None:
    assert findings(tmp_path) == [(True, "no NOTIFIER_ALERT_URLS: alerts page nobody")]
