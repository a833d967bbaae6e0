"""P11: refused callbacks are counted where alerts can see them, and cost next to nothing."""

from __future__ import annotations

from notifier.signals.refusals import Refusals
from notifier.store.database import Database
from tests.db.rig import Rig
from tests.running import until
from tests.signals.conftest import counted


def test_p11_a_burst_of_refusals_is_written_whole_and_in_one_row(rig: Rig) -> None:
    refusals = Refusals(rig.database, write_after_s=0.05)
    for _ in range(50):
        refusals.refused("postmark")
    until(lambda: counted(rig, "callback_refused") == {("", "postmark", ""): 50}, 20)


def test_the_end_of_the_process_waits_for_no_timer(rig: Rig) -> None:
    refusals = Refusals(rig.database, write_after_s=3600)
    refusals.refused("twilio")
    refusals.close()
    refusals.close()
    assert counted(rig, "callback_refused") == {("", "twilio", ""): 1}


def test_what_could_not_be_written_is_written_with_the_next(rig: Rig) -> None:
    dead = Database("postgresql://nobody@127.0.0.1:1/none", acquire_timeout_s=0.1)
    refusals = Refusals(dead, write_after_s=3600)
    refusals.refused("smtp")
    refusals.write()
    refusals._database = rig.database
    refusals.refused("smtp")
    refusals.close()
    dead.close()
    assert counted(rig, "callback_refused") == {("", "smtp", ""): 2}


def test_p11_what_was_genuine_and_unreadable_is_counted_apart(rig: Rig) -> None:
    refusals = Refusals(rig.database, write_after_s=3600)
    refusals.unreadable("resend")
    refusals.refused("resend")
    refusals.close()
    assert counted(rig, "callback_unreadable") == {("", "resend", ""): 1}
    assert counted(rig, "callback_refused") == {("", "resend", ""): 1}
