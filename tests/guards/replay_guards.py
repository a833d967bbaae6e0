"""The guards that keep a replay from making a second message, or one that nobody wants any more."""

from __future__ import annotations

from tests.guards.guard import Guard, Replaced

ANSWERS = "notifier/domain/answers.py"
DECISION = "notifier/domain/replay.py"
DISPATCH = "notifier/flow/dispatch.py"
RECORDING = "notifier/flow/recording.py"
REPLAYS = "notifier/flow/replays.py"
BOOK = "notifier/store/ledger/book.py"
HALTS = "notifier/store/ledger/halts.py"
REPLAY = "notifier/store/ledger/replay.py"
RESEND = "notifier/providers/resend.py"
A = "tests/db/ledger/test_replay_answers.py::"
S = "tests/db/ledger/test_replay_start.py::"
U = "tests/unit/test_answers.py::"
ALONE = f"{S}test_each_guard_alone_forbids_the_replay"
CLAIMED = f"{S}test_what_could_not_start_is_not_claimed_either"
DECIDED = "tests/unit/test_replay.py::test_p3_each_condition_alone_forbids_a_replay"


def _start(
    guard: str, promise: str, without: str, line: str, *, instead: str = "", quick: bool = False
) -> Guard:
    """A line of the start's verdict, watched by the case of its name."""
    name = f"the start of a replay is guarded by: {guard}"
    return Guard(
        name, promise, without, Replaced(REPLAY, line, instead), f"{ALONE}[{guard}]", quick=quick
    )


def _judged(condition: str, verdict: str) -> str:
    return f"                    WHEN {condition} THEN '{verdict}'\n"


def _decision(name: str, without: str, line: str, case: str) -> Guard:
    return Guard(name, "P3", without, Replaced(DECISION, line, ""), f"{DECIDED}[{case}]")


