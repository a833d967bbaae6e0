"""The guards of the rules: what is sent, held back and ended, and what admission decides."""

from __future__ import annotations

from tests.guards.guard import Guard, Replaced

FALLBACK = "notifier/domain/fallback.py"
DUE = "notifier/store/reads/due.py"
DESK = "notifier/flow/desk.py"
CLAIM = "notifier/store/ledger/claim.py"
ADMISSION_PLAN = "notifier/domain/admission_plan.py"
AT_FALLBACK = "tests/unit/test_fallback.py::"
AT_EXPIRY = "tests/db/ledger/test_expiry.py::"
AT_CLAIM = "tests/db/ledger/test_claim.py::"
AT_ADMISSION_PLAN = "tests/unit/test_admission_plan.py::"

DECISION_GUARDS: tuple[Guard, ...] = (
    Guard(
        "a halted text is not taken",
        "P10",
        "a text is queued under a halt, and the email that could go stands back for it",
        Replaced(FALLBACK, "text.halted or text.ever_attempted", "text.ever_attempted"),
        f"{AT_FALLBACK}test_p10_a_halted_text_is_not_taken[queued]",
    ),
    Guard(
        "nothing is decided after a cancel",
        "P6",
        "a text is sent for a reset that was used",
        Replaced(
            FALLBACK,
            "if view.now < view.expires_at and not view.canceled and",
            "if view.now < view.expires_at and",
        ),
        f"{AT_FALLBACK}test_a_canceled_notice_takes_no_fallback_and_its_unknown_ends_at_expiry",
    ),
    Guard(
        "a fallback belongs to its mode",
        "P6",
        "a text takes the place of an email that was to go alone",
        Replaced(
            FALLBACK,
            " and view.mode is PolicyMode.EMAIL_THEN_SMS:\n        yield from _email_comes_back",
            ":\n        yield from _email_comes_back",
        ),
        f"{AT_FALLBACK}test_other_modes_know_no_fallback[parallel]",
    ),
    Guard(
        "a hold keeps the text back",
        "P6",
        "a text goes although the policy says that doubt is no reason for one",
        Replaced(FALLBACK, 'if choice == "send":', "if True:"),
        f"{AT_FALLBACK}test_a_hold_is_noted_once_and_the_text_stays_in_reserve[unknown-holds0]",
    ),
    Guard(
        "the fallback time is waited for",
        "P6",
        "a text goes at the first doubt, while the email is on its way",
        Replaced(
            FALLBACK,
            "view.fallback_at is not None and view.now >= view.fallback_at",
            "view.fallback_at is not None",
        ),
        f"{AT_FALLBACK}test_an_unsent_email_makes_way_at_the_fallback_time[queued]",
    ),
    Guard(
        "an email that ran out of time unsent brings the text",
        "P6",
        "after an outage nobody is told, though a text could still go",
        Replaced(FALLBACK, "        _S.EXPIRED: _R.FALLBACK_EMAIL_EXPIRED,\n", ""),
        f"{AT_FALLBACK}test_an_email_that_ended_sends_the_text_at_once[expired-fallback_email_expired-0]",
    ),
    Guard(
        "an email put aside comes back when the text has ended",
        "P6",
        "a text that failed in time takes the email with it",
        Replaced(
            FALLBACK,
            "if view.email.state is _S.STANDBY and view.sms.state in ENDED_BADLY:",
            "if False:",
        ),
        f"{AT_FALLBACK}test_an_email_put_aside_comes_back_when_the_text_ends_in_time[failed]",
    ),
    Guard(
        "a queued text stands back for an email that arrived",
        "P6",
        "a text goes out to somebody who has the email",
        Replaced(
            FALLBACK,
            "waits = view.sms.state is _S.QUEUED or (at_intent and",
            "waits = (at_intent and",
        ),
        f"{AT_FALLBACK}test_a_queued_text_stands_back_for_a_delivered_email",
    ),
    Guard(
        "a text that was attempted does not stand back",
        "P12",
        "a text that may be on its way is shown as held in reserve",
        Replaced(
            FALLBACK, "    elif waits and not view.sms.ever_attempted:\n", "    elif waits:\n"
        ),
        f"{AT_FALLBACK}test_a_text_that_was_attempted_does_not_stand_back",
    ),
    Guard(
        "a delivered email leaves the text in reserve",
        "P6",
        "the email bounces, and the text was given away",
        Replaced(
            FALLBACK,
            "if not view.takes_bounces and view.email.state is _S.ACCEPTED:",
            "if not view.takes_bounces:",
        ),
        f"{AT_FALLBACK}test_a_delivered_email_leaves_the_text_in_reserve[1]",
    ),
    Guard(
        "the reserve is kept where bounces are taken in",
        "P6",
        "the relay's bounce comes, and the text was given away",
        Replaced(
            FALLBACK,
            "if not view.takes_bounces and view.email.state is _S.ACCEPTED:",
            "if view.email.state is _S.ACCEPTED:",
        ),
        f"{AT_FALLBACK}test_final_acceptance_keeps_the_reserve_where_bounces_are_taken_in[1]",
    ),
    Guard(
        "a fallback is called avoidable only if the email was there first",
        "P12",
        "the rate of needless texts counts those that were needed",
        Replaced(
            FALLBACK,
            "arrived is not None and queued is not None and arrived < queued:",
            "arrived is not None and queued is not None:",
        ),
        f"{AT_FALLBACK}test_a_fallback_is_noted_as_avoidable_when_the_email_had_arrived_before[400]",
    ),
    Guard(
        "what is unsent ends at its stop time",
        "P5",
        "what nobody may start any more is shown as queued until it expires",
        Replaced(
            FALLBACK,
            "if delivery.state in UNSENT and view.now >= min(delivery.stop_at, view.expires_at):",
            "if delivery.state in UNSENT and view.now >= view.expires_at:",
        ),
        f"{AT_FALLBACK}test_an_email_that_ran_out_of_time_unsent_sends_the_text_in_the_same_breath",
    ),
    Guard(
        "an acceptance that is final outlives expiry",
        "P12",
        "a notice that was complete turns into an expired one",
        Replaced(
            FALLBACK,
            "delivery.state is _S.ACCEPTED and not delivery.acceptance_is_final:",
            "delivery.state is _S.ACCEPTED:",
        ),
        f"{AT_FALLBACK}test_a_reserve_not_needed_is_suppressed_at_its_stop_time[accepted-more1-primary_accepted_final-600]",
    ),
    Guard(
        "an email put aside is superseded only by a text under way",
        "P12",
        "it is said that a text took the email's place, and there was none",
        Replaced(FALLBACK, "    if under_way:\n", "    if True:\n"),
        f"{AT_FALLBACK}test_an_email_put_aside_comes_back_when_the_text_ends_in_time[failed]",
    ),
    Guard(
        "a reserve that was held says so at its end",
        "P12",
        "support is told that there was no time, where the policy had decided",
        Replaced(FALLBACK, "if view.hold_noted and view.email.state in GONE_OUT:", "if False:"),
        f"{AT_FALLBACK}test_a_held_reserve_is_suppressed_by_policy_at_its_stop_time[unknown]",
    ),
    Guard(
        "the expiry sweep passes over acceptances that are final",
        "P11",
        "notices that are complete fill every batch, and what has run out waits behind them",
        Replaced(
            DUE,
            "(d.state = 'accepted' AND NOT d.final_acceptance))\n    AND d.expires_at",
            "d.state = 'accepted')\n    AND d.expires_at",
        ),
        f"{AT_EXPIRY}test_final_acceptance_outlives_expiry",
    ),
    Guard(
        "the fallback sweep passes over what has nothing to decide",
        "P6",
        "notices on hold fill every batch, and those behind them get no text",
        Replaced(DUE, "   AND NOT (e.state IN ('unknown', 'accepted') AND n.hold_noted)\n", ""),
        f"{AT_EXPIRY}test_p6_notices_that_wait_after_their_fallback_time_hide_no_later_one",
    ),
    Guard(
        "the rules are asked whenever a book closes",
        "P6",
        "a fact that calls for the text is written, and the text waits for the sweep",
        Replaced(DESK, "for step in settle(self._view(book, policy)):", "for step in ():"),
        "tests/db/ledger/test_fallback.py::"
        "test_p6_an_email_without_a_word_makes_way_at_the_fallback_time_and_not_before[queued]",
    ),
    Guard(
        "a notice is judged by the policy that it was admitted under",
        "P12",
        "a new revision decides about notices that others were promised something for",
        Replaced(
            DESK,
            "return self._shelf.of(book.notice.policy_revision)",
            "return self._shelf.current()[1]",
        ),
        "tests/db/ledger/test_reconcile_absence.py::"
        "test_p3_the_policy_of_the_admission_decides_not_the_newest",
    ),
    Guard(
        "a claim keeps an email for a text that can go",
        "P6",
        "an email waits for a text that is halted, and neither goes",
        Replaced(
            CLAIM,
            "AND NOT EXISTS (SELECT FROM halt x WHERE x.released_at IS NULL\n"
            "              AND x.scope = ANY (ARRAY['all', 'channel:sms'",
            "AND NOT EXISTS (SELECT FROM halt x WHERE false\n"
            "              AND x.scope = ANY (ARRAY['all', 'channel:sms'",
        ),
        f"{AT_CLAIM}test_an_email_whose_text_is_halted_goes_on_after_the_fallback_time",
    ),
    Guard(
        "a claim keeps no email for a text out of time",
        "P6",
        "an email waits for a text whose stop time has passed, and neither goes",
        Replaced(CLAIM, "AND t.stop_at > clock.now AND t.attempts = 0", "AND t.attempts = 0"),
        f"{AT_CLAIM}"
        "test_an_email_whose_text_is_out_of_time_goes_on_before_any_sweep_has_ended_the_text",
    ),
    Guard(
        "an explicit no counts",
        "P6",
        "somebody who refused texts gets one",
        Replaced(
            ADMISSION_PLAN,
            "return said is True or (said is None and not required)",
            "return said is not None or not required",
        ),
        f"{AT_ADMISSION_PLAN}test_consent_is_silence_or_yes_as_the_policy_says[False-False-no_consent]",
    ),
    Guard(
        "silence is no consent to texts",
        "P6",
        "a text goes to somebody who was never asked",
        Replaced(
            ADMISSION_PLAN,
            "if not _consents(inputs.sms_consent, policy.require_consent.sms):",
            "if not _consents(inputs.sms_consent, False):",
        ),
        f"{AT_ADMISSION_PLAN}test_consent_is_silence_or_yes_as_the_policy_says[None-True-no_consent]",
    ),
    Guard(
        "a text goes to listed countries alone",
        "P6",
        "a text goes to a country where it may not",
        Replaced(
            ADMISSION_PLAN,
            'return listed == "any" or (region is not None and region.upper() in listed)',
            'return listed == "any" or region is None or region.upper() in listed',
        ),
        f"{AT_ADMISSION_PLAN}test_a_list_of_countries_limits_texts_and_only_texts[None-False]",
    ),
    Guard(
        "a text without room is not reserved",
        "P5",
        "an email makes way for a text that will be out of time",
        Replaced(
            ADMISSION_PLAN,
            "if fallback_at + timedelta(seconds=terms.sms_room_s) > terms.sms_stop_at:",
            "if fallback_at > terms.sms_stop_at:",
        ),
        f"{AT_ADMISSION_PLAN}test_a_text_without_room_is_not_reserved",
    ),
    Guard(
        "the fallback leaves the email one call and one poll",
        "P6",
        "with a short life the text goes before the email could answer",
        Replaced(
            ADMISSION_PLAN,
            "return max(min(watched, reserved), earliest)",
            "return min(watched, reserved)",
        ),
        f"{AT_ADMISSION_PLAN}test_the_fallback_time_is_never_before_one_call_and_one_poll",
    ),
    Guard(
        "a stop time is a margin before expiry",
        "P5",
        "messages start whose link is dead when they are read",
        Replaced(
            ADMISSION_PLAN,
            "return expires_at - timedelta(seconds=policy.safety_margin(channel))",
            "return expires_at",
        ),
        f"{AT_ADMISSION_PLAN}test_an_email_goes_first_and_a_text_is_reserved",
    ),
    Guard(
        "the statement reserves no text without room",
        "P5",
        "what is stored is not what the rule says",
        Replaced(
            "notifier/store/ledger/admission.py",
            "WHEN decide_at + %(sms_room)s > %(sms_stop_at)s",
            "WHEN false",
        ),
        "tests/db/test_admission_plan_agrees.py::test_p12_the_statement_and_the_rule_decide_alike",
    ),
    Guard(
        "parallel is for the listed reasons",
        "P6",
        "whoever posts events decides that everybody gets two messages",
        Replaced(
            ADMISSION_PLAN, "return reason_code in policy.parallel_reason_codes", "return True"
        ),
        f"{AT_ADMISSION_PLAN}test_parallel_is_permitted_only_for_listed_reason_codes",
    ),
)
