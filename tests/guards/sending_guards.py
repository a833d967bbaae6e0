"""The guards of a process that sends: its clock, its calls, its answers, and halts."""

from __future__ import annotations

from tests.guards.guard import Guard, Replaced

CLOCK = "notifier/clock.py"
DISPATCH = "notifier/flow/dispatch.py"
CLAIM = "notifier/store/ledger/claim.py"
RECORDING = "notifier/flow/recording.py"
CLAIM_LOOP = "notifier/sweeps/claim_loop.py"
AT_CLOCK = "tests/sweeps/test_clock.py::"
AT_DISPATCH_GUARDS = "tests/db/ledger/test_dispatch_guards.py::"
AT_RECORDING = "tests/db/ledger/test_recording.py::"
AT_TURNS = "tests/db/ledger/test_pause_turns.py::"
AT_CLAIM_LOOP = "tests/db/test_claim_loop.py::"
AT_HALTS = "tests/db/ledger/test_halts.py::"

SENDING_GUARDS: tuple[Guard, ...] = (
    Guard(
        "a clock that was read long ago is not known",
        "P5",
        "a process that lost the database goes by a clock that has drifted",
        Replaced(CLOCK, "        if age > self._age_limit_s:\n", "        if False:\n"),
        f"{AT_CLOCK}test_an_old_measurement_is_not_used",
    ),
    Guard(
        "the offset is taken from before the question",
        "P5",
        "a slow answer makes the process believe that it is earlier than it is",
        Replaced(
            CLOCK,
            '(row["now"] - EPOCH).total_seconds() - asked_at',
            '(row["now"] - EPOCH).total_seconds() - answered_at',
        ),
        f"{AT_CLOCK}test_p5_it_is_never_earlier_than_the_database",
    ),
    Guard(
        "no link is asked for after the stop time",
        "P5",
        "links are made that nobody will be sent",
        Replaced(
            DISPATCH,
            "        if left <= 0:\n            put_back.settle",
            "        if False:\n            put_back.settle",
        ),
        f"{AT_DISPATCH_GUARDS}test_p5_no_link_is_asked_for_from_the_stop_time_on",
    ),
    Guard(
        "the time of a call is counted from before its intent",
        "P5",
        "what the intent's own answer took is added to the call's time",
        Replaced(
            DISPATCH,
            "return Started(intent, reference, intended_at, intended_at + left)",
            "return Started(intent, reference, intended_at, time.monotonic() + left)",
        ),
        f"{AT_DISPATCH_GUARDS}test_p5_the_time_of_a_call_is_counted_from_before_its_intent",
    ),
    Guard(
        "the provider is told what life is left",
        "P5",
        "a provider holds a message until long after its link is dead",
        Replaced(
            DISPATCH,
            "validity_s=max(int(remaining_seconds(granted.expires_at, started.intent.now)), 0)",
            "validity_s=86_400",
        ),
        f"{AT_DISPATCH_GUARDS}test_p5_the_provider_is_given_what_is_left_and_not_a_second_more",
    ),
    Guard(
        "the least validity goes first",
        "P5",
        "after an outage what could still be saved waits behind what has time",
        Replaced(
            CLAIM,
            "ORDER BY d.stop_at, d.notice_id\n         LIMIT %(slots)s",
            "ORDER BY d.due_at, d.notice_id\n         LIMIT %(slots)s",
        ),
        "tests/db/ledger/test_claim.py::test_the_least_validity_goes_first",
    ),
    Guard(
        "a worker that is to stop hands its claim back",
        "P9",
        "each stop in good order costs every claim a whole lease",
        Replaced(DISPATCH, "        if self.stopping():\n", "        if False:\n"),
        f"{AT_DISPATCH_GUARDS}test_p9_a_process_that_is_to_end_hands_its_claim_back",
    ),
    Guard(
        "an answer is a fact whoever holds the lease",
        "P12",
        "a message that was taken stays unknown because its lease was taken back",
        Replaced(
            RECORDING,
            "            if attempt is None:\n                return\n",
            "            if attempt is None:\n"
            "                return\n"
            "            if book.deliveries[channel].lease_owner is None:\n"
            "                return\n",
        ),
        f"{AT_RECORDING}test_p3_a_late_answer_is_taken_whoever_was_told_what_meanwhile",
    ),
    Guard(
        "an answer never overwrites what is known",
        "P12",
        "a late answer rewrites what a receipt had told of an attempt",
        Replaced(
            RECORDING,
            "if attempt.resolved_at is not None and attempt.outcome is not None:",
            "if False:",
        ),
        f"{AT_RECORDING}test_an_answer_never_rewrites_what_is_known_of_its_attempt",
    ),
    Guard(
        "a refusal that is about us pauses the provider",
        "P11",
        "every notice uses up its attempts on a password that was changed",
        Replaced(
            RECORDING,
            "            if isinstance(outcome, NotAccepted) and outcome.pause:\n",
            "            if False:\n",
        ),
        f"{AT_RECORDING}test_trouble_that_is_about_us_pauses_the_provider_for_all",
    ),
    Guard(
        "a pause is never shortened",
        "P11",
        "a provider that asked for an hour is called after a minute",
        Replaced(
            "notifier/store/ledger/pauses.py",
            "until = greatest(nullif(p.until, %(turn_until)s::timestamptz), excluded.until)",
            "until = excluded.until",
        ),
        f"{AT_RECORDING}test_a_pause_is_never_shortened_by_a_later_one",
    ),
    Guard(
        "after a pause one call tries the provider",
        "P11",
        "when a pause ends every free worker of every process calls who refused us, at once",
        Replaced(
            "notifier/store/ledger/pauses.py",
            "p.until IS DISTINCT FROM %(turn_until)s::timestamptz)",
            "p.until > clock.now)",
        ),
        f"{AT_TURNS}test_p11_after_a_pause_one_call_of_all_processes_tries_the_provider"
        "_and_then_all_go_on[accepted]",
    ),
    Guard(
        "a turn that came to no call is given back",
        "P11",
        "one notice without a link keeps all others from a provider that works again",
        Replaced(
            "notifier/flow/dispatch.py",
            "turns.give_back(self.database, self.desk, claim, sender.name)",
            "del sender",
        ),
        f"{AT_TURNS}test_p11_a_worker_that_comes_to_no_call_gives_its_turn_back[no link]",
    ),
    Guard(
        "nothing is claimed while an outcome waits to be written",
        "P3",
        "a process that cannot write goes on sending what it cannot tell of",
        Replaced(
            CLAIM_LOOP,
            "                if self._dispatch.recorder.waiting:\n",
            "                if False:\n",
        ),
        f"{AT_CLAIM_LOOP}test_p3_nothing_is_claimed_while_an_outcome_waits_to_be_written",
    ),
    Guard(
        "one channel leaves the other its threads",
        "P11",
        "a provider that hangs takes every worker, and the other channel stands still",
        Replaced(
            CLAIM_LOOP,
            "            return max(self._workers - self._busy.total() - kept, 0)\n",
            "            return max(self._workers - self._busy.total(), 0)\n",
        ),
        f"{AT_CLAIM_LOOP}test_p11_a_channel_that_hangs_leaves_the_other_a_part_of_the_threads",
    ),
    Guard(
        "a halt of one channel covers its own",
        "P10",
        "a halt of one channel stops nothing",
        Replaced(
            CLAIM,
            "ARRAY['all', 'channel:' || d.channel, 'provider:' || %(provider)s",
            "ARRAY['all', 'provider:' || %(provider)s",
        ),
        f"{AT_HALTS}test_p10_each_scope_stops_the_start_and_lists_what_it_covers",
    ),
    Guard(
        "a halt of one provider covers its own",
        "P10",
        "a halt of one provider stops nothing",
        Replaced(
            CLAIM,
            "'provider:' || %(provider)s::text,",
            "'provider:' || coalesce(%(provider)s::text, '') || '-',",
        ),
        f"{AT_HALTS}test_p10_each_scope_stops_the_start_and_lists_what_it_covers",
    ),
    Guard(
        "a halt of one template covers its own",
        "P10",
        "a halt of one template stops nothing",
        Replaced(
            CLAIM,
            "    'template:' || n.template_id || '@' || n.template_revision,\n    'account:'",
            "    'account:'",
        ),
        f"{AT_HALTS}test_p10_each_scope_stops_the_start_and_lists_what_it_covers",
    ),
    Guard(
        "a halt of one account covers its own",
        "P10",
        "a halt of one account stops nothing",
        Replaced(
            CLAIM,
            '    \'account:\' || n.account_id, \'event:\' || n.event_id]"""\n"""The halts',
            '    \'event:\' || n.event_id]"""\n"""The halts',
        ),
        f"{AT_HALTS}test_p10_each_scope_stops_the_start_and_lists_what_it_covers",
    ),
    Guard(
        "a halt of one event covers its own",
        "P10",
        "a halt of one event stops nothing",
        Replaced(
            CLAIM,
            '    \'account:\' || n.account_id, \'event:\' || n.event_id]"""\n"""The halts',
            '    \'account:\' || n.account_id]"""\n"""The halts',
        ),
        f"{AT_HALTS}test_p10_each_scope_stops_the_start_and_lists_what_it_covers",
    ),
    Guard(
        "a halt is decided on what stands",
        "P10",
        "whoever looked an hour ago releases a halt that was engaged since",
        Replaced(
            "notifier/store/ledger/halts.py",
            "        _check_version(standing(connection), version)\n        if connection",
            "        if connection",
        ),
        "tests/web/people/test_halts.py::"
        "test_p10_a_release_needs_the_state_that_was_seen_and_happens_once",
    ),
)