REPLAY_GUARDS: tuple[Guard, ...] = (
    _start(
        "fence",
        "P9",
        "a worker that slept through its mark's lease calls beside the one that took over",
        "OR fence <> %(fence)s THEN 'fenced'",
        instead="OR fence < %(fence)s - 1000000 THEN 'fenced'",
    ),
    _start(
        "mark",
        "P4",
        "a call is repeated that nobody authorised",
        "WHEN replay_due_at IS NULL OR fence",
        instead="WHEN fence",
    ),
    _start(
        "state",
        "P12",
        "what is known to have been accepted is sent again",
        "WHEN state <> 'unknown' OR resolved_at",
        instead="WHEN resolved_at",
    ),
    _start(
        "resolved",
        "P3",
        "an attempt whose end is known is repeated",
        "WHEN state <> 'unknown' OR resolved_at IS NOT NULL THEN",
        instead="WHEN state <> 'unknown' THEN",
    ),
    _start(
        "once",
        "P3",
        "a call is repeated as often as it times out",
        _judged("replay_started_at IS NOT NULL", "started_before"),
        quick=True,
    ),
    _start(
        "cancel",
        "P6",
        "a reset that was used gets its link after all",
        _judged("canceled_at IS NOT NULL", "canceled"),
    ),
    _start(
        "stop time",
        "P5",
        "a replay starts after the latest useful moment",
        "clock.now >= least(stop_at, %(not_after)s)",
        instead="clock.now >= %(not_after)s",
    ),
    _start(
        "not after",
        "P5",
        "a replay starts although its link has ended",
        "clock.now >= least(stop_at, %(not_after)s)",
        instead="clock.now >= least(stop_at, %(not_after)s + interval '1 day')",
    ),
    _start(
        "superseded",
        "P6",
        "the link of an earlier request arrives after a later one's",
        _judged("superseded", "superseded"),
    ),
    _start(
        "fallback",
        "P6",
        "the email is sent again beside the text that took its place",
        "                  AND t.requeued_at IS NOT NULL)))",
        instead="                  AND false)))",
    ),
    _start(
        "fallback time",
        "P6",
        "a replay starts at the moment when the text goes in its place",
        "({FALLBACK_FIRST} AND NOT n.hold_noted)",
        instead="({FALLBACK_FIRST} AND false)",
    ),
    _start("halt", "P10", "a replay starts under a halt", _judged("halted", "halted")),
    _start("pause", "P11", "a paused provider is called", _judged("paused", "paused")),
    _start(
        "key",
        "P3",
        "a key that the provider forgot makes a second message",
        _judged("key_too_old", "key_too_old"),
        quick=True,
    ),
    _start(
        "message",
        "P3",
        "another text goes out under the key of the first",
        _judged("message_digest <> %(message_digest)s", "changed"),
    ),
    Guard(
        "a replay waits for the halts' gate and the row",
        "P5",
        "a replay that waited for its row judges by the time before the wait",
        Replaced(REPLAY, "        _HOLD.run(connection, values)\n", ""),
        f"{S}test_p5_a_replay_that_waited_for_the_row_judges_by_the_time_when_it_goes_on",
    ),
    Guard(
        "a mark is claimed by one",
        "P9",
        "two workers repeat one call at once",
        Replaced(REPLAY, "replay_due_at = clock.now + %(lease)s", "replay_due_at = clock.now"),
        f"{S}test_a_mark_is_claimed_once_with_a_new_fence_and_falls_due_again",
    ),
    Guard(
        "a mark's claim takes a new fencing token",
        "P9",
        "a worker whose mark was taken over goes on beside the other",
        Replaced(REPLAY, "SET fence = d.fence + 1, replay_due_at", "SET replay_due_at"),
        f"{S}test_p9_a_worker_whose_mark_was_taken_over_is_fenced_off",
    ),
    Guard(
        "a mark that somebody holds is skipped",
        "P9",
        "claimers queue up behind one notice",
        Replaced(REPLAY, "FOR UPDATE OF d SKIP LOCKED", "FOR UPDATE OF d"),
        f"{S}test_p9_a_mark_that_somebody_holds_is_skipped_not_waited_for",
    ),
    Guard(
        "marks under a halt are not claimed",
        "P10",
        "links are asked for again and again while nothing may be sent",
        Replaced(REPLAY, " AND NOT {HALTED} AND NOT {SHUT}", " AND NOT {SHUT}"),
        f"{CLAIMED}[halt]",
    ),
    Guard(
        "a move takes the mark back",
        "P12",
        "a mark outlives what it was for",
        Replaced(BOOK, 'columns["replay_due_at"] = None', "pass"),
        f"{S}test_p12_what_is_known_meanwhile_takes_the_mark_back",
    ),
    _decision(
        "a replay is authorised once",
        "a replay that was turned away is permitted again at each look",
        "        and not view.authorised\n",
        "{'authorised': True}",
    ),
    _decision(
        "no replay is authorised after a cancel",
        "a mark stands for a reset that was used",
        "        and not view.canceled\n",
        "{'canceled': True}",
    ),
    _decision(
        "no replay is authorised after the fallback",
        "a mark stands for an email whose text took its place",
        "        and not view.fallback_taken\n",
        "{'fallback_taken': True}",
    ),
    Guard(
        "the last look drops a replay that is not needed",
        "P12",
        "a message that is known to have arrived is sent again",
        Replaced(
            DISPATCH, "return None if needed else NotAccepted(Detail.CANCELLED)", "return None"
        ),
        f"{A}test_p12_a_receipt_between_start_and_call_drops_the_replay",
        quick=True,
    ),
    Guard(
        "the last look asks for the lease",
        "P9",
        "a worker that was given up as lost begins its call",
        Replaced(REPLAY, "\n   AND d.lease_until > db_now()", ""),
        f"{S}test_p9_a_replay_whose_lease_was_taken_back_is_not_called_any_more",
    ),
    Guard(
        "no replay is used up without a line",
        "P3",
        "a provider that is down for a moment costs the one replay",
        Replaced(DISPATCH, "if claim.repeats and isinstance(line, NotAccepted):", "if False:"),
        f"{A}test_no_replay_is_used_up_on_a_line_that_could_not_be_opened",
    ),
    Guard(
        "a replay goes to the same destination",
        "P3",
        "a second person gets the link that the first one may have",
        Replaced(
            REPLAYS,
            "case LinkGranted() if contacts.is_known(claim, answer.destination):",
            "case LinkGranted() if True:",
        ),
        f"{A}test_p3_another_message_or_another_address_is_not_sent_in_its_place",
    ),
    Guard(
        "a replay that is turned away proves nothing",
        "P3",
        "the first call's message is called failed while it is on its way",
        Replaced(ANSWERS, "if asked.replayed and not isinstance(outcome, Accepted):", "if False:"),
        f"{U}test_p3_a_replay_that_is_turned_away_proves_nothing_about_the_first_call",
    ),
    Guard(
        "with a replay only a yes ends the attempt",
        "P3",
        "the index that forbids a second attempt no longer sees the first",
        Replaced(RECORDING, "return isinstance(outcome, Accepted)", "return True"),
        f"{A}test_p3_a_replay_that_is_not_taken_leaves_it_unknown_for_good",
    ),
    Guard(
        "a replay that was never committed leaves nothing",
        "P12",
        "the trail tells of a call that never was",
        Replaced(RECORDING, "if claim.repeats and attempt.replay_started_at is None:", "if False:"),
        f"{A}test_a_start_that_was_never_committed_leaves_no_trace",
    ),
    Guard(
        "a replay without an answer is in flight",
        "P10",
        "a halt is shown in effect while a frozen worker may still begin its replay",
        Replaced(HALTS, "replay_started_at IS NOT NULL AND replay_ended_at IS NULL", "false"),
        f"{S}test_p10_a_replay_is_in_flight_until_its_own_answer",
    ),
    Guard(
        "a key in use proves nothing",
        "P3",
        "a message that is being taken at this moment is called refused",
        Replaced(
            "notifier/providers/resend_codes.py",
            "    if name in (KEY_IN_USE, KEY_USED):\n        return None\n",
            "",
        ),
        "tests/providers/test_resend_sending.py::test_p3_a_key_that_is_in_use_proves_nothing",
    ),
    Guard(
        "a webhook is verified before it is read",
        "P12",
        "whoever knows the address says what was delivered",
        Replaced(RESEND, "raise CallbackRefused from None", "pass"),
        "tests/providers/test_resend_asking.py::"
        "test_p12_what_the_secret_did_not_sign_just_now_is_refused",
    ),
)
