"""The guards of the ground that all stands on: the policy, the database, the way of an event."""

from __future__ import annotations

from tests.guards.guard import Guard, Replaced

POLICY_CHECKS = "notifier/domain/policy_checks.py"
DATABASE = "notifier/store/database.py"
AT_POLICY = "tests/unit/test_policy.py::"
AT_FAILOVER = "tests/chaos/test_failover.py::"
AT_DATABASE = "tests/db/test_database.py::"

GROUND_GUARDS: tuple[Guard, ...] = (
    Guard(
        "a policy leaves the text the whole of its way",
        "P5",
        "a reserve is kept in which no text can go",
        Replaced(POLICY_CHECKS, "    if reserve < path:\n", "    if False:\n"),
        f"{AT_POLICY}test_a_reserve_must_outlast_the_whole_way_of_a_text",
    ),
    Guard(
        "a lease outlasts the link request",
        "P9",
        "a claim lapses while its link is asked for",
        Replaced(POLICY_CHECKS, "    if policy.lease_s <= least:\n", "    if False:\n"),
        f"{AT_POLICY}test_a_lease_must_outlast_the_link_limit_by_more_than_a_second",
    ),
    Guard(
        "a commit that no standby has is not acknowledged",
        "P2",
        "a failover loses what was answered 202",
        Replaced(DATABASE, "            confirmed(connection)\n", "            pass\n"),
        f"{AT_FAILOVER}"
        "test_p2_what_no_standby_confirmed_is_acknowledged_neither_at_first_nor_when_repeated",
    ),
    Guard(
        "a repeat waits for the standby as the first did",
        "P2",
        "who repeats is told earlier than what he repeats is durable",
        Replaced("notifier/store/ledger/admission.py", "    connection.execute(CONFIRM)\n", ""),
        f"{AT_FAILOVER}"
        "test_p2_what_no_standby_confirmed_is_acknowledged_neither_at_first_nor_when_repeated",
    ),
    Guard(
        "an event is answered after its commit",
        "P2",
        "what is answered 202 is gone when the process dies before the commit",
        Replaced(
            "notifier/web/machines/admission.py",
            "            raise Problem(Code.NOT_ADMITTED, headers=retry_after()) from None\n",
            "            return json_answer({}, HTTPStatus.ACCEPTED)\n",
        ),
        "tests/web/machines/test_admission.py::"
        "test_p2_what_could_not_be_made_durable_is_not_acknowledged",
    ),
    Guard(
        "a connection that broke in use says so",
        "P2",
        "a commit whose answer was lost is taken for one that was refused",
        Replaced(
            DATABASE,
            "            raise StoreConnectionLost(type(error).__name__) from error\n",
            "            raise StoreUnavailable(type(error).__name__) from error\n",
        ),
        f"{AT_DATABASE}test_a_session_that_breaks_in_use_says_that_the_outcome_is_unknown",
    ),
    Guard(
        "a connection from before a restart is not used",
        "P2",
        "after a restart of the database as many requests fail as the pool has connections",
        Replaced(DATABASE, "        if stands(connection):\n", "        if True:\n"),
        f"{AT_DATABASE}test_the_first_use_after_a_restart_of_the_server_succeeds",
    ),
    Guard(
        "a pool belongs to its process",
        "P9",
        "two processes speak on one connection, and each reads the other's answers",
        Replaced(
            DATABASE,
            "            elif self._pool_pid != os.getpid():\n",
            "            elif False:\n",
        ),
        f"{AT_DATABASE}test_a_pool_from_before_a_fork_is_not_used_after_it",
    ),
    Guard(
        "a look is claimed by one",
        "P9",
        "two processes ask one provider about one message",
        Replaced(
            "notifier/store/ledger/looks.py",
            "ORDER BY d.next_check_at LIMIT %(batch)s\n           FOR UPDATE OF d SKIP LOCKED),",
            "ORDER BY d.next_check_at LIMIT %(batch)s),",
        ),
        "tests/db/ledger/test_reconcile.py::"
        "test_p9_a_look_that_somebody_holds_is_skipped_not_waited_for",
    ),
    Guard(
        "a 410 for a replay cancels the notice",
        "P6",
        "a reset that was used goes on being worked on",
        Replaced(
            "notifier/flow/replays.py",
            "        case LinkGone(reason=reason):\n"
            "            put_back.end_reset(desk, claim, reason)\n",
            "        case LinkGone():\n",
        ),
        "tests/db/ledger/test_replay_answers.py::"
        "test_a_reset_that_is_gone_cancels_the_notice_and_leaves_the_email_unknown",
    ),
    Guard(
        "a shortened life moves the fallback forward",
        "P6",
        "the text is decided when its own link is dead",
        Replaced(
            "notifier/flow/put_back.py",
            "return max(min(notice.fallback_at, reserved), earliest)",
            "return notice.fallback_at",
        ),
        "tests/db/ledger/test_put_back.py::"
        "test_p6_a_shortened_life_brings_the_fallback_forward_while_a_text_can_still_help",
    ),
    Guard(
        "a superseding event cancels the earlier ones",
        "P6",
        "a person gets two links, of which one is dead",
        Replaced(
            "notifier/flow/admission.py",
            "            if event.supersedes_earlier:\n",
            "            if False:\n",
        ),
        "tests/db/ledger/test_supersede.py::"
        "test_every_earlier_open_notice_of_the_account_ends_and_no_other",
    ),
    Guard(
        "a sender is told to come again while the database's time is unknown",
        "P1",
        "an outage that lasts is answered 500, and senders that take it for final lose the event",
        Replaced("notifier/web/problems.py", "    ClockUnknown,\n)", ")"),
        "tests/web/test_clock_unknown.py::"
        "test_a_database_away_for_longer_than_its_clock_is_trusted_is_still_a_503",
    ),
    Guard(
        "an address is one process's",
        "P9",
        "two processes listen at one address, and each takes some of the other's requests",
        Replaced("notifier/serving.py", "socket.SO_REUSEADDR, 1", "socket.SO_REUSEPORT, 1"),
        "tests/story/test_taken_port.py::"
        "test_an_address_that_somebody_else_listens_at_is_taken_even_if_he_would_share_it[True]",
    ),
    Guard(
        "an embedded server that dies is started again",
        "P9",
        "nothing is admitted or sent until somebody happens to run a command",
        Replaced(
            "notifier/store/embedded_watch.py", "                    self._bring_back()\n", ""
        ),
        "tests/db/test_embedded_watch.py::"
        "test_a_server_that_dies_is_started_again_with_everything_in_it_each_time",
    ),
)
