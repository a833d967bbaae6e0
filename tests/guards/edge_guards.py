"""The guards at the edges: the wire, the doors, the inbox, the lease, and the last statements."""

from __future__ import annotations

from tests.guards.guard import Guard, Migrated, Replaced

ADMISSION = "notifier/store/ledger/admission.py"
CLAIM = "notifier/store/ledger/claim.py"
INTENT = "notifier/store/ledger/intent.py"
INBOX = "notifier/store/ledger/receipts.py"
HTTP = "notifier/providers/http.py"
SECURITY = "notifier/web/security.py"
LEADER = "notifier/sweeps/leader.py"
L = "tests/db/ledger/"
CLAIMING = f"{L}test_claim.py::test_each_guard_alone_keeps_a_row_back"
STARTING = f"{L}test_intent.py::test_each_guard_alone_forbids_the_start"
OUTCOMES = "tests/providers/test_http_outcomes.py::"
WRONG = "tests/providers/test_wrong_answers.py::"
NEVER = "migrations/sql/0001_never_rewritten.sql"
APPEND_ONLY = "tests/db/test_trail_is_append_only.py::"
GATE = "tests/web/people/test_gate.py::"


def _appended_only(table: str, trigger: str, without: str) -> Guard:
    return Guard(
        f"trigger `{trigger}`",
        "P8",
        without,
        Migrated(f"DROP TRIGGER {trigger} ON notifier.{table}"),
        "tests/db/test_trail_is_append_only.py::"
        "test_p8_not_even_the_owner_can_alter_or_remove_what_was_written",
    )


