"""The guards of the lead, the sweeps, and the watch over them."""

from __future__ import annotations

from tests.guards.guard import Guard, Replaced

LEADER = "notifier/sweeps/leader.py"
RUNNER = "notifier/sweeps/runner.py"
SCHEDULER = "notifier/sweeps/scheduler.py"
HOST = "notifier/sweeps/host.py"
READINESS = "notifier/readiness.py"
WATCH = "notifier/signals/watch.py"
RULES_OF_STATE = "notifier/signals/rules_of_state.py"
AT_LEADER = "tests/sweeps/test_leader.py::"
AT_HOST = "tests/sweeps/test_host.py::"
AT_RUNNER = "tests/sweeps/test_runner.py::"
AT_SCHEDULER = "tests/sweeps/test_scheduler.py::"
AT_WATCH = "tests/signals/test_watch.py::"
AT_RULES = "tests/signals/test_rules.py::"

SWEEP_GUARDS: tuple[Guard, ...] = (
    Guard(
        "a lease that reaches too far is nobody's",
        "P9",
        "after a failover to a server whose clock is behind nobody sweeps for hours",
        Replaced(
            LEADER, "\n        OR held.until > db_now() + make_interval(secs => 4 * %(ttl)s)", ""
        ),
        f"{AT_LEADER}test_a_lease_that_reaches_farther_than_anyone_grants_is_taken",
    ),
    Guard(
        "a lease that ran out is not renewed",
        "P9",
        "a leader that was frozen goes on beside the one that took over",
        Replaced(
            LEADER, " AND epoch = %(epoch)s AND until > db_now()\n", " AND epoch = %(epoch)s\n"
        ),
        f"{AT_LEADER}test_a_lease_edited_by_hand_is_noticed_at_the_next_renewal",
    ),
    Guard(
        "a lead ends with its process",
        "P9",
        "a forked child leads beside its parent",
        Replaced(LEADER, "steady() < term[1] and os.getpid() == self._pid", "steady() < term[1]"),
        f"{AT_HOST}test_b130_a_forked_child_starts_nothing_with_its_parents_host",
    ),
    Guard(
        "a leader resigns",
        "P11",
        "after each stop in good order nobody sweeps until the lease runs out",
        Replaced(
            LEADER,
            "            if connection.execute(RESIGN, self._terms(epoch)).rowcount == 1:\n",
            "            if False:\n",
        ),
        f"{AT_LEADER}test_a_clean_stop_hands_over_at_once",
    ),
    Guard(
        "one sweep runs once in a process",
        "P9",
        "a slow sweep runs beside itself and takes every connection",
        Replaced(
            RUNNER,
            "        if not lock.acquire(blocking=False):\n            return\n",
            "        lock.acquire(blocking=False)\n",
        ),
        f"{AT_RUNNER}test_a_sweep_never_runs_twice_at_once_in_a_process",
    ),
    Guard(
        "a sweep that fails is written down",
        "P11",
        "a sweep that raises at every run looks like one that has nothing to do",
        Replaced(RUNNER, "            self._write_failure(name, course)\n", ""),
        f"{AT_RUNNER}test_a_sweep_that_raises_is_counted_and_shown_without_any_value",
    ),
    Guard(
        "late runs are not dropped",
        "P11",
        "after a pause of seconds sweeps are passed over without a word",
        Replaced(SCHEDULER, '"misfire_grace_time": None', '"misfire_grace_time": 1'),
        f"{AT_SCHEDULER}test_the_stored_jobs_are_the_fixed_set",
    ),
    Guard(
        "late runs become one",
        "P11",
        "after an outage each missed run is made up for",
        Replaced(SCHEDULER, '"coalesce": True', '"coalesce": False'),
        f"{AT_SCHEDULER}test_the_stored_jobs_are_the_fixed_set",
    ),
    Guard(
        "the scheduler's thread outlives its store",
        "P11",
        "a database that was away for a moment ends all sweeps for good",
        Replaced(
            SCHEDULER,
            "        except Exception as error:  # noqa: BLE001 - the thread must outlive "
            "any failure\n",
            "        except KeyError as error:\n",
        ),
        f"{AT_SCHEDULER}test_b084_a_pass_that_fails_does_not_end_the_thread",
    ),
    Guard(
        "a clock that was set moves no run",
        "P11",
        "after a step back of the wall clock nothing runs until it is made up for",
        Replaced(
            SCHEDULER,
            "if self._clock_was_set() or steady() - self._last_mend >= MEND_EVERY_S:",
            "if False:",
        ),
        f"{AT_SCHEDULER}test_b078_a_wall_clock_that_is_set_neither_stops_nor_bursts",
    ),
    Guard(
        "a scheduler belongs to its process",
        "P9",
        "a forked child runs its parent's sweeps on its parent's connections",
        Replaced(SCHEDULER, "        if os.getpid() != self._pid:\n", "        if False:\n"),
        f"{AT_SCHEDULER}test_b130_a_scheduler_is_refused_in_a_forked_child",
    ),
    Guard(
        "only who leads schedules",
        "P9",
        "whoever starts a scheduler sweeps beside the leader",
        Replaced(
            SCHEDULER,
            "        if not self._may_run():\n            raise",
            "        if False:\n            raise",
        ),
        f"{AT_SCHEDULER}test_b082_a_second_scheduler_on_the_store_is_refused",
    ),
    Guard(
        "a host belongs to its process",
        "P9",
        "a forked child starts threads on its parent's connections",
        Replaced(
            HOST,
            "        if os.getpid() != self._pid:\n            message",
            "        if False:\n            message",
        ),
        f"{AT_HOST}test_b130_a_forked_child_starts_nothing_with_its_parents_host",
    ),
    Guard(
        "under the reloader only the child that serves starts anything",
        "P9",
        "two processes of one developer's run each sweep and send",
        Replaced(HOST, "or (reloader and not is_running_from_reloader())", ""),
        f"{AT_HOST}test_b088_under_the_reloader_only_the_serving_child_starts_anything",
    ),
    Guard(
        "a leader whose scheduler stalled gives the lead up",
        "P11",
        "a scheduler that hangs keeps its lease, and nobody sweeps",
        Replaced(HOST, "            self.leader.step_down()\n", "            pass\n"),
        f"{AT_SCHEDULER}test_p11_b134_a_killed_scheduler_thread_shows_and_is_replaced",
    ),
    Guard(
        "a scheduler without a young pass is not ready",
        "P11",
        "a process whose scheduler hangs says that all is well",
        Replaced(
            HOST,
            'return ReadinessPart("scheduler", scheduler.alive(), detail)',
            'return ReadinessPart("scheduler", True, detail)',
        ),
        f"{AT_SCHEDULER}test_p11_b134_a_paused_scheduler_shows",
    ),
    Guard(
        "a sweep that grows old is not ready",
        "P11",
        "a sweep that hangs or fails is one that is ready",
        Replaced(
            HOST,
            'ReadinessPart(f"sweep:{name}", old_s <= limit_s, detail)',
            'ReadinessPart(f"sweep:{name}", True, detail)',
        ),
        f"{AT_HOST}test_p11_b134_a_hung_sweep_shows_while_the_others_go_on",
    ),
    Guard(
        "outcomes that wait are told by readiness",
        "P11",
        "a process that cannot write is given more work",
        Replaced(
            READINESS,
            'PartReport("outcomes", waiting == 0, detail)',
            'PartReport("outcomes", True, detail)',
        ),
        "tests/chaos/test_unwritable.py::"
        "test_p3_in_a_read_only_database_the_outcome_is_kept_and_nothing_starts",
    ),
    Guard(
        "a process works on its own schema",
        "P9",
        "a version works on tables that it does not know",
        Replaced(
            READINESS, 'PartReport("database", found == needed,', 'PartReport("database", True,'
        ),
        "tests/db/test_readiness.py::"
        "test_p9_another_versions_schema_is_not_ready_and_both_are_named",
    ),
    Guard(
        "the ping stops when nobody judges",
        "P11",
        "the outside monitor hears that all is well while no rule is looked at",
        Replaced(
            WATCH,
            "if view is None or self._is_late(view) or alerts.somebody_untold(connection, UNTOLD):",
            "if False:",
        ),
        f"{AT_WATCH}test_the_ping_stops_while_no_receiver_takes_a_page",
    ),
    Guard(
        "the watch misses a judgement",
        "P11",
        "the rules are not judged any more, and nobody is told",
        Replaced(
            WATCH, "        if view is not None and self._is_late(view):\n", "        if False:\n"
        ),
        f"{AT_WATCH}test_p11_rules_that_were_last_judged_long_ago_are_told",
    ),
    Guard(
        "the watch tells of a database that is away",
        "P11",
        "the database is gone, and with it everything that could have told",
        Replaced(
            WATCH, "            self.unreachable.failing(self._hold_s())\n", "            pass\n"
        ),
        f"{AT_WATCH}test_p11_a_database_that_cannot_be_reached_is_told_once_and_its_return_too",
    ),
    Guard(
        "a judge that lost its turn writes nothing",
        "P9",
        "a judge that was frozen resolves what another has opened since",
        Replaced(
            "notifier/signals/judging.py",
            "            if not alerts.holds_turn(connection, turn):\n",
            "            if False:\n",
        ),
        "tests/signals/test_alert_path.py::"
        "test_a_judge_that_wakes_after_another_took_its_turn_writes_nothing",
    ),
    Guard(
        "all sweeps silent is a dead scheduler",
        "P11",
        "a dead scheduler is a dozen small alerts, or none",
        Replaced(
            RULES_OF_STATE, "    if late and len(late) == len(frequent):\n", "    if False:\n"
        ),
        f"{AT_RULES}test_one_silent_sweep_is_named_and_all_of_them_are_the_scheduler",
    ),
    Guard(
        "a provider that tells nothing is missed",
        "P11",
        "messages are accepted, and nobody sees that nothing is learnt of them",
        Replaced("notifier/signals/rules_of_counts.py", "each.awaiting if quiet else 0,", "0,"),
        f"{AT_RULES}test_a_provider_is_silent_when_nothing_at_all_is_heard_of_it",
    ),
    Guard(
        "a missing checkpoint is missed",
        "P11",
        "the trail is not sealed any more, and nobody sees it",
        Replaced(RULES_OF_STATE, "age_s if seen.unsealed else 0.0, limit", "0.0, limit"),
        f"{AT_RULES}test_a_checkpoint_is_missed_only_where_there_is_a_key_and_something_to_seal",
    ),
)
