"""The guards that the schema and the ledger's statements keep."""

from __future__ import annotations

from tests.guards.guard import Guard, Migrated, Replaced

ADMISSION = "notifier/store/ledger/admission.py"
CLAIM = "notifier/store/ledger/claim.py"
INTENT = "notifier/store/ledger/intent.py"
HALTS = "notifier/store/ledger/halts.py"
HELD_ROWS = "notifier/store/ledger/held_rows.py"
ROLES = "migrations/sql/0001_roles.sql"
FOUNDATION = "migrations/sql/0001_foundation.sql"
L = "tests/db/ledger/"
RACING_KEYS = (
    f"{L}test_admission_once.py::"
    "test_p1_each_of_the_three_keys_is_given_once_among_racing_strangers"
)
CLAIMING = f"{L}test_claim.py::test_each_guard_alone_keeps_a_row_back"
STARTING = f"{L}test_intent.py::test_each_guard_alone_forbids_the_start"


def _key(constraint: str, column: str) -> Guard:
    return Guard(
        f"unique key `{constraint}`",
        "P1",
        f"two notices for one {column}, whoever loses the race between look and write",
        Migrated(f"ALTER TABLE notifier.admission DROP CONSTRAINT {constraint}"),
        f"{RACING_KEYS}[{column}]",
        quick=column == "event_id",
    )


