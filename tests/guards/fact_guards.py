"""The guards of facts: what a receipt, an answer, a cancel or an absence may change."""

from __future__ import annotations

from tests.guards.guard import Guard, Migrated, Replaced

RECEIPTS = "notifier/domain/receipts.py"
FLOW_RECEIPTS = "notifier/flow/receipts.py"
BOOK = "notifier/store/ledger/book.py"
CANCEL = "notifier/flow/cancel.py"
ABSENCE = "notifier/domain/absence.py"
AT_RECEIPTS = "tests/unit/test_receipts.py::"
AT_RECEIPTS_AND_STATES = "tests/db/ledger/test_receipts_and_states.py::"
AT_FACTS_IN_ANY_ORDER = "tests/db/ledger/test_facts_in_any_order.py::"
AT_CANCEL = "tests/db/ledger/test_cancel.py::"
AT_ABSENCE = "tests/db/ledger/test_reconcile_absence.py::"
AT_MOVES_AGREE = "tests/db/test_moves_agree.py::"

FACT_GUARDS: tuple[Guard, ...] = (
    Guard(
        "a receipt for an earlier attempt stops the retry",
        "P1",
        "a second message although the provider told of the first",
        Replaced(RECEIPTS, "        return _R.EARLIER_ATTEMPT_FOUND\n", "        return None\n"),
        f"{AT_RECEIPTS}test_p3_a_receipt_for_an_earlier_attempt_stops_the_retry",
    ),
    Guard(
        "a hard failure outranks delivered",
        "P12",
        "a mail that bounced after all is shown as delivered, and no text goes",
        Replaced(RECEIPTS, "_S.DELIVERED: 2, _S.FAILED: 3}", "_S.DELIVERED: 2, _S.FAILED: 2}"),
        f"{AT_RECEIPTS}test_a_hard_failure_outranks_delivered_until_expiry",
    ),
    Guard(
        "a word that is not mapped moves nothing",
        "P12",
        "a provider's new word is taken for a failure",
        Replaced(
            RECEIPTS,
            "    if target is None:\n",
            "    target = target or _S.FAILED\n    if target is None:\n",
        ),
        f"{AT_RECEIPTS_AND_STATES}test_a_state_is_never_taken_back_by_a_lesser_fact[accepted-lesser0]",
    ),
    Guard(
        "after expiry the holder's own answer ends its attempt",
        "P12",
        "a receipt that came late takes the answer away from the attempt",
        Replaced(
            FLOW_RECEIPTS,
            "ends = status in TELLING and not left_to_holder",
            "ends = status in TELLING",
        ),
        f"{AT_FACTS_IN_ANY_ORDER}test_p12_after_expiry_a_receipt_does_not_take_the_holders_answer_away",
    ),
    Guard(
        "a receipt that teaches an id brings in what waited for it",
        "P12",
        "a bounce that was told early stays parked for ever",
        Replaced(FLOW_RECEIPTS, "    if learns_id:\n", "    if False:\n"),
        f"{AT_FACTS_IN_ANY_ORDER}test_p12_a_receipt_that_teaches_the_id_brings_in_what_waited_for_it",
    ),
    Guard(
        "a move takes the earlier failure off",
        "P12",
        "what ended otherwise is shown with the failure of an earlier try beside it",
        Replaced(
            BOOK, '"detail": detail, **changes}', '"detail": detail or delivery.detail, **changes}'
        ),
        f"{AT_CANCEL}test_what_is_canceled_says_nothing_of_a_try_that_was_not_accepted",
    ),
    Guard(
        "what failed, was suppressed or expired is not canceled",
        "P12",
        "a notice that is over changes once more",
        Replaced(
            CANCEL, "book.now >= book.notice.expires_at or book.notice.state in OVER", "False"
        ),
        f"{AT_CANCEL}test_what_is_over_is_not_canceled",
    ),
    Guard(
        "the first reason of a cancel stays",
        "P12",
        "a repeat of a cancel rewrites why it was canceled",
        Replaced(CANCEL, "    if over or book.notice.canceled_at is not None:\n", "    if over:\n"),
        f"{AT_CANCEL}test_the_first_reason_stays_however_often_it_is_repeated",
    ),
    Guard(
        "an absence after a cancel starts nothing",
        "P6",
        "a reset that was used gets its link after all",
        Replaced(ABSENCE, "    if canceled:\n", "    if False:\n"),
        f"{AT_ABSENCE}test_p6_an_absence_that_is_proven_after_a_cancel_starts_nothing",
    ),
    Guard(
        "an absence after the stop time starts nothing",
        "P5",
        "what is proven absent too late is queued, and shown as if it would go",
        Replaced(ABSENCE, "    if now >= stop_at:\n", "    if False:\n"),
        f"{AT_ABSENCE}test_p5_an_absence_that_is_proven_after_the_stop_time_starts_nothing",
    ),
    Guard(
        "a retry is never due at or after the stop time",
        "P5",
        "a delivery is queued that can never start, and no text takes its place",
        Replaced("notifier/domain/backoff.py", "if moment < stop_at), None)", "), None)"),
        "tests/unit/test_backoff.py::test_a_wait_that_reaches_the_stop_time_is_no_wait",
    ),
    Guard(
        "the database knows the notice's state by the same rule",
        "P12",
        "a notice is born in another state than its deliveries give it",
        Migrated(
            "CREATE OR REPLACE FUNCTION notifier.notice_state(email text, email_final "
            "boolean, sms text, sms_final boolean, sms_is_fallback boolean, canceled "
            "boolean) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT "
            "'email_pending' $$"
        ),
        "tests/db/test_notice_state_agrees.py::"
        "test_p12_the_notices_state_is_one_function_in_both_places",
    ),
    Guard(
        "the book refuses what the table does not have",
        "P12",
        "a use case makes a move that nobody foresaw, and hears of it from the database alone",
        Replaced(BOOK, "if not is_permitted(delivery.state, to, reason):", "if False:"),
        f"{AT_MOVES_AGREE}test_the_book_refuses_what_the_table_does_not_have",
    ),
    Guard(
        "check `lease_belongs_to_work`",
        "P9",
        "a lease outlives its work, and rescue takes back what nobody holds",
        Migrated("ALTER TABLE notifier.delivery DROP CONSTRAINT lease_belongs_to_work"),
        f"{AT_MOVES_AGREE}test_a_lease_belongs_to_work_and_to_nothing_else",
    ),
    Guard(
        "unique key `attempt_key_once`",
        "P1",
        "two attempts share a key, and the second is answered with the first one's message",
        Migrated("ALTER TABLE notifier.attempt DROP CONSTRAINT attempt_key_once"),
        "tests/db/ledger/test_intent.py::test_p1_a_reference_and_a_key_are_never_given_twice",
    ),
    Guard(
        "unique index `halt_one_per_scope`",
        "P10",
        "a scope is halted twice, and one release leaves it halted",
        Migrated(
            "DROP INDEX notifier.halt_one_per_scope;CREATE UNIQUE INDEX halt_one_per_scope "
            "ON notifier.halt (scope, halt_id) WHERE released_at IS NULL"
        ),
        "tests/db/ledger/test_halts.py::"
        "test_p10_each_scope_stops_the_start_and_lists_what_it_covers[all]",
    ),
)
