"""The guards of what must stand nowhere, of the link, and of what programs are let do."""

from __future__ import annotations

from tests.guards.guard import Guard, Replaced

VALUES = "notifier/domain/values.py"
LOGS = "notifier/logs.py"
AUTH_SERVICE = "notifier/links/auth_service.py"
SIGNATURES = "notifier/signatures.py"
ANSWERS = "notifier/web/machines/answers.py"
REMARKS = "notifier/domain/remarks.py"
AT_REMARKS = (
    "tests/unit/test_remarks.py::"
    "test_p7_links_addresses_and_numbers_are_refused_by_name_and_not_repeated"
)
AT_P7_TYPES = "tests/leaks/test_p7_types.py::"
AT_LOGS = "tests/unit/test_logs.py::"
AT_AUTH_SERVICE = "tests/links/test_auth_service.py::"
AT_SIGNATURES = "tests/unit/test_signatures.py::"
AT_STATUS = "tests/web/machines/test_status.py::"
AT_HEALTH = "tests/web/machines/test_health.py::"

SECRET_GUARDS: tuple[Guard, ...] = (
    Guard(
        "a secret shows its mask",
        "P7",
        "whoever prints a value prints the link",
        Replaced(VALUES, 'return f"<{type(self).__name__} {self._mask}>"', "return self._content"),
        f"{AT_P7_TYPES}test_p7_a_secret_bearing_value_prints_its_mask",
    ),
    Guard(
        "a secret is not serialised",
        "P7",
        "a queue, a cache or a crash report keeps the link",
        Replaced(
            VALUES,
            '        message = f"{type(self).__name__} cannot be serialised"\n'
            "        raise TypeError(message)",
            "        return str, ()  # type: ignore[return-value]",
        ),
        f"{AT_P7_TYPES}test_p7_a_secret_bearing_value_cannot_be_serialised",
    ),
    Guard(
        "a name in a message holds no number that can be called",
        "P7",
        "whoever chooses a name has us sign for a stranger's telephone",
        Replaced(
            "notifier/messages/render.py",
            "    if sum(map(str.isdecimal, words)) > MAX_NAME_DIGITS:\n        return None\n",
            "",
        ),
        "tests/messages/test_render.py::test_a_name_passes_only_where_it_can_be_nothing_but_a_name",
    ),
    Guard(
        "a number in a remark is one whatever parts it",
        "P7",
        "a customer's telephone number stands on the trail for good",
        Replaced(
            REMARKS,
            "        any(_digits(each) >= _FEWEST for each in _NATIONAL.findall(run))\n        or ",
            "        ",
        ),
        AT_REMARKS,
    ),
    Guard(
        "a link in a remark is one without its scheme",
        "P7",
        "a live link stands in the banner of every page",
        Replaced(REMARKS, "        [^\\W\\d_]{{2,}}(?:[/?\\#&=]|:\\d)\\w?\n        |", "        "),
        AT_REMARKS,
    ),
    Guard(
        "the reason of a halt is checked as other remarks are",
        "P7",
        "an address stands in the banner of every page",
        Replaced(
            "notifier/flow/halts.py",
            "        return fit_reason(reason)\n",
            "        return reason\n",
        ),
        "tests/db/ledger/test_halts.py::test_a_halt_needs_a_reason_that_can_be_read",
    ),
    Guard(
        "the reason of a policy is checked as other remarks are",
        "P7",
        "an address stands in the policy's history for good",
        Replaced(
            "notifier/flow/policies.py",
            "        return fit_reason(reason)\n",
            "        return reason\n",
        ),
        "tests/db/test_policy_revisions.py::test_a_revision_needs_a_reason",
    ),
    Guard(
        "what looks like a secret or a person is redacted",
        "P7",
        "an address that got into a listed field stands in the log",
        Replaced(LOGS, "_SENSITIVE.sub(REDACTED, str(value)[: 4 * LONGEST])", "str(value)"),
        f"{AT_LOGS}test_p7_what_looks_like_a_secret_or_a_person_is_redacted_in_any_field",
    ),
    Guard(
        "an exception is reduced to its types",
        "P7",
        "a database error quotes the row that it is about",
        Replaced(
            LOGS,
            "return {**entry, **fault_fields(error)} if error is not None else entry",
            'return {**entry, "reason": str(error)} if error is not None else entry',
        ),
        f"{AT_LOGS}test_p7_an_exception_is_reduced_to_types_place_and_sqlstate",
    ),
    Guard(
        "libraries keep the constant part of a message alone",
        "P7",
        "an HTTP library logs the address that it asks, token and all",
        Replaced(
            LOGS,
            '            fields["template"] = record.msg\n',
            '            fields["template"] = record.getMessage()\n',
        ),
        f"{AT_LOGS}test_p7_libraries_keep_the_constant_part_of_a_message_alone",
    ),
    Guard(
        "fingerprints are for on-call and auditors",
        "P7",
        "support compares people by what we keep of their addresses",
        Replaced(
            "notifier/accounts/permissions.py",
            "Role.SUPPORT: _READING | {Permission.LINK_TICKETS},",
            "Role.SUPPORT: _READING | {Permission.LINK_TICKETS, Permission.SEE_FINGERPRINTS},",
        ),
        "tests/web/people/test_gate.py::test_support_sees_no_fingerprint_and_on_call_does",
    ),
    Guard(
        "masks and fingerprints are erased in their time",
        "P7",
        "what is kept of people's addresses is kept for ever",
        Replaced(
            "notifier/flow/retention.py",
            '        partial(retention.erase_contacts, days=days["contact_days"]),\n',
            "",
        ),
        "tests/db/ledger/test_retention.py::test_a_mask_is_erased_after_its_time_and_not_before",
    ),
    Guard(
        "a reader sees no session",
        "P7",
        "whoever may read the replica for reports has the digests of people's passwords",
        Replaced(
            "migrations/sql/0001_roles.sql",
            "REVOKE SELECT ON notifier.person, notifier.sign_in_link, notifier.session,",
            "REVOKE SELECT ON notifier.sign_in_link, notifier.session,",
        ),
        "tests/db/test_trail_is_append_only.py::"
        "test_p7_a_reader_writes_nothing_and_sees_no_session",
    ),
    Guard(
        "a provider's address is encrypted",
        "P7",
        "a setting with a slip sends links and tokens in clear",
        Replaced(
            "notifier/providers/http.py",
            'safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))',
            'safe = parts.scheme in ("http", "https")',
        ),
        "tests/providers/test_http_outcomes.py::"
        "test_an_address_that_is_not_safe_is_refused_at_start",
    ),
    Guard(
        "a link is https",
        "P7",
        "the link goes over the wire for everybody to read",
        Replaced(
            AUTH_SERVICE,
            'return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))',
            'return parts.scheme in ("http", "https")',
        ),
        f"{AT_AUTH_SERVICE}test_only_whole_https_links_in_plain_characters_are_passed_on",
    ),
    Guard(
        "a link has no user part",
        "P7",
        "a link that looks like ours leads to somebody else's host",
        Replaced(AUTH_SERVICE, '    if not host or "@" in parts.netloc:\n', "    if not host:\n"),
        f"{AT_AUTH_SERVICE}test_only_whole_https_links_in_plain_characters_are_passed_on",
    ),
    Guard(
        "a link has plain characters",
        "P7",
        "a line break in a link writes headers, a letter that looks alike another host",
        Replaced(AUTH_SERVICE, "    if not _URL.fullmatch(url):\n        return False\n", ""),
        f"{AT_AUTH_SERVICE}test_only_whole_https_links_in_plain_characters_are_passed_on",
    ),
    Guard(
        "a link is looked at before it is passed on",
        "P7",
        "whatever the answer holds is sent to people under our name",
        Replaced(
            AUTH_SERVICE,
            "    if not is_safe_url(url):\n        raise _UnusableError",
            "    if False:\n        raise _UnusableError",
        ),
        f"{AT_AUTH_SERVICE}test_an_answer_that_cannot_be_used_is_unavailable",
    ),
    Guard(
        "a link answer can only shorten the life",
        "P5",
        "a link answer with a slip lets a message start when its event has expired",
        Replaced(
            "notifier/flow/dispatch.py",
            "min(answer.expires_at or claim.expires_at, claim.expires_at)",
            "answer.expires_at or claim.expires_at",
        ),
        "tests/db/ledger/test_dispatch_guards.py::test_p5_a_link_answer_never_lengthens_the_life",
    ),
    Guard(
        "a link request ends within its limit",
        "P5",
        "an auth service that drips holds every worker until the stop time",
        Replaced(
            AUTH_SERVICE,
            "self._post(request, min(budget_s, LINK_LIMIT_S))",
            "self._post(request, 4.0)",
        ),
        f"{AT_AUTH_SERVICE}test_p5_the_limit_holds_for_the_sum_of_all_reads",
    ),
    Guard(
        "an event is signed by one of us",
        "P1",
        "whoever reaches the port has messages sent to anybody",
        Replaced(
            SIGNATURES,
            "    if matched is None:\n        raise SignatureInvalid\n",
            "    matched = matched or secrets[0]\n",
        ),
        f"{AT_SIGNATURES}test_one_changed_bit_anywhere_in_the_body_is_refused",
    ),
    Guard(
        "no secret is no entry",
        "P1",
        "an empty secret is one that everybody has",
        Replaced(SIGNATURES, "for secret in filter(None, secrets):", "for secret in secrets:"),
        f"{AT_SIGNATURES}test_without_a_secret_nobody_is_let_in",
    ),
    Guard(
        "a body's name stands once",
        "P1",
        "two readers of one event read two events",
        Replaced("notifier/web/documents.py", "if len(members) != len(pairs):", "if False:"),
        "tests/unit/test_documents.py::"
        "test_a_body_outside_the_agreed_form_is_refused_with_its_fault",
    ),
    Guard(
        "a header does not contradict the body's key",
        "P1",
        "a proxy that repeats with its own key has its event admitted under another",
        Replaced(
            "notifier/web/machines/admission.py", "    if _key_differs(event):\n", "    if False:\n"
        ),
        "tests/web/machines/test_admission.py::"
        "test_the_idempotency_header_may_agree_but_not_differ",
    ),
    Guard(
        "a program shows a token that we know",
        "P7",
        "whoever reaches the port reads what became of whose reset",
        Replaced(
            ANSWERS,
            "    if token is None:\n        raise Problem(Code.TOKEN_INVALID)\n",
            "    token = token or next(iter(services.api_tokens))\n",
        ),
        f"{AT_STATUS}test_without_a_known_token_nothing_is_looked_up",
    ),
    Guard(
        "a token has its scope",
        "P7",
        "the monitoring's token reads notices",
        Replaced(ANSWERS, "    if scope not in token.scopes:\n", "    if False:\n"),
        f"{AT_STATUS}test_a_token_of_another_scope_is_not_enough",
    ),
    Guard(
        "metrics beyond loopback want a token",
        "P7",
        "whoever reaches the port counts a company's resets",
        Replaced(
            "notifier/web/machines/health.py",
            "        if not (services.asked_from_here_alone and is_asked_from_here(request)):\n",
            "        if False:\n",
        ),
        f"{AT_HEALTH}test_metrics_need_a_token_where_others_may_ask",
    ),
    Guard(
        "what a proxy passes on is nobody's of this machine",
        "P7",
        "bound to loopback behind a proxy, everybody counts a company's resets",
        Replaced(
            "notifier/web/security.py",
            "    if any(name in request.headers for name in PASSED_ON):\n",
            "    if False:\n",
        ),
        f"{AT_HEALTH}test_metrics_need_a_token_of_whom_a_proxy_or_another_name_led_here",
    ),
)