EDGE_GUARDS: tuple[Guard, ...] = (
    # --- admission
    Guard(
        "a cap counts after whoever is before it",
        "P1",
        "requests of one account that race pass its cap together",
        Replaced(ADMISSION, '    if values["cap"]:\n', "    if False:\n"),
        f"{L}test_supersede.py::test_a_cap_counts_what_was_admitted_while_its_turn_was_waited_for",
    ),
    Guard(
        "an older request that comes late is admitted as canceled",
        "P6",
        "a link goes out for a request that a later one had already taken the place of",
        Replaced(ADMISSION, "a.supersedes AND a.requested_at > %(requested_at)s", "false"),
        f"{L}test_supersede.py::test_an_older_request_that_comes_late_is_admitted_as_canceled",
    ),
    Guard(
        "an event past its expiry is admitted as expired",
        "P5",
        "what is dead on arrival is queued",
        Replaced(ADMISSION, "now >= %(expires_at)s AS dead", "false AS dead"),
        "tests/db/test_admission_plan_agrees.py::test_p12_the_statement_and_the_rule_decide_alike",
    ),
    Guard(
        "the signed time is close to ours",
        "P1",
        "a signed request that was overheard can be sent again for ever",
        Replaced(
            "notifier/signatures.py",
            "if abs(int(timestamp) - now.timestamp()) > tolerance_s:",
            "if False:",
        ),
        "tests/web/machines/test_admission.py::"
        "test_the_clock_tolerance_is_two_sided_and_has_its_own_reason",
    ),
    # --- claim and intent
    Guard(
        "a claim asks for the due time",
        "P5",
        "a retry starts before its back-off is over",
        Replaced(CLAIM, "d.due_at <= clock.now AND d.stop_at", "d.stop_at"),
        f"{CLAIMING}[due]",
    ),
    Guard(
        "a claim asks for the cancel",
        "P6",
        "links are asked for that nobody may use any more",
        Replaced(CLAIM, "           AND n.canceled_at IS NULL\n", ""),
        f"{CLAIMING}[cancel]",
    ),
    Guard(
        "a claim asks for the fallback time",
        "P6",
        "an email is leased when the text is to go first",
        Replaced(CLAIM, "           AND NOT {FALLBACK_FIRST}\n", ""),
        f"{L}test_claim.py::test_p6_an_email_makes_way_from_the_fallback_time_on",
    ),
    Guard(
        "an intent asks for the state",
        "P9",
        "what was put back into the queue is started by whoever had it before",
        Replaced(INTENT, "CASE WHEN state <> 'claimed' OR fence", "CASE WHEN fence"),
        f"{STARTING}[state]",
    ),
    Guard(
        "an intent asks for pauses",
        "P10",
        "a provider that locked us out is called by everybody who had claimed",
        Replaced(INTENT, "WHEN paused THEN 'paused'", ""),
        f"{STARTING}[pause]",
    ),
    Guard(
        "unique key `attempt_reference_once`",
        "P1",
        "one receipt speaks for two attempts",
        Migrated("ALTER TABLE notifier.attempt DROP CONSTRAINT attempt_reference_once"),
        f"{L}test_intent.py::test_p1_a_reference_and_a_key_are_never_given_twice",
    ),
    Guard(
        "a shortened life moves the stop times",
        "P5",
        "a call starts when the link answer had said that the link would be dead",
        Replaced(
            "notifier/flow/put_back.py",
            "stop_at=delivery.stop_at - span, expires_at=expires_at",
            "expires_at=expires_at",
        ),
        f"{L}test_put_back.py::test_p5_nothing_starts_after_a_shortened_life",
    ),
    Guard(
        "the loop wakes when the next delivery falls due",
        "P5",
        "a retry waits for the next poll while its link's life runs out",
        Replaced(
            "notifier/sweeps/claim_loop.py", "wait_s = min(wait_s, self._until_due())", "pass"
        ),
        "tests/db/test_claim_at_due.py::test_a_retry_that_falls_due_between_two_polls_is_made_then",
    ),
    Guard(
        "a fault before the call fails its own notice",
        "P11",
        "a notice that breaks whatever touches it goes round until it is dead, and none says why",
        Replaced("notifier/sweeps/claim_loop.py", "            self._isolate(claim)\n", ""),
        "tests/db/test_one_bad_item.py::"
        "test_b011_one_that_raises_while_it_is_rendered_fails_alone_and_no_other_is_sent_twice",
    ),
    # --- the wire
    Guard(
        "an HTTP line carries one message",
        "P1",
        "an adapter that is asked twice posts twice",
        Replaced(HTTP, "        self._used = True\n", ""),
        f"{OUTCOMES}test_a_line_carries_one_message_and_is_never_opened_again",
    ),
    Guard(
        "past the first byte nothing is proven",
        "P3",
        "a message that the provider took is posted again because its answer was cut",
        Replaced(HTTP, "        if not self._stream.has_written:\n", "        if True:\n"),
        f"{WRONG}test_p3_an_answer_cut_at_any_byte_is_unknown_and_posted_once",
    ),
    Guard(
        "a line that died is not written to",
        "P3",
        "a message that certainly did not leave is called unknown, and is not tried again",
        Replaced(HTTP, "if not self._stream.is_quiet():", "if False:"),
        f"{OUTCOMES}test_p3_a_line_that_is_lost_before_the_first_byte_is_not_accepted",
    ),
    Guard(
        "an error of a server proves nothing",
        "P3",
        "a message that was taken before a server broke is sent again, or given up",
        Replaced(
            "notifier/providers/http_words.py", "answer.status >= 500 or document", "document"
        ),
        f"{WRONG}test_p3_an_error_of_a_server_is_unknown_whatever_it_says",
    ),
    Guard(
        "who asks can only GET",
        "P4",
        "a look-up posts",
        Replaced(
            "notifier/timed_http.py", "        if method != self._method:\n", "        if False:\n"
        ),
        "tests/providers/test_http_asking.py::test_p4_the_asking_client_refuses_anything_but_get",
    ),
    Guard(
        "no mail goes on in clear",
        "P7",
        "whoever takes STARTTLS out of a greeting reads the password and the link",
        Replaced("notifier/providers/smtp.py", 'if "STARTTLS" not in offers:', "if False:"),
        "tests/providers/test_smtp_opening.py::"
        "test_a_server_without_starttls_gets_no_message_in_clear",
    ),
    # --- what we are told
    Guard(
        "receipts that nobody knows are put off",
        "P11",
        "each run of the sweep goes through every stranger's receipt, and ours wait behind them",
        Replaced(INBOX, "greatest(clock.now - r.received_at, interval '1 second')", "interval '0'"),
        f"{L}test_receipts.py::test_receipts_that_nobody_knows_are_looked_at_less_and_less",
    ),
    Guard(
        "a receipt that cannot be applied goes to the end of the line",
        "P11",
        "a batch of receipts about one locked notice keeps all others waiting",
        Replaced("notifier/flow/receipts.py", "inbox.last_in_line(connection, receipt_id)", "pass"),
        f"{L}test_receipts.py::"
        "test_a_batch_that_cannot_be_applied_lets_those_behind_it_have_their_turn",
    ),
    Guard(
        "a callback that cannot be read is counted",
        "P11",
        "a provider changes its format, and nobody sees that nothing is learnt any more",
        Replaced(
            "notifier/web/machines/callbacks.py",
            "services.metrics.receipt_unreadable(provider)",
            "pass",
        ),
        "tests/web/machines/test_callbacks.py::"
        "test_p11_a_genuine_callback_that_cannot_be_read_is_counted_and_logged",
    ),
    Guard(
        "an earlier attempt's failure is not the newest one's",
        "P12",
        "a late bounce of the first try fails a retry that is on its way",
        Replaced(
            "notifier/domain/receipts.py",
            "if target is _S.FAILED and not known.is_latest:",
            "if False:",
        ),
        "tests/unit/test_receipts.py::"
        "test_the_failure_of_an_earlier_attempt_says_nothing_about_the_newest",
    ),
    Guard(
        "a cancel outranks all but arrival",
        "P12",
        "a canceled notice is shown as pending, and is waited for",
        Replaced("notifier/domain/notice_state.py", "    if canceled:\n", "    if False:\n"),
        "tests/unit/test_notice_state.py::test_rule_2_a_cancel_outranks_all_but_arrival",
    ),
    # --- the lead
    Guard(
        "a live lease is not taken",
        "P9",
        "two processes sweep at once, and each believes that it alone does",
        Replaced(LEADER, "     WHERE held.until < db_now()\n", "     WHERE true\n"),
        "tests/sweeps/test_leader.py::test_a_live_lease_is_not_taken",
    ),
    Guard(
        "a lead ends by its own clock",
        "P9",
        "a leader that was frozen goes on after another has taken over",
        Replaced(LEADER, "steady() < term[1] and ", ""),
        "tests/sweeps/test_leader.py::test_p9_a_renewal_that_hangs_does_not_prolong_the_lead",
    ),
    Guard(
        "who does not lead does not sweep",
        "P9",
        "who follows writes over what the leader says of its sweeps",
        Replaced(
            "notifier/sweeps/runner.py",
            "self._stopping.is_set() or not self._leader.is_leader()",
            "self._stopping.is_set()",
        ),
        "tests/sweeps/test_runner.py::test_who_does_not_lead_runs_nothing",
    ),
    # --- people's doors
    Guard(
        "a form belongs to its session",
        "P10",
        "another site's form, sent by an operator's browser, stops or releases sending",
        Replaced(
            SECURITY,
            "return hmac.compare_digest(offered.encode(), csrf_token().encode())",
            "return True",
        ),
        f"{GATE}test_a_form_without_its_token_is_refused_and_the_page_says_why",
    ),
    Guard(
        "no other site's post is taken",
        "P10",
        "a token that leaked is enough for another site to act in an operator's name",
        Replaced(
            SECURITY,
            'return request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin"',
            "return False",
        ),
        f"{GATE}test_a_post_from_another_site_is_refused_even_with_the_token",
    ),
    Guard(
        "pages answer under their own name",
        "P7",
        "whoever points a name of his at us reads pages through a colleague's browser",
        Replaced(SECURITY, "            raise WrongHost\n", "            return\n"),
        "tests/web/test_proxies.py::test_a_page_under_another_name_is_refused_and_a_probe_is_not",
    ),
    Guard(
        "exactly as many proxies are believed as there are",
        "P7",
        "whoever makes up an address has as many tries at a password as he likes",
        Replaced(SECURITY, "x_for=hops, x_proto=hops", "x_for=hops + 1, x_proto=hops + 1"),
        "tests/web/test_proxies.py::test_exactly_as_many_proxies_are_believed_as_there_are",
    ),
    Guard(
        "a log entry carries listed fields alone",
        "P7",
        "whatever somebody puts into an entry is written down",
        Replaced("notifier/logs.py", "if key in allowed and key not in shaped:", "if True:"),
        "tests/unit/test_logs.py::test_a_field_that_is_not_listed_is_dropped_and_counted",
    ),
    # --- tables that only grow
    _appended_only(
        "policy_revision",
        "policy_append_only",
        "the values that a notice was decided by are changed",
    ),
    _appended_only(
        "admission", "admission_append_only", "an id that was forgotten is admitted a second time"
    ),
    Guard(
        "trigger `ticket_link_append_only`",
        "P8",
        "a ticket is put on another person's notice",
        Replaced(
            NEVER, "ticket_link_append_only BEFORE UPDATE OR", "ticket_link_append_only BEFORE"
        ),
        f"{APPEND_ONLY}test_p8_not_even_the_owner_can_alter_or_remove_what_was_written",
    ),
    Guard(
        "trigger `template_append_only`",
        "P8",
        "a text that was sent passes for another",
        Replaced(NEVER, "template_append_only BEFORE UPDATE OR", "template_append_only BEFORE"),
        f"{APPEND_ONLY}test_p8_not_even_the_owner_can_alter_or_remove_what_was_written",
    ),
    Guard(
        "admission's keys cannot be changed",
        "P1",
        "an event is sent again under the keys that it lost",
        Replaced(
            "migrations/sql/0001_foundation.sql",
            "admission_append_only BEFORE UPDATE OR DELETE",
            "admission_append_only BEFORE DELETE",
        ),
        "tests/db/test_trail_is_append_only.py::"
        "test_p8_not_even_the_owner_can_alter_or_remove_what_was_written",
    ),
    Guard(
        "what is written once is not rewritten",
        "P8",
        "whom and what an attempt was for is changed afterwards",
        Replaced(
            NEVER, "number, class, key, reference, provider,", "number, class, key, provider,"
        ),
        f"{APPEND_ONLY}test_p8_not_even_the_owner_rewrites_what_is_written_once",
    ),
    Guard(
        "the application's role may write no column that its code does not",
        "P8",
        "a hole in the application that switches triggers off rewrites what was decided",
        Replaced(
            "migrations/sql/0001_roles.sql",
            "format('REVOKE UPDATE ON %s FROM notifier_app', guarded.relation)",
            "'SELECT 1'",
        ),
        "tests/db/test_trail_is_append_only.py::"
        "test_p8_the_application_cannot_alter_the_trail_even_without_triggers",
    ),
    _appended_only("read_audit", "read_audit_append_only", "who looked at what is rewritten"),
)
