"""The guards of the trail's checkpoints and of what is rebuilt from it."""

from __future__ import annotations

from tests.guards.guard import Guard, Migrated, Replaced

LEDGER = "notifier/store/ledger/checkpoints.py"
FLOW = "notifier/flow/checkpoints.py"
VERIFIER = "notifier/trail_verifier.py"
ROLES = "migrations/sql/0001_roles.sql"
APPEND_ONLY = "tests/db/test_trail_is_append_only.py::"
CHECKPOINTS = "tests/trail/test_checkpoints.py::"
ON_DEMAND = "tests/trail/test_commands_on_demand.py::"
NOT_EVEN_THE_OWNER = f"{APPEND_ONLY}test_p8_not_even_the_owner_can_alter_or_remove_what_was_written"

AT_BESIDE = "tests/trail/test_beside.py::"

TRAIL_GUARDS: tuple[Guard, ...] = (
    Guard(
        "the account is under the seal of an admission",
        "P1",
        "an event is put under another account, and nothing shows it",
        Replaced(
            "notifier/domain/admission_seal.py", '"account_id", "requested_at",', '"requested_at",'
        ),
        f"{AT_BESIDE}test_p8_a_changed_key_is_found[account_id]",
    ),
    Guard(
        "what differs from the trail beside it fails the verification",
        "P8",
        "keys are rewritten, and whoever verifies each night is told that all holds",
        Replaced("notifier/cli_trail.py", "if verifier.faults or beside:", "if verifier.faults:"),
        f"{AT_BESIDE}test_p8_verify_and_rebuild_tell_both_and_end_with_status_1",
    ),
    Guard(
        "what is gone before its retention is missed",
        "P8",
        "whoever removes an event says that retention did",
        Replaced(
            "notifier/store/reads/trail_beside.py", ">= LEAST_AGE, True)", "is not None, True)"
        ),
        f"{AT_BESIDE}test_p8_what_is_gone_or_was_put_in_is_found",
    ),
    Guard(
        "trigger `checkpoint_append_only`",
        "P8",
        "whoever owns the schema takes back what was signed",
        Migrated("DROP TRIGGER checkpoint_append_only ON notifier.checkpoint"),
        NOT_EVEN_THE_OWNER,
    ),
    Guard(
        "trigger `checkpoint_head_append_only`",
        "P8",
        "what a signature is over disappears in passing",
        Migrated("DROP TRIGGER checkpoint_head_append_only ON notifier.checkpoint_head"),
        NOT_EVEN_THE_OWNER,
    ),
    Guard(
        "the application's role may not alter checkpoints",
        "P8",
        "a hole in the application that switches triggers off rewrites what was signed",
        Replaced(
            ROLES,
            "ON notifier.checkpoint, notifier.checkpoint_head FROM",
            "ON notifier.checkpoint FROM",
        ),
        f"{APPEND_ONLY}test_p8_the_application_cannot_alter_the_trail_even_without_triggers",
    ),
    Guard(
        "a checkpoint has one successor",
        "P9",
        "two processes continue the same checkpoint, and the chain forks",
        Migrated("ALTER TABLE notifier.checkpoint DROP CONSTRAINT checkpoint_pkey"),
        f"{CHECKPOINTS}test_p9_of_two_that_make_the_same_one_the_first_comes_through",
    ),
    Guard(
        "a checkpoint holds the hash of the one before",
        "P8",
        "one is taken out of the midst of the others, and nobody misses it",
        Replaced(FLOW, "previous = due.previous or NO_PREVIOUS", "previous = NO_PREVIOUS"),
        f"{CHECKPOINTS}test_p8_a_checkpoint_covers_the_heads_that_changed_since_the_last_one",
    ),
    Guard(
        "a checkpoint's cut stays below every transaction that runs",
        "P8",
        "a transaction that commits late is under no checkpoint, for good",
        Replaced(
            LEDGER,
            "pg_snapshot_xmin(clock.seen)::text AS ended_below",
            "pg_snapshot_xmax(clock.seen)::text AS ended_below",
        ),
        f"{CHECKPOINTS}test_p8_a_transaction_that_commits_late_with_an_early_time_is_not_passed_by",
    ),
    Guard(
        "a checkpoint that left heads out keeps the cut",
        "P8",
        "what did not fit into one checkpoint comes into none",
        Replaced(LEDGER, "due.cut if complete else due.last_cut", "due.cut"),
        f"{CHECKPOINTS}test_what_is_too_much_for_one_goes_into_the_next_at_once",
    ),
    Guard(
        "a checkpoint on demand is followed until nothing is left out",
        "P8",
        "whoever asked for a checkpoint holds one that covers a part, and takes it for all",
        Replaced(FLOW, "if made and made.head_count < limit:", "if made:"),
        f"{ON_DEMAND}test_p8_what_is_too_much_for_one_is_covered_by_several",
    ),
    Guard(
        "the verifier compares each row with what was sealed",
        "P8",
        "a chain that was hashed anew from its beginning passes for the old one",
        Replaced(
            VERIFIER, "elif seq in hashes and hashes[seq] != anchor", "elif seq < 0 != anchor"
        ),
        "tests/trail/test_tampering.py::"
        "test_p8_whatever_a_superuser_did_is_named_under_a_checkpoint",
    ),
    Guard(
        "a final acceptance stands on the trail",
        "P8",
        "the state of a notice cannot be told from its trail",
        Replaced(
            "notifier/flow/recording.py", 'if columns.get("final_acceptance"):', "if not columns:"
        ),
        "tests/trail/test_rebuild.py::test_p8_every_state_follows_from_the_trail_alone",
    ),
)
