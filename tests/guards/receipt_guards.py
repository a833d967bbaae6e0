"""The guards that receipts, look-ups and the fallback keep."""

from __future__ import annotations

from tests.guards.guard import Guard, Migrated, Replaced

FALLBACK = "notifier/domain/fallback.py"
JUDGE = "notifier/domain/receipts.py"
RECEIPTS = "notifier/flow/receipts.py"
RECONCILE = "notifier/flow/reconcile.py"
ABSENCE = "notifier/domain/absence.py"
INBOX = "notifier/store/ledger/receipts.py"
INTENT = "notifier/store/ledger/intent.py"
LOOKS = "notifier/store/ledger/looks.py"
L = "tests/db/ledger/"
ALONE = (
    f"{L}test_reconcile_absence.py::test_p3_each_condition_alone_keeps_an_absence_from_being_proof"
)


def _absence(name: str, without: str, line: str, test: str) -> Guard:
    return Guard(name, "P3", without, Replaced(ABSENCE, line, ""), test)


RECEIPT_GUARDS: tuple[Guard, ...] = (
    Guard(
        "unique key `receipt_once`",
        "P12",
        "a callback that a provider repeats is a new fact each time",
        Migrated(
            "CREATE FUNCTION notifier.of_its_own() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN NEW.identity := uuid_send(NEW.receipt_id); RETURN NEW; END $$;"
            "CREATE TRIGGER of_its_own BEFORE INSERT ON notifier.receipt"
            " FOR EACH ROW EXECUTE FUNCTION notifier.of_its_own()"
        ),
        f"{L}test_receipts.py::test_a_receipt_that_is_told_again_is_stored_and_applied_once",
    ),
    Guard(
        "receipts are stored in one order",
        "P9",
        "two batches told in opposite orders wait for each other, and the provider hears a fault",
        Replaced(INBOX, "for row in sorted(rows, key=_identity):", "for row in rows:"),
        f"{L}test_receipts_at_once.py::"
        "test_batches_that_name_the_same_things_in_opposite_orders_never_deadlock",
    ),
    Guard(
        "a reference is believed at its own provider",
        "P12",
        "one provider's callback fails another's message",
        Replaced(
            INBOX, "JOIN attempt a ON a.provider = r.provider\n   AND (", "JOIN attempt a ON ("
        ),
        f"{L}test_receipts.py::"
        "test_a_reference_is_believed_only_at_the_provider_that_it_was_given_to",
    ),
    Guard(
        "a receipt is taken once under the notice's lock",
        "P12",
        "callback and sweep apply one receipt twice",
        Replaced(
            INBOX,
            "WHERE receipt_id = %(receipt_id)s AND applied_at IS NULL FOR UPDATE",
            "WHERE receipt_id = %(receipt_id)s FOR UPDATE",
        ),
        f"{L}test_receipts_at_once.py::test_p12_a_receipt_that_two_sweeps_apply_at_once_is_one_fact",
    ),
    Guard(
        "an answer applies the receipts that waited for its id",
        "P12",
        "a bounce that was told early is heard only with the next sweep",
        Replaced(
            "notifier/flow/recording.py",
            "apply_waiting(book, connection, known)",
            "pass",
        ),
        f"{L}test_receipts.py::"
        "test_the_answer_that_teaches_the_providers_id_applies_what_waited_for_it",
    ),
    Guard(
        "a parked receipt that fails holds up no other",
        "P11",
        "one locked notice keeps every later receipt in the inbox",
        Replaced(RECEIPTS, "if connection.closed:\n                    raise", "raise"),
        f"{L}test_receipts_at_once.py::test_one_receipt_that_cannot_be_applied_holds_up_no_other",
    ),
    Guard(
        "a receipt after the end is a fact only",
        "P12",
        "an expired notice changes although people were told that it is over",
        Replaced(JUDGE, "if known.closed or known.state in CLOSED:", "if known.state in CLOSED:"),
        f"{L}test_receipts_and_states.py::"
        "test_a_hard_failure_after_expiry_contradicts_what_was_delivered_and_changes_nothing",
    ),
    Guard(
        "a lesser receipt takes nothing back",
        "P12",
        "the order of arrival decides what became of a message",
        Replaced(JUDGE, "if _TARGET_RANK[target] <= _RANK[known.state]:", "if False:"),
        f"{L}test_receipts_and_states.py::test_a_state_is_never_taken_back_by_a_lesser_fact",
    ),
    _absence(
        "an absence is proof where the policy says so",
        "a provider whose search lags has its messages sent twice",
        "view.is_believed\n        and ",
        f"{L}test_reconcile_absence.py::test_p3_an_absence_proves_nothing_where_the_policy_does_not_say_so",
    ),
    _absence(
        "an absence is proof by reference alone",
        "a search by recipient and time that misses a message has it sent again",
        "and view.by_reference\n        ",
        f"{ALONE}[by_destination]",
    ),
    _absence(
        "an absence is proof after the call's end",
        "a call that still goes on is looked for, not found, and made again",
        "and view.call_ended\n        ",
        f"{ALONE}[call_not_ended]",
    ),
    _absence(
        "an absence is no proof after a lost worker",
        "a frozen worker wakes up and sends beside the new attempt",
        "and not view.worker_lost\n        ",
        f"{ALONE}[worker_lost]",
    ),
    _absence(
        "an absence is proof after the settling time",
        "a message that the provider has not indexed yet is sent again",
        "and view.now - view.ended_at >= timedelta(seconds=view.settle_s)\n        ",
        f"{ALONE}[not_settled]",
    ),
    _absence(
        "an absence is proof after several looks",
        "one empty answer sends a second message",
        "        and view.looks >= AGREEING_LOOKS\n",
        f"{L}test_reconcile_absence.py::test_p3_two_looks_are_not_several",
    ),
    Guard(
        "looks that agree stand next to each other",
        "P3",
        "a message that was found going on is called absent later",
        Replaced(RECONCILE, "book.amend(channel, absent_looks=0)", "pass"),
        f"{L}test_reconcile_absence.py::test_p3_looks_agree_only_where_no_other_answer_stands_between_them",
    ),
    Guard(
        "a message that has an owner is not taken",
        "P3",
        "one text stands as the proof of two",
        Replaced(
            RECONCILE,
            "if each.provider_message_id not in taken]",
            "if each.provider_message_id]",
        ),
        f"{L}test_reconcile_texts.py::"
        "test_a_message_that_belongs_to_another_attempt_is_not_taken_from_it",
    ),
    Guard(
        "a message that a rival could own is nobody's",
        "P3",
        "of two texts to one number the wrong one is called delivered",
        Replaced(RECONCILE, "if rivals or len(", "if len("),
        f"{L}test_reconcile_texts.py::test_p3_a_message_that_another_attempt_could_own_is_nobodys",
    ),
    Guard(
        "only the attempt's own destination is searched for",
        "P3",
        "a text to a number that was changed since is looked for in vain, or wrongly found",
        Replaced(
            RECONCILE, "if not self.contacts.is_known(look, answer.destination):", "if False:"
        ),
        f"{L}test_reconcile_texts.py::"
        "test_p3_without_the_attempts_own_destination_nobody_is_asked_and_nothing_is_proven",
    ),
    Guard(
        "looks end at expiry",
        "P5",
        "providers are asked for ever about messages that nobody waits for",
        Replaced(LOOKS, " AND d.expires_at > clock.now\n", "\n"),
        f"{L}test_reconcile.py::test_an_unknown_one_is_not_asked_about_after_it_expired",
    ),
    Guard(
        "a text that was attempted is never taken again",
        "P6",
        "a fallback that already went out goes out twice",
        Replaced(FALLBACK, "text.halted or text.ever_attempted or", "text.halted or"),
        "tests/unit/test_fallback.py::test_p6_a_text_that_was_ever_attempted_is_not_taken_again",
        quick=True,
    ),
    Guard(
        "an unsent email stays away while the text is out",
        "P6",
        "an email that is proven unsent starts beside the text that replaced it",
        Replaced(FALLBACK, "if text_is_out or (_is_due", "if (_is_due"),
        f"{L}test_fallback_text_ended.py::"
        "test_p6_an_email_proven_unsent_after_the_text_was_queued_does_not_start_again",
    ),
    Guard(
        "an open call is waited for",
        "P6",
        "a text starts while the email's own answer is on its way",
        Replaced(
            FALLBACK, "if email.call_deadline and view.now >= email.call_deadline:", "if True:"
        ),
        f"{L}test_fallback.py::test_an_open_call_is_waited_for_until_its_own_deadline",
    ),
    Guard(
        "an intent asks whether the text is still needed",
        "P6",
        "a claimed text goes out although the email has arrived",
        Replaced(INTENT, "WHEN arrived_already THEN 'not_needed'", ""),
        f"{L}test_fallback_arrived.py::"
        "test_a_claimed_text_stands_back_at_its_intent_when_the_email_arrives",
    ),
    Guard(
        "an intent asks for a later request",
        "P6",
        "of two requests that were admitted side by side both are sent",
        Replaced(INTENT, "WHEN superseded THEN 'superseded'", ""),
        f"{L}test_supersede.py::"
        "test_p6_the_intent_itself_asks_whether_a_later_request_superseded_this_one",
    ),
    Guard(
        "Postmark's password is checked before the body is read",
        "P12",
        "whoever knows the address can have bodies parsed, and write what became of a message",
        Replaced(
            "notifier/providers/postmark.py",
            "if not self._is_genuine(callback.headers):",
            "if False:",
        ),
        "tests/providers/test_postmark_receipts.py::"
        "test_whoever_has_not_our_password_is_refused_before_the_body_is_read",
    ),
    Guard(
        "Twilio's signature is checked before a receipt is read",
        "P12",
        "whoever knows the address can write what became of a text",
        Replaced("notifier/providers/twilio_signature.py", "return any(matches)", "return True"),
        "tests/providers/test_twilio_callbacks.py::test_a_missing_or_made_up_signature_is_refused",
    ),
)
