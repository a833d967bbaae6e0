"""What `flask rehearse` prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from flask import Flask

from notifier import cli
from notifier.cli_rehearse import rehearse_command
from notifier.rehearsal import library
from notifier.settings import load_settings
from peers.run_settings import Secrets, mail_only


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "150"}).invoke(rehearse_command(), arguments)


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    path = tmp_path / "draft.toml"
    path.write_text('on_unconfirmed = "hold"\n')
    return path


def test_it_is_one_of_the_applications_commands(tmp_path: Path) -> None:
    app = Flask("commands")
    known = Secrets.load(tmp_path / "secrets.json")
    given = mail_only(
        known, data_dir=tmp_path, port=1, link_url="http://127.0.0.1:1/links", smtp_port=1
    )
    cli.install(app, load_settings(given), "postgresql://127.0.0.1:1/none", tuple)
    told = app.test_cli_runner().invoke(args=["rehearse", "--list"])
    assert told.exit_code == 0
    assert "matrix-late-callback" in told.output


def test_the_list_has_every_scenario_with_its_sentence() -> None:
    told = run("--list").output.splitlines()
    assert [line.split()[0] for line in told] == library.names()
    assert all(library.load(line.split()[0]).title in line for line in told)


def test_a_timeline_has_offset_remaining_validity_move_and_plain_words() -> None:
    told = run("matrix-email-failed-then-text")
    assert told.exit_code == 0
    assert "T+0:12    9:47 left   email: handed over -> failed" in told.output
    assert "The text message was queued, because the email failed." in told.output
    assert "ended as:       complete, basis delivered" in told.output
    assert "headline:       The text message was delivered at 12:00 UTC." in told.output
    assert "customer:       Ask the customer to look at the text messages" in told.output
    assert "as the scenario expects" in told.output


def test_looks_in_vain_are_told_as_one_step() -> None:
    told = run("failure-absence-proven").output
    assert "asked for the email 3 times and found none" in told


def test_what_was_told_late_stands_where_it_happened() -> None:
    lines = run("fallback-was-avoidable").output.splitlines()
    [place] = [i for i, line in enumerate(lines) if "handed over -> delivered" in line][:1]
    assert lines[place].startswith("T+0:20")
    assert "We were told 5:00 later." in lines[place + 1]


def test_a_draft_stands_beside_today_with_what_differs_marked(draft: Path) -> None:
    told = run("fallback-email-unconfirmed", "--draft", str(draft))
    assert told.exit_code == 0
    assert "on_unconfirmed: send -> hold" in told.output
    marked = [line for line in told.output.splitlines() if line.startswith("!")]
    assert any("sms: in reserve -> waiting" in line and "sms: noted" in line for line in marked)
    assert any(line.startswith("! texts started: 1") and "started: 0" in line for line in marked)
    same = [line for line in told.output.splitlines() if line.startswith("  T+0:00")]
    assert len(same) >= 3


def test_a_draft_that_changes_nothing_marks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "same.toml"
    path.write_text("lease_s = 30.0\n")
    told = run("matrix-accepted-then-delivered", "--draft", str(path)).output
    assert "The draft changes no value." in told
    assert not [line for line in told.splitlines() if line.startswith("!")]


def test_a_refused_policy_file_is_told_as_the_product_tells_it(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("lease_s = 1.0\n")
    told = run("matrix-accepted-then-delivered", "--policy", str(path))
    assert told.exit_code == 1
    assert "/lease_s: lease_s 1 must be above 4" in told.output


def test_an_unknown_scenario_and_none_at_all_are_refused() -> None:
    unknown = run("matrix-late-callbak")
    assert unknown.exit_code == 1
    assert "near to it: matrix-late-callback" in unknown.output
    assert run().exit_code == 2
    assert "--list" in run().output
    assert "takes no scenario" in run("matrix-late-callback", "--sample", "5").output


def test_a_scenario_that_goes_otherwise_than_it_says_exits_with_1(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    source = (library.FOLDER / "matrix-late-callback.toml").read_text()
    path.write_text(source.replace('state = "expired"', 'state = "complete"'))
    told = run(str(path))
    assert told.exit_code == 1
    assert "state: expected complete, was expired" in told.output


def test_a_sample_tells_shares_of_both_policies(draft: Path) -> None:
    told = run("--sample", "60", "--seed", "3", "--draft", str(draft))
    assert told.exit_code == 0
    assert "60 notices, seed 3" in told.output
    assert "email delivered in time" in told.output
    assert told.output == run("--sample", "60", "--seed", "3", "--draft", str(draft)).output
