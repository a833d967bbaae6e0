"""The guards that the flows, the rules and the edges of the process keep."""

from __future__ import annotations

from tests.guards.guard import Guard, Replaced

ANSWERS = "notifier/domain/answers.py"
DISPATCH = "notifier/flow/dispatch.py"
RECORDING = "notifier/flow/recording.py"
RESCUE = "notifier/flow/rescue.py"
DUE = "notifier/store/reads/due.py"
PUT_BACK = "notifier/flow/put_back.py"
CANCELS = "notifier/domain/cancels.py"
L = "tests/db/ledger/"
U = "tests/unit/test_answers.py::"

FLOW_GUARDS: tuple[Guard, ...] = (
    Guard(
        "nothing is claimed without the time",
        "P5",
        "a process that lost the database's clock goes on by its own",
        Replaced(DISPATCH, "self.now()  # nothing is claimed without the database's clock", "pass"),
        f"{L}test_dispatch_guards.py::"
        "test_p5_nothing_is_claimed_or_sent_while_the_time_is_not_known",
    ),
    Guard(
        "a worker that was held up does not call",
        "P5",
        "a process frozen between intent and call sends when it wakes",
        Replaced(DISPATCH, "begins_at - started.intended_at > SLIPPED_S or left <= 0", "left <= 0"),
        f"{L}test_dispatch_guards.py::"
        "test_p5_a_worker_that_was_held_up_since_its_intent_sends_nothing",
        quick=True,
    ),
    Guard(
        "a call whose time is up does not begin",
        "P5",
        "a call begins after its attempt's deadline",
        Replaced(DISPATCH, " > SLIPPED_S or left <= 0", " > SLIPPED_S"),
        f"{L}test_dispatch_guards.py::test_p5_a_call_whose_time_is_up_sends_nothing",
    ),
    Guard(
        "an adapter's own fault is unknown",
        "P3",
        "a bug after the last byte is called a failure, and the message goes again",
        Replaced(
            DISPATCH,
            "return Unknown(Reason.CONNECTION_LOST)",
            "return NotAccepted(Detail.PROVIDER_ERROR)",
        ),
        f"{L}test_dispatch_guards.py::test_p3_an_adapters_own_fault_proves_nothing_about_the_message",
    ),
    Guard(
        "an unknown outcome is never tried again",
        "P3",
        "a timeout sends a second message",
        Replaced(
            ANSWERS, "return Ruling(_S.UNKNOWN, reason)", "return _again(asked, Detail.TIMEOUT)"
        ),
        f"{U}test_p3_an_unknown_outcome_never_leads_to_another_start",
        quick=True,
    ),
    Guard(
        "a late answer that knows nothing changes nothing",
        "P3",
        "an unknown attempt goes back to the queue because its caller timed out too",
        Replaced(
            ANSWERS,
            "case Unknown():\n            return Ruling(None, _R.LATE_OUTCOME)",
            "case Unknown():\n            return _again(asked, Detail.TIMEOUT)",
        ),
        f"{U}test_p3_an_unknown_outcome_never_leads_to_another_start",
    ),
    Guard(
        "only the open attempt's answer requeues",
        "P3",
        "an old attempt's answer puts a newer one's delivery back while it is under way",
        Replaced(
            ANSWERS,
            "if asked.state is _S.ATTEMPTED and asked.attempt_is_open:",
            "if asked.state is _S.ATTEMPTED:",
        ),
        f"{U}test_p3_only_the_open_attempts_own_proof_that_nothing_left_requeues",
    ),
    Guard(
        "nothing is tried again after a cancel",
        "P6",
        "a reset that was used gets its link after all",
        Replaced(ANSWERS, "    if asked.canceled:\n", "    if False:\n"),
        f"{U}test_proven_not_sent_without_time_or_after_a_cancel_starts_nothing",
    ),
    Guard(
        "a late answer after expiry is a fact only",
        "P12",
        "an expired notice changes although people were told that it is over",
        Replaced(
            ANSWERS,
            "if asked.state is _S.UNKNOWN and asked.attempt_is_open and not asked.closed:",
            "if asked.state is _S.UNKNOWN and asked.attempt_is_open:",
        ),
        f"{U}test_after_expiry_only_the_holders_own_answer_still_ends_its_attempt",
    ),
    Guard(
        "an earlier attempt that was taken stops the retry",
        "P1",
        "a second message although the first is known to have been taken",
        Replaced(
            ANSWERS,
            "return Ruling(_S.ACCEPTED, _R.EARLIER_ATTEMPT_FOUND)",
            "return Ruling(None, _R.LATE_OUTCOME)",
        ),
        f"{U}test_p1_an_earlier_attempt_that_was_taken_after_all_stops_the_retry",
    ),
    Guard(
        "an unknown outcome leaves its attempt open",
        "P3",
        "the index that forbids a second attempt no longer sees the first",
        Replaced(
            RECORDING,
            "attempt.resolved_at is None and _ends(attempt, outcome)",
            "attempt.resolved_at is None",
        ),
        f"{L}test_recording.py::test_p3_a_timeout_is_unknown_and_its_attempt_stays_open",
    ),
    Guard(
        "the recorder keeps an outcome until it is written",
        "P3",
        "a known outcome becomes unknown because the database was away for a moment",
        Replaced(
            RECORDING,
            "if self._give_up.wait(next(waits)):\n                        return",
            "return",
        ),
        f"{L}test_recording.py::test_p3_the_outcome_is_kept_until_the_store_takes_it",
    ),
    Guard(
        "rescue asks for the lease again under the lock",
        "P9",
        "a lease that was extended meanwhile is taken from its holder",
        Replaced(RESCUE, "is None or delivery.lease_until + RESCUE_GRACE > book.now", "is None"),
        f"{L}test_rescue.py::"
        "test_p9_a_lease_that_was_extended_while_the_sweep_waited_is_left_alone",
    ),
    Guard(
        "a lease is taken back only after its end and a grace",
        "P3",
        "an answer that comes at its deadline is called lost",
        Replaced(DUE, " - make_interval(secs => %(grace)s)", " + make_interval(secs => %(grace)s)"),
        f"{L}test_rescue.py::test_p3_an_attempt_whose_lease_ran_out_is_unknown_and_stays_so",
    ),
    Guard(
        "a lost attempt is unknown",
        "P3",
        "a dead worker's delivery is sent again on a guess",
        Replaced(
            RESCUE,
            "book.move(channel, DeliveryState.UNKNOWN, Reason.WORKER_LOST, origin=origin)",
            "book.move(channel, DeliveryState.QUEUED, Reason.NOT_ACCEPTED, origin=origin)",
        ),
        f"{L}test_rescue.py::test_p3_an_attempt_whose_lease_ran_out_is_unknown_and_stays_so",
    ),
    Guard(
        "a claim is put back by its holder only",
        "P9",
        "a worker that was fenced off takes the delivery from the one that has it now",
        Replaced(
            PUT_BACK,
            "delivery.state is DeliveryState.CLAIMED and delivery.fence == claim.fence",
            "delivery.state is DeliveryState.CLAIMED",
        ),
        f"{L}test_put_back.py::test_p9_a_claim_that_is_somebody_elses_by_now_is_left_alone",
    ),
    Guard(
        "a cancel leaves what may have left to its facts",
        "P12",
        "a message that reached the person is shown as canceled",
        Replaced(
            CANCELS,
            "DeliveryState.QUEUED, DeliveryState.CLAIMED})",
            "DeliveryState.QUEUED, DeliveryState.CLAIMED, DeliveryState.UNKNOWN})",
        ),
        f"{L}test_cancel.py::test_what_may_have_left_keeps_following_its_facts",
    ),
    Guard(
        "a signature is checked before the body is read",
        "P1",
        "whoever knows the address can have bodies parsed, and learn what stands in events",
        Replaced(
            "notifier/web/machines/admission.py",
            '            raw, transport = signed_body(services, "admission")\n',
            "            require_json(request)\n"
            '            raw, transport = signed_body(services, "admission")\n',
        ),
        "tests/web/machines/test_admission.py::"
        "test_the_signature_is_looked_at_before_anything_but_the_size",
    ),
    Guard(
        "past the final dot nothing is proven",
        "P3",
        "a mail that the server took is sent again because its answer was lost",
        Replaced(
            "notifier/providers/smtp.py",
            "except LineTimedOutError:\n            return Unknown(Reason.TIMEOUT)",
            "except LineTimedOutError:\n            return NotAccepted(Detail.TIMEOUT)",
        ),
        "tests/providers/test_smtp_outcomes.py::"
        "test_p3_no_readable_answer_after_the_final_dot_is_unknown_and_sent_once",
    ),
    Guard(
        "a line carries one message",
        "P1",
        "an adapter that is asked twice sends twice",
        Replaced("notifier/providers/smtp.py", "        if self._used:\n", "        if False:\n"),
        "tests/providers/test_smtp_outcomes.py::test_a_line_carries_one_message_only",
    ),
    Guard(
        "a download gives its connection back before each part is sent",
        "P2",
        "sixteen people who read a file slowly stop admission",
        Replaced(
            "notifier/flow/exports.py",
            "            yield body\n",
            "                yield body\n",
        ),
        "tests/web/people/test_downloads.py::"
        "test_p2_a_reader_holds_no_connection_between_two_parts",
    ),
    Guard(
        "a number of a policy has a floor and a ceiling",
        "P11",
        "a period of nothing stops the scheduler, and no page can take it back",
        Replaced(
            "notifier/domain/policy_checks.py", "        *limit_contradictions(policy),\n", ""
        ),
        "tests/web/people/test_policy_limits.py::"
        "test_a_draft_with_a_number_that_breaks_something_is_refused_and_never_kept",
    ),
    Guard(
        "a kept policy is held to the limits of today",
        "P11",
        "one revision from before a limit stops every sweep",
        Replaced(
            "notifier/domain/policy.py",
            "cls._read(within_limits(document))",
            "cls._read(document)",
        ),
        "tests/web/people/test_policy_limits.py::"
        "test_the_process_works_by_the_limit_where_a_kept_number_is_past_it",
    ),
    Guard(
        "a link that is not given says why",
        "P11",
        "a wrong secret looks like a slow service, on the trail and on every page",
        Replaced("notifier/flow/put_back.py", "            detail=fault,\n", ""),
        "tests/db/ledger/test_put_back.py::"
        "test_why_no_link_was_given_stands_on_the_trail_and_beside_the_delivery"
        "_until_the_next_claim",
    ),
    Guard(
        "the doctor asks for nobody's link",
        "P4",
        "whoever looks whether all is well has a link made, and uses a request up",
        Replaced(
            "notifier/links/probe.py",
            'LinkRequest(NOBODY, NOBODY, Channel.EMAIL, "look_up")',
            "LinkRequest(NOBODY, NOBODY, Channel.EMAIL)",
        ),
        "tests/links/test_probe.py::"
        "test_the_question_is_a_signed_look_up_for_an_id_that_nobody_is_given",
    ),
)