STORE_GUARDS: tuple[Guard, ...] = (
    _key("admission_event_once", "event_id"),
    _key("admission_key_once", "idempotency_key"),
    _key("admission_reset_request_once", "reset_request_id"),
    Guard(
        "a repeat is compared by its content's digest",
        "P1",
        "other content under a known id is answered as if it had been admitted",
        Replaced(ADMISSION, 'first["content_digest"] in digests', 'first["content_digest"]'),
        f"{L}test_admission_once.py::"
        "test_p1_other_content_is_a_conflict_on_the_trail_and_changes_nothing",
    ),
    Guard(
        "trigger `delivery_state_guard`",
        "P12",
        "a state column makes a move that the table does not have",
        Migrated(
            "CREATE OR REPLACE FUNCTION notifier.guard_delivery_state() RETURNS trigger"
            " LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$"
        ),
        "tests/db/test_moves_agree.py::test_p12_the_guard_lets_exactly_the_permitted_pairs_pass",
    ),
    Guard(
        "trigger `delivery_birth_guard`",
        "P12",
        "a delivery is born as if it had been sent",
        Migrated("DROP TRIGGER delivery_birth_guard ON notifier.delivery"),
        "tests/db/test_moves_agree.py::test_no_delivery_begins_in_the_middle",
    ),
    Guard(
        "check `transition_is_permitted`",
        "P8",
        "the trail claims a move that cannot be",
        Migrated("ALTER TABLE notifier.transition DROP CONSTRAINT transition_is_permitted"),
        "tests/db/test_moves_agree.py::test_p8_the_trail_takes_exactly_the_permitted_moves",
    ),
    Guard(
        "unique index `attempt_one_open`",
        "P3",
        "a second message while the first one's fate is not known",
        Migrated("DROP INDEX notifier.attempt_one_open"),
        f"{L}test_intent.py::test_p3_a_second_attempt_is_impossible_while_one_is_unresolved",
        quick=True,
    ),
    Guard(
        "trigger `transition_append_only`",
        "P8",
        "whoever owns the schema rewrites the trail in passing",
        Migrated("DROP TRIGGER transition_append_only ON notifier.transition"),
        "tests/db/test_trail_is_append_only.py::"
        "test_p8_not_even_the_owner_can_alter_or_remove_what_was_written",
    ),
    Guard(
        "the application's role may not alter the trail",
        "P8",
        "a hole in the application that switches triggers off rewrites the trail",
        Replaced(
            ROLES, "REVOKE UPDATE, DELETE ON notifier.transition,", "REVOKE UPDATE, DELETE ON"
        ),
        "tests/db/test_trail_is_append_only.py::"
        "test_p8_the_application_cannot_alter_the_trail_even_without_triggers",
    ),
    Guard(
        "the evidence is under the hash",
        "P8",
        "what a provider said can be changed without breaking the chain",
        Replaced(
            FOUNDATION,
            "|| notifier.trail_field(evidence::text), 'UTF8'",
            "|| notifier.trail_field(NULL), 'UTF8'",
        ),
        f"{L}test_trail.py::test_p8_the_chain_holds_for_code_that_knows_only_the_rule",
    ),
    Guard(
        "the book locks the notice before it reads",
        "P8",
        "two writers read one head and the chain forks",
        Replaced(
            HELD_ROWS,
            "FROM notice WHERE notice_id = %(notice_id)s FOR UPDATE",
            "FROM notice WHERE notice_id = %(notice_id)s",
        ),
        "tests/races/test_one_notice.py::test_p8_ten_writers_on_one_notice_leave_one_chain",
    ),
    Guard(
        "a claim takes a new fencing token",
        "P9",
        "a worker that slept through its lease goes on beside the one that took over",
        Replaced(CLAIM, "fence = d.fence + 1", "fence = greatest(d.fence, 1)"),
        f"{L}test_rescue.py::"
        "test_p9_a_worker_that_came_back_to_its_own_old_claim_is_fenced_off_too",
    ),
    Guard(
        "a claim takes no more than its slots",
        "P9",
        "one process leases the whole backlog and lets most of it lapse",
        Replaced(CLAIM, "         LIMIT %(slots)s\n", "         LIMIT %(slots)s + 1\n"),
        f"{L}test_claim.py::test_p1_a_claim_never_takes_more_than_its_slots_whatever_the_plan",
    ),
    Guard(
        "a claim skips what somebody holds",
        "P9",
        "claimers queue up behind one row, and none goes on",
        Replaced(CLAIM, "FOR UPDATE OF n, d SKIP LOCKED", "FOR UPDATE OF n, d"),
        f"{L}test_claim.py::test_p9_a_row_that_somebody_holds_is_skipped_not_waited_for",
    ),
    Guard(
        "a claim asks for the stop time",
        "P5",
        "what is dead is leased, and its link asked for",
        Replaced(CLAIM, " AND d.stop_at > clock.now\n", "\n"),
        f"{L}test_claim.py::"
        "test_p5_the_stop_time_itself_is_too_late_and_a_microsecond_before_is_not",
    ),
    Guard(
        "a claim asks for halts",
        "P10",
        "halted work goes round and round between queue and lease",
        Replaced(CLAIM, "AND NOT {HALTED} AND NOT {SHUT}", "AND NOT {SHUT}"),
        f"{CLAIMING}[all]",
    ),
    Guard(
        "a claim asks for pauses",
        "P10",
        "a provider that locked us out is called again and again",
        Replaced(CLAIM, "AND NOT {HALTED} AND NOT {SHUT}", "AND NOT {HALTED}"),
        f"{CLAIMING}[pause]",
    ),
    Guard(
        "an intent asks for the fence",
        "P9",
        "whoever lost the lease starts a call beside whoever has it",
        Replaced(INTENT, "OR fence <> %(fence)s OR", "OR"),
        f"{STARTING}[fence]",
        quick=True,
    ),
    Guard(
        "an intent asks for the lease's owner",
        "P9",
        "another process's claim is started",
        Replaced(INTENT, "OR lease_owner <> %(owner)s", ""),
        f"{STARTING}[owner]",
    ),
    Guard(
        "an intent asks for the stop time",
        "P5",
        "a call starts when the link is no use any more",
        Replaced(INTENT, "least(stop_at, %(not_after)s)", "%(not_after)s"),
        f"{STARTING}[stop time]",
        quick=True,
    ),
    Guard(
        "an intent asks for the link's own end",
        "P5",
        "a call starts after the life that the link answer shortened",
        Replaced(INTENT, "least(stop_at, %(not_after)s)", "stop_at"),
        f"{STARTING}[not after]",
    ),
    Guard(
        "an intent asks for the cancel",
        "P6",
        "a link goes out for a reset that was used or revoked",
        Replaced(INTENT, "WHEN canceled_at IS NOT NULL THEN 'canceled'", ""),
        f"{STARTING}[cancel]",
    ),
    Guard(
        "an intent asks for the fallback time",
        "P6",
        "email and text both start at the fallback time",
        Replaced(INTENT, "WHEN fallback_first THEN 'fallback_due'", ""),
        f"{L}test_intent.py::test_p6_an_email_is_not_started_from_the_fallback_time_on",
    ),
    Guard(
        "an intent asks for halts",
        "P10",
        "work that was claimed before a halt starts after it",
        Replaced(INTENT, "WHEN halted THEN 'halted'", ""),
        f"{STARTING}[halt]",
    ),
    Guard(
        "an intent waits for the row before it judges",
        "P5",
        "an intent that waited judges by the time before its wait",
        Replaced(INTENT, "notice_id = %(notice_id)s FOR UPDATE)", "notice_id = %(notice_id)s)"),
        f"{L}test_intent.py::"
        "test_p5_an_intent_that_waited_for_the_row_judges_by_the_time_when_it_goes_on",
    ),
    Guard(
        "an attempt's deadline ends at the stop time",
        "P5",
        "a call that began in time ends when the link is dead",
        Replaced(INTENT, "least(now + %(budget)s, stop_at)", "now + %(budget)s"),
        f"{L}test_intent.py::test_p5_the_calls_deadline_never_reaches_past_the_stop_time",
    ),
    Guard(
        "an intent extends the lease to its attempt's deadline",
        "P3",
        "an attempt is called lost while its call is still in time",
        Replaced(INTENT, "lease_until = a.deadline, ", ""),
        f"{L}test_intent.py::"
        "test_an_intent_commits_the_attempt_and_extends_the_lease_to_its_deadline",
    ),
    Guard(
        "intents take the gate",
        "P10",
        "a start that read the halts before they changed commits after the acknowledgement",
        Replaced(INTENT, "{GATE_SHARED} FROM held", "SELECT FROM held"),
        "tests/races/test_halt_gate.py::"
        "test_p10_engaging_waits_for_an_intent_in_progress_and_lists_it",
    ),
    Guard(
        "engaging takes the gate alone",
        "P10",
        "a halt is acknowledged while a start that it does not list is on its way",
        Replaced(
            HALTS,
            "        connection.execute(GATE_ALONE)\n        before =",
            "        before =",
        ),
        "tests/races/test_halt_gate.py::"
        "test_p10_engaging_waits_for_an_intent_in_progress_and_lists_it",
    ),
    Guard(
        "a lost worker's call is in flight",
        "P10",
        "a halt shows as in effect while a frozen worker can still send",
        Replaced(HALTS, "d.state IN ('unknown', 'accepted',", "d.state IN ('accepted',"),
        f"{L}test_halts.py::"
        "test_p10_a_call_whose_worker_was_lost_is_in_flight_until_somebody_answers",
    ),
    Guard(
        "a call is in flight beside what is known of an earlier one",
        "P10",
        "a halt shows as in effect while a retry's frozen worker can still send",
        Replaced(
            HALTS, "d.state IN ('unknown', 'accepted', 'delivered')", "d.state IN ('unknown')"
        ),
        f"{L}test_halts.py::"
        "test_p10_a_call_is_in_flight_beside_what_a_receipt_told_of_the_attempt_before_it",
    ),
)
