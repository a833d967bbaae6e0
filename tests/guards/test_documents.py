"""The reference pages say what the code says."""

from __future__ import annotations

import re
import subprocess

import pytest

from notifier.domain.reasons import Reason
from notifier.domain.states import MOVES, DeliveryState
from notifier.setting_readers import (
    read_api_tokens,
    read_key_ring,
    read_seed_ring,
    read_signing_secret,
)
from notifier.setting_words import DEFAULTS as SETTING_DEFAULTS
from notifier.setting_words import MEANINGS as SETTING_MEANINGS
from notifier.settings import NEEDED_BY_PROVIDER, Settings
from notifier.web.services import find_token
from tests.guards.documents import MEANINGS, PAGES, ROOT, states_page
from tests.guards.mutants import GUARDS


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_the_one_that_the_code_gives(page: str) -> None:
    written = (ROOT / page).read_text(encoding="utf-8")
    assert written == PAGES[page](), "write it anew: python -m tests.guards.documents"


def test_every_state_and_every_move_stands_on_the_page() -> None:
    page = states_page()
    assert set(MEANINGS) == set(DeliveryState)
    assert page.count("\n| ") == 2 + 2 + len(DeliveryState) + len(MOVES)
    moving = {reason for reasons in MOVES.values() for reason in reasons}
    assert all(f"`{reason}`" in page for reason in moving)
    assert len(moving) < len(Reason)


def test_every_setting_stands_on_the_page_with_its_form_and_when_it_must_be_there() -> None:
    page = PAGES["docs/reference/settings.md"]()
    assert set(SETTING_MEANINGS) == set(Settings.model_fields)
    assert set(SETTING_DEFAULTS) <= set(Settings.model_fields)
    lines = {line.split(" | ")[0].removeprefix("| "): line for line in page.splitlines()}
    for name, field in Settings.model_fields.items():
        line = lines[f"`NOTIFIER_{name.upper()}`"]
        assert (field.description or "no form") in line
        assert line.endswith(" | always |") == field.is_required(), name
    for provider, names in NEEDED_BY_PROVIDER.items():
        for name in names:
            cell = lines[f"`NOTIFIER_{name}`"].rsplit(" | ", 1)[1]
            assert f"`{provider}`" in cell


def test_the_entry_that_the_page_makes_of_a_token_is_one_that_the_settings_take() -> None:
    page = PAGES["docs/reference/settings.md"]()
    [script] = re.findall(r"```sh\n(TOKEN=.*?)```", page, re.DOTALL)
    made = subprocess.run(
        ["bash", "-c", f'{script}\necho "$TOKEN"'], capture_output=True, text=True, check=True
    )
    entry, token = made.stdout.split()
    found = find_token(read_api_tokens(entry), token)
    assert found is not None
    assert found.scopes == {"status", "tickets"}


def test_the_secrets_that_the_page_makes_are_ones_that_the_settings_take() -> None:
    page = PAGES["docs/reference/settings.md"]()
    lines = page.partition("## The secrets")[2].splitlines()
    secret, key = (
        subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True).stdout
        for line in lines
        if "openssl" in line
    )
    assert len(read_signing_secret(secret.strip()).key) == 32
    assert read_key_ring(key.strip()).current
    assert len(read_seed_ring(key.strip()).current) == 32


def test_every_test_that_stands_beside_a_known_way_to_fail_exists() -> None:
    page = (ROOT / "docs/reference/cases.md").read_text(encoding="utf-8")
    cases = re.findall(r"^\| (B\d{3}) \|", page, re.MULTILINE)
    assert len(cases) == len(set(cases)) > 50
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(named) == page.count("::")
    missing = [
        f"{file}::{name}"
        for file, name in named
        if f"\ndef {name}(" not in (ROOT / file).read_text(encoding="utf-8")
    ]
    assert missing == []


def test_every_test_that_watches_a_guard_exists() -> None:
    for guard in GUARDS:
        file, _, name = guard.test.partition("::")
        bare = name.partition("[")[0]
        assert f"\ndef {bare}(" in (ROOT / file).read_text(encoding="utf-8"), guard.test
