"""Guards of what is erased when: neither too early, nor too much at once, nor in silence."""

from __future__ import annotations

from tests.guards.guard import Guard, Replaced

STATEMENTS = "notifier/store/ledger/retention.py"
AT_DETAILS = "tests/db/ledger/test_detail_retention.py::"

RETENTION_GUARDS = (
    Guard(
        "details of an open notice stay",
        "P8",
        "what decided a notice is erased while it may still change",
        Replaced(STATEMENTS, "\"\"\"n.state NOT IN ('email_pending', 'text_pending')", '"""true'),
        f"{AT_DETAILS}test_a_notice_that_is_still_open_keeps_its_details",
    ),
    Guard(
        "details stay as long as the link is good",
        "P8",
        "receipts of a notice that a bounce may still change are erased",
        Replaced(STATEMENTS, '\n       AND n.expires_at <= (SELECT now FROM clock)"""', '"""'),
        f"{AT_DETAILS}test_a_notice_whose_link_is_still_good_keeps_its_details",
    ),
    Guard(
        "details stay for their time",
        "P8",
        "the event as it was sent is erased as soon as its notice has ended",
        Replaced(STATEMENTS, "e.notice_id < {FIRST_KEPT} AND ", ""),
        f"{AT_DETAILS}test_details_are_erased_after_their_time_and_not_before",
    ),
    Guard(
        "details are erased in their time",
        "P7",
        "the policy's detail_days is a promise that nothing keeps",
        Replaced(
            "notifier/flow/retention.py",
            '        partial(retention.erase_events, days=days["detail_days"]),\n',
            "",
        ),
        f"{AT_DETAILS}test_details_are_erased_after_their_time_and_not_before",
    ),
    Guard(
        "a late receipt is known again for its own time",
        "P8",
        "a repeated callback about an old notice is written to the trail again and again",
        Replaced(
            STATEMENTS,
            "\n           AND r.received_at < (SELECT now FROM clock)"
            " - make_interval(days => 1) * %(days)s",
            "",
        ),
        f"{AT_DETAILS}test_a_callback_about_erased_details_is_a_late_one"
        "_and_known_again_for_its_own_time",
    ),
    Guard(
        "retention goes in small batches",
        "P9",
        "one huge delete runs into its time limit every time, and tables grow in silence",
        Replaced(
            STATEMENTS,
            "ORDER BY r.notice_id, r.received_at LIMIT %(batch)s",
            "ORDER BY r.notice_id, r.received_at",
        ),
        f"{AT_DETAILS}test_b140_no_statement_erases_more_than_a_batch",
    ),
    Guard(
        "retention waits for nobody",
        "P9",
        "one notice that somebody holds keeps everything else from being erased",
        Replaced(STATEMENTS, "ORDER BY n.notice_id FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
        f"{AT_DETAILS}test_b140_a_notice_that_somebody_holds_is_passed_over_at_once",
    ),
    Guard(
        "what cannot be erased holds up nothing else",
        "P11",
        "masks are kept for ever because receipts could not be erased",
        Replaced(
            "notifier/flow/retention.py",
            "            trouble = trouble or error\n            erasing.remove(erase)",
            "            raise",
        ),
        f"{AT_DETAILS}test_b140_what_cannot_be_erased_is_told_and_holds_up_nothing_else[contact]",
    ),
    Guard(
        "what cannot be erased is told",
        "P11",
        "the sweep looks healthy while something is never erased",
        Replaced(
            "notifier/flow/retention.py",
            "            raise trouble\n",
            "            return erased\n",
        ),
        f"{AT_DETAILS}test_b140_what_cannot_be_erased_is_told_and_holds_up_nothing_else[receipt]",
    ),
    Guard(
        "a long time erases nothing",
        "P8",
        "whoever keeps masks for sixty years loses all of them at once",
        Replaced(
            STATEMENTS, "to_hex(greatest(0, (extract", "to_hex(greatest(-1e18::bigint, (extract"
        ),
        f"{AT_DETAILS}test_a_time_before_there_were_computers_erases_nothing",
    ),
    Guard(
        "an arrival is told from the trail alone",
        "P8",
        "a notice that was delivered dead loses that mark with its receipts",
        Replaced(
            "notifier/store/reads/expired.py",
            "AND (SELECT true FROM receipt WHERE receipt_id = t.receipt_id) IS NULL",
            "AND false",
        ),
        f"{AT_DETAILS}test_the_list_of_expired_notices_tells_the_same_from_the_trail",
    ),
)
