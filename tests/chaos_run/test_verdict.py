"""The verdict finds what it looks for: each broken promise, made up in rows and journals."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.chaos_run import verdict
from tests.chaos_run.explain import Causes
from tests.chaos_run.figures import Figure, Report
from tests.chaos_run.fleet import Frozen
from tests.chaos_run.havoc import Kill, Outage
from tests.chaos_run.journals import Seen, Wire
from tests.chaos_run.senders import Told
from tests.chaos_run.verdict import Book

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
MAIL, NUMBER = "deliver+1@example.test", "+12015550100"
PID = 4711
NOTHING = Seen((), (), {}, 0, 0)

Row = dict[str, Any]


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def wire(seconds: float = 1.0, reference: str = "ref-1", fate: str = "deliver") -> Wire:
    return Wire(MAIL, reference, fate, at(seconds).timestamp())


def seen(*kept: Wire, posts: tuple[Wire, ...] | None = None) -> dict[str, Seen]:
    return {
        "email": Seen(kept if posts is None else posts, kept, {}, 0, 0),
        "sms": NOTHING,
    }


def told(**more: Any) -> Told:
    event = {
        "event_id": "evt-1",
        "expires_at": at(40).isoformat(),
        "destinations": {"email": MAIL, "sms": NUMBER},
    }
    return Told(events={"evt-1": event}, identity={"evt-1": "n-1"}, **more)


def delivery(**other: Any) -> Row:
    usual: Row = {
        "event_id": "evt-1",
        "notice_id": "n-1",
        "notice_state": "complete",
        "channel": "email",
        "state": "delivered",
        "reason": "receipt",
        "stop_at": at(39),
        "expires_at": at(40),
        "attempts": 1,
        "final_acceptance": False,
        "life_s": 40.0,
    }
    return usual | other


def attempt(**other: Any) -> Row:
    usual: Row = {
        "event_id": "evt-1",
        "channel": "email",
        "provider": "postmark",
        "reference": "ref-1",
        "owner": f"host:{PID}:1",
        "started_at": at(0.9),
        "deadline": at(4.9),
        "finished_at": at(1.2),
        "outcome": "accepted",
        "reason": None,
        "replay_started_at": None,
    }
    return usual | other


def book(delivered: Row | None = None, tried: Row | None = None, *reasons: str) -> Book:
    said = [{"notice_id": "n-1", "channel": "email", "reason": each} for each in reasons]
    return Book.of([delivered or delivery()], [tried or attempt()], said)


def later(outage: Outage) -> Outage:
    return replace(outage, begin=outage.begin + 5, end=outage.end + 5)


def causes(journals: dict[str, Seen], **what: Any) -> Causes:
    none: dict[str, Any] = {"kills": (), "frozen": (), "restarts": (), "outages": ()}
    return Causes(**(none | what), seen=journals, told=told())


def test_a_run_without_fault_breaks_nothing() -> None:
    journals = seen(wire())
    assert not verdict.lost(book(), told()).names
    assert not verdict.duplicates(journals["email"]).names
    assert not verdict.repeated_on_the_wire(book(), journals["email"]).names
    assert not verdict.started_late(book()).names
    assert not verdict.told_falsely(book(), told(), journals).names
    assert verdict.nobody_told(told(), journals) == 0
    assert verdict.kept_after_expiry(told(), journals, verdict.expiries(told())) == 0


def test_a_second_message_for_one_person_is_a_double_under_any_reference() -> None:
    twice = seen(wire(), wire(2.0, "ref-2"))
    assert verdict.duplicates(twice["email"]).names == [f"{MAIL} ref-2"]


def test_a_second_post_of_an_attempt_is_found_unless_it_is_its_replay() -> None:
    twice = seen(wire(), posts=(wire(), wire(2.0)))["email"]
    assert len(verdict.repeated_on_the_wire(book(), twice)) == 1
    replayed = book(tried=attempt(replay_started_at=at(2)))
    assert not verdict.repeated_on_the_wire(replayed, twice).names


def test_what_was_acknowledged_and_has_no_row_no_end_or_no_reason_is_lost() -> None:
    untried = {"state": "expired", "attempts": 0, "reason": "too_close_to_expiry"}
    nowhere = Book.of([], [], [])
    assert len(verdict.lost(nowhere, told())) == 1
    for broken in (
        {"notice_id": "another"},
        {"notice_state": "email_pending"},
        {"state": "unknown"},
        {"state": "accepted"},
        untried | {"reason": "claimed"},
        untried,
    ):
        assert len(verdict.lost(book(delivery(**broken)), told())) == 1, broken
    for lawful in (untried | {"life_s": 5.0}, {"state": "accepted", "final_acceptance": True}):
        assert not verdict.lost(book(delivery(**lawful)), told()).names, lawful
    assert not verdict.lost(book(delivery(**untried), None, "link_unavailable"), told()).names


def test_an_intent_at_the_stop_time_has_started_late() -> None:
    assert len(verdict.started_late(book(tried=attempt(started_at=at(39))))) == 1
    assert not verdict.started_late(book(tried=attempt(started_at=at(38.9)))).names


def test_what_arrives_after_expiry_is_told_by_whether_its_process_stood_still() -> None:
    journals = seen(wire(40.5))
    running, frozen = verdict.arrived_late(book(), journals, causes(journals))
    assert (len(running), len(frozen)) == (2, 0)
    still = causes(journals, frozen=[Frozen((PID,), at(1).timestamp(), at(41).timestamp())])
    running, frozen = verdict.arrived_late(book(), journals, still)
    assert (len(running), len(frozen)) == (0, 2)
    in_the_margin = seen(wire(39.5))
    running, frozen = verdict.arrived_late(book(), in_the_margin, causes(in_the_margin))
    assert (len(running), len(frozen)) == (0, 0)


def test_an_end_that_the_journal_does_not_bear_out_is_told_falsely() -> None:
    nothing = seen()
    assert len(verdict.told_falsely(book(), told(), nothing)) == 2  # the state, and the outcome
    refused = book(delivery(state="failed"), attempt(outcome="refused"))
    assert len(verdict.told_falsely(refused, told(), seen(wire()))) == 1
    assert not verdict.told_falsely(refused, told(), nothing).names


def test_an_unknown_end_needs_an_explanation_that_fits() -> None:
    ended = delivery(state="expired", reason="unknown_at_expiry")
    lost = book(ended, attempt(outcome="unknown", reason="worker_lost"))
    journals = seen(wire())
    killed = Kill(at(1).timestamp(), (PID,), False, frozenset())
    for fitting in (
        {"kills": [killed]},
        {"frozen": [Frozen((PID,), at(1).timestamp(), at(6).timestamp())]},
        {"restarts": [Outage("Postgres killed", at(2).timestamp(), at(3).timestamp())]},
    ):
        explained, strange = verdict.unknown(lost, causes(journals, **fitting))
        assert (explained.total(), len(strange)) == (1, 0), fitting
    for unfitting in (
        {},
        {"kills": [replace(killed, pids=(PID + 1,))]},
        {"kills": [replace(killed, at=at(-20).timestamp())]},
        {"outages": [Outage("postmark cut", at(1).timestamp(), at(1).timestamp())]},
    ):
        explained, strange = verdict.unknown(lost, causes(journals, **unfitting))
        assert (explained.total(), len(strange)) == (0, 1), unfitting


def test_a_call_that_broke_is_explained_by_the_provider_or_by_the_way() -> None:
    ended = delivery(state="expired", reason="unknown_at_expiry")
    broke = book(ended, attempt(outcome="unknown", reason="connection_lost"))
    silent, usual = seen(wire(fate="drop-after-accept")), seen(wire())
    assert verdict.unknown(broke, causes(silent))[0].total() == 1
    assert len(verdict.unknown(broke, causes(usual))[1]) == 1
    cut = [Outage("postmark cut", at(1).timestamp(), at(1).timestamp())]
    assert verdict.unknown(broke, causes(usual, outages=cut))[0].total() == 1
    for elsewhere in (Outage("twilio cut", cut[0].begin, cut[0].end), later(cut[0])):
        assert not verdict.unknown(broke, causes(usual, outages=[elsewhere]))[0].total()


def test_a_call_that_ran_out_of_time_is_explained_unless_its_answer_was_there_in_time() -> None:
    ended = delivery(state="expired", reason="unknown_at_expiry")
    slow = attempt(outcome="unknown", reason="timeout", finished_at=at(4.9))
    for came, explains in ((4.8, 1), (5.3, 1), (1.2, 0)):
        kept = (wire(1.0),)
        journals = {
            "email": Seen(kept, kept, {"ref-1": at(came).timestamp()}, 0, 0),
            "sms": NOTHING,
        }
        assert verdict.unknown(book(ended, slow), causes(journals))[0].total() == explains, came
    early = book(ended, slow | {"finished_at": at(2)})
    assert len(verdict.unknown(early, causes(seen()))[1]) == 1
    assert verdict.unknown(book(ended, slow), causes(seen()))[0].total() == 1


def test_a_report_holds_only_while_every_bound_does() -> None:
    good = [Figure("a", 0, 7, at_most=0), Figure("b", 3, at_least=3), Figure("c", None)]
    assert Report({}, good).holds
    for bad in (
        Figure("d", 1, at_most=0),
        Figure("d", 2, at_least=3),
        Figure("d", None, at_most=0),
    ):
        report = Report({}, [*good, bad])
        assert not report.holds
        assert "BROKEN" in report.text()
