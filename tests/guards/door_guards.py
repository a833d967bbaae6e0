"""The guards of the doors that people come in by: sign-in, sessions, permissions, the audit."""

from __future__ import annotations

from tests.guards.guard import Guard, Replaced

SIGN_IN = "notifier/web/people/sign_in.py"
RATE_LIMITS = "notifier/accounts/rate_limits.py"
SESSIONS = "notifier/accounts/sessions.py"
PEOPLE = "notifier/accounts/people.py"
VISIT = "notifier/web/people/visit.py"
SIGN_IN_LINKS = "notifier/accounts/sign_in_links.py"
AT_SIGN_IN = "tests/web/people/test_sign_in.py::"
AT_GATE = "tests/web/people/test_gate.py::"
AT_OIDC = "tests/web/people/test_oidc.py::"
AT_AUDIT = "tests/web/people/test_audit.py::"

DOOR_GUARDS: tuple[Guard, ...] = (
    Guard(
        "tries to sign in are counted before they are looked at",
        "P10",
        "a password can be guessed at as fast as the machine hashes",
        Replaced(
            SIGN_IN,
            "        rate_limits.count_sign_in(connection, name, request.remote_addr)\n",
            "        pass\n",
        ),
        f"{AT_SIGN_IN}"
        "test_after_ten_wrong_passwords_a_name_has_to_wait_there_and_success_costs_nothing",
    ),
    Guard(
        "tries to sign in are counted by name and network",
        "P10",
        "whoever guesses at a colleague's name locks that colleague out",
        Replaced(
            RATE_LIMITS, '(SIGN_IN_BY_PAIR, f"{network} {name}"),', "(SIGN_IN_BY_PAIR, name),"
        ),
        f"{AT_SIGN_IN}test_whoever_guesses_at_a_name_locks_nobody_out_but_himself",
    ),
    Guard(
        "tries to sign in are counted by name",
        "P10",
        "many networks together guess at one name without a limit",
        Replaced(RATE_LIMITS, "        (SIGN_IN_BY_NAME, name),\n", ""),
        f"{AT_SIGN_IN}test_many_networks_together_run_into_the_wide_cap_of_the_name",
    ),
    Guard(
        "tries to sign in are counted by network",
        "P10",
        "one network guesses at all names",
        Replaced(RATE_LIMITS, "        (SIGN_IN_BY_ADDRESS, network),\n", ""),
        f"{AT_SIGN_IN}test_one_network_that_tries_many_names_has_to_wait",
    ),
    Guard(
        "an IPv6 customer is one network",
        "P10",
        "whoever has a network of his own has a fresh address for each guess",
        Replaced(
            RATE_LIMITS,
            "return str(ipaddress.ip_network((int(parsed), IPV6_NETWORK), strict=False))",
            "return str(parsed)",
        ),
        f"{AT_SIGN_IN}test_an_address_stands_for_its_network",
    ),
    Guard(
        "an id in an address counts as one in the box",
        "P10",
        "a program tries out who has an account as fast as it likes",
        Replaced(
            "notifier/web/people/search.py",
            "        rate_limits.count(connection, rate_limits.LOOK_UPS, visitor().name)\n"
            "        found = reads.look_up(",
            "        found = reads.look_up(",
        ),
        "tests/web/people/test_search.py::test_an_id_in_an_address_counts_as_one_in_the_box",
    ),
    Guard(
        "a NUL is refused at the door",
        "P10",
        "a name that no database keeps ends a sign-in in a fault that nobody counts",
        Replaced(VISIT, "    if security.holds_nul(request):\n", "    if False:\n"),
        "tests/web/people/test_unfit_input.py::test_no_page_takes_what_a_database_cannot_keep",
    ),
    Guard(
        "a form to sign in belongs to its browser",
        "P10",
        "another site signs a colleague's browser in under its own account",
        Replaced(
            SIGN_IN,
            "    if not form_is_current():\n        return form(",
            "    if False:\n        return form(",
        ),
        f"{AT_SIGN_IN}test_a_stale_sign_in_form_is_offered_again_with_the_name_kept",
    ),
    Guard(
        "a name nobody has takes as long as a wrong password",
        "P10",
        "whoever measures the answers learns who has an account",
        Replaced(
            "notifier/accounts/passwords.py",
            "    try:\n        _hasher.verify(stored or _NOBODY, password)",
            "    if stored is None:\n"
            "        return False\n"
            "    try:\n"
            "        _hasher.verify(stored or _NOBODY, password)",
        ),
        f"{AT_SIGN_IN}test_a_name_that_nobody_has_costs_the_work_of_a_wrong_password",
    ),
    Guard(
        "sign-in leads to a path of ours",
        "P7",
        "a link to our sign-in page ends on somebody else's",
        Replaced(
            "notifier/web/security.py",
            "    if offered is None or not _LOCAL_PATH.fullmatch(offered):\n",
            "    if offered is None:\n",
        ),
        f"{AT_GATE}test_sign_in_leads_nowhere_but_home",
    ),
    Guard(
        "a fresh session takes the place of the earlier one",
        "P10",
        "a session that somebody planted in a browser becomes its owner's",
        Replaced(
            SIGN_IN,
            "            sessions.end(connection, sessions.digest_of(earlier))\n",
            "            pass\n",
        ),
        f"{AT_SIGN_IN}test_signing_in_ends_the_session_that_the_browser_still_had",
    ),
    Guard(
        "a new password ends the sessions of before",
        "P10",
        "whoever had the old password goes on for hours after it was changed",
        Replaced(PEOPLE, "    sessions.end_all(connection, person_id)\n", ""),
        f"{AT_SIGN_IN}test_a_new_password_ends_the_persons_other_sessions_and_nobody_elses",
    ),
    Guard(
        "a role that the issuer took back is gone from every session",
        "P10",
        "an admin of yesterday stays one in a browser that was left open",
        Replaced(
            SIGN_IN,
            "            sessions.end_of_other_roles(connection, person_id, role)\n",
            "            pass\n",
        ),
        f"{AT_OIDC}"
        "test_another_role_at_the_next_sign_in_ends_the_sessions_that_hold_the_one_before",
    ),
    Guard(
        "a session ends when it is ended",
        "P10",
        "signing out ends nothing on our side",
        Replaced(SESSIONS, "           AND session.ended_at IS NULL\n", ""),
        f"{AT_SIGN_IN}test_signing_out_ends_the_session_for_every_copy_of_the_cookie",
    ),
    Guard(
        "a session has a longest life",
        "P10",
        "a stolen cookie is good for ever",
        Replaced(SESSIONS, "           AND session.expires_at > clock.now\n", ""),
        f"{AT_SIGN_IN}test_a_session_ends_after_ten_hours_however_busy",
    ),
    Guard(
        "an idle session ends",
        "P10",
        "whoever finds a browser open is somebody else",
        Replaced(SESSIONS, "           AND session.seen_at > clock.now - %(idle)s\n", ""),
        f"{AT_SIGN_IN}test_a_session_ends_after_half_an_hour_without_a_page",
    ),
    Guard(
        "a shut account has no session",
        "P10",
        "who left the company stops and releases sending",
        Replaced(SESSIONS, "           AND person.disabled_at IS NULL\n", ""),
        f"{AT_SIGN_IN}test_a_disabled_account_is_out_with_its_next_request",
    ),
    Guard(
        "a session of a way that was shut counts for nothing",
        "P10",
        "people of an issuer that is no longer asked stay in",
        Replaced(
            SESSIONS,
            "WHEN 'local' THEN %(local)s ELSE person.issuer = %(issuer)s END",
            "WHEN 'local' THEN %(local)s ELSE true END",
        ),
        f"{AT_OIDC}test_people_of_an_issuer_that_is_no_longer_asked_are_out",
    ),
    Guard(
        "a poll keeps no session alive",
        "P10",
        "a page that refreshes itself keeps an unwatched browser signed in all day",
        Replaced(VISIT, "extend = form is not Form.FRAGMENT", "extend = True"),
        f"{AT_SIGN_IN}test_polls_alone_do_not_keep_a_session_alive",
    ),
    Guard(
        "a sign-in link lets in once",
        "P10",
        "whoever reads an old mail has an account",
        Replaced(
            SIGN_IN_LINKS,
            "           AND token_digest = %s AND used_at IS NULL AND expires_at > db_now()\n",
            "           AND token_digest = %s AND expires_at > db_now()\n",
        ),
        f"{AT_SIGN_IN}test_a_one_time_link_survives_being_looked_at_and_lets_in_once",
    ),
    Guard(
        "a sign-in link ends after a day",
        "P10",
        "whoever reads an old mail has an account",
        Replaced(
            SIGN_IN_LINKS,
            "           AND token_digest = %s AND used_at IS NULL AND expires_at > db_now()\n",
            "           AND token_digest = %s AND used_at IS NULL\n",
        ),
        f"{AT_SIGN_IN}test_a_link_is_too_old_after_a_day",
    ),
    Guard(
        "where local accounts are off none signs in",
        "P10",
        "whoever knows an old password passes the issuer by",
        Replaced(
            SIGN_IN,
            "    if not services().local_accounts:\n        return form(where,",
            "    if False:\n        return form(where,",
        ),
        f"{AT_OIDC}test_local_accounts_are_shut_beside_an_issuer",
    ),
    Guard(
        "a page asks for its permission",
        "P10",
        "support releases a halt",
        Replaced(
            VISIT,
            "    if isinstance(view.needs, Permission) and not visitor().may(view.needs):\n",
            "    if False:\n",
        ),
        f"{AT_AUDIT}test_only_auditors_see_the_audit_or_a_way_to_it",
    ),
    Guard(
        "a view that says nothing is shut",
        "P10",
        "a page that somebody forgot to declare is open to all",
        Replaced(
            VISIT,
            '    if not hasattr(view, "needs"):\n        raise InternalServerError\n',
            '    if not hasattr(view, "needs"):\n        return None\n',
        ),
        f"{AT_GATE}test_the_gate_refuses_a_view_that_forgot_to_declare",
    ),
    Guard(
        "nobody gets in without a session",
        "P10",
        "whoever reaches the port reads notices",
        Replaced(
            VISIT,
            "        return to_sign_in()\n    if request.method",
            "        g.visitor = None\n    if request.method",
        ),
        f"{AT_GATE}test_nobody_gets_in_without_a_session",
    ),
    Guard(
        "a refusal is written down",
        "P8",
        "somebody tries every door, and nobody sees it",
        Replaced(VISIT, "        write_down(connection, wish)\n", "        pass\n"),
        f"{AT_GATE}test_a_refusal_is_written_down",
    ),
    Guard(
        "a look stands in the audit before it is shown",
        "P8",
        "nobody can say who looked a person up",
        Replaced(
            VISIT,
            "    read_audit.record(connection, visitor(), read, request_id(), refresh=refresh)\n",
            "    del connection, read, refresh\n",
        ),
        f"{AT_AUDIT}test_the_page_says_who_looked_for_what_kind_of_thing_and_how_much_was_found",
    ),
)
