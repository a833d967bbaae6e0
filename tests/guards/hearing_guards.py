"""The guards of what providers tell us, and of what an auditor checks."""

from __future__ import annotations

from tests.guards.guard import Guard, Migrated, Replaced

TWILIO = "notifier/providers/twilio.py"
TWILIO_SIGNATURE = "notifier/providers/twilio_signature.py"
CALLBACKS = "notifier/web/machines/callbacks.py"
POSTMARK = "notifier/providers/postmark.py"
HTTP_WORDS = "notifier/providers/http_words.py"
TRAIL_VERIFIER = "notifier/trail_verifier.py"
AT_TWILIO_CALLBACKS = "tests/providers/test_twilio_callbacks.py::"
AT_HTTP_OUTCOMES = "tests/providers/test_http_outcomes.py::"
AT_TAMPERING = "tests/trail/test_tampering.py::"
AT_CHECKPOINTS = "tests/trail/test_checkpoints.py::"

HEARING_GUARDS: tuple[Guard, ...] = (
    Guard(
        "a callback is of our own account",
        "P12",
        "another customer of the provider tells what became of our texts",
        Replaced(
            TWILIO,
            'if fields is None or fields.get("AccountSid") != self._account.sid:',
            "if fields is None:",
        ),
        f"{AT_TWILIO_CALLBACKS}test_another_accounts_token_or_another_account_is_refused",
    ),
    Guard(
        "a body that is no form is covered by its digest",
        "P12",
        "under a genuine address any body passes",
        Replaced(TWILIO_SIGNATURE, "or (kind != _FORM and not _is_covered(callback))", ""),
        f"{AT_TWILIO_CALLBACKS}test_a_json_body_is_covered_by_its_digest_in_the_address",
    ),
    Guard(
        "a field that stands twice is read as neither",
        "P12",
        "one reader sees delivered where another sees failed",
        Replaced(
            TWILIO_SIGNATURE,
            " for name, each in values.items() if len(each) == 1}",
            " for name, each in values.items()}",
        ),
        f"{AT_TWILIO_CALLBACKS}test_a_status_that_is_given_twice_is_read_as_neither",
    ),
    Guard(
        "the signed address is the public one",
        "P12",
        "whoever sets a host header chooses what was signed",
        Replaced(
            CALLBACKS,
            'return f"{public_url}{request.path}',
            'return f"{request.host_url.rstrip(chr(47))}{request.path}',
        ),
        "tests/channels/test_callbacks.py::"
        "test_twilio_signs_the_public_address_whatever_host_was_asked",
    ),
    Guard(
        "a password of nothing is none",
        "P12",
        "an empty setting lets everybody say what became of a message",
        Replaced(
            POSTMARK, "        if not callback_password.reveal().strip():\n", "        if False:\n"
        ),
        "tests/providers/test_postmark_receipts.py::test_without_a_password_nobody_is_let_in",
    ),
    Guard(
        "refused callbacks are added up",
        "P11",
        "a secret was changed on one side, and nobody sees that nothing is learnt any more",
        Replaced(CALLBACKS, "            services.refused(provider)\n", ""),
        "tests/web/machines/test_callbacks.py::"
        "test_p11_a_forged_one_is_a_refusal_whether_it_could_be_read_or_not",
    ),
    Guard(
        "a callback waits for nobody",
        "P11",
        "one locked notice holds the provider's line until it gives up",
        Replaced(
            "notifier/flow/receipts.py",
            "match.notice_id, patience_ms=PATIENCE_MS)",
            "match.notice_id)",
        ),
        "tests/db/ledger/test_receipts_at_once.py::"
        "test_a_storm_on_locked_notices_is_stored_at_once_and_applied_once_afterwards",
    ),
    Guard(
        "a search that is not kept to finds nothing",
        "P3",
        "another message is taken for the one that was looked for",
        Replaced(
            POSTMARK,
            "[each for each in listed if reference_of(each) == question.reference]",
            "list(listed)",
        ),
        "tests/providers/test_postmark_asking.py::"
        "test_p3_only_postmarks_own_empty_list_is_not_found[answer1-looked1]",
    ),
    Guard(
        "a text found is to our number and from our sender",
        "P3",
        "another's text stands as the proof of ours",
        Replaced(
            TWILIO,
            'return message.get("to") == to and same_sender and not inbound',
            "return not inbound",
        ),
        "tests/providers/test_twilio_asking.py::"
        "test_p3_what_cannot_be_ours_is_left_out_whatever_the_filter_did",
    ),
    Guard(
        "an answer that cannot be read proves nothing",
        "P3",
        "a message that was taken is sent again because of a proxy's page",
        Replaced(
            HTTP_WORDS,
            'return Unknown(Reason.UNREADABLE_ANSWER, f"http_{answer.status}")',
            'return NotAccepted(Detail.PROVIDER_ERROR, f"http_{answer.status}")',
        ),
        f"{AT_HTTP_OUTCOMES}test_p3_without_a_whole_answer_in_its_words_the_outcome_is_unknown",
    ),
    Guard(
        "only the provider's own words refuse",
        "P3",
        "a proxy's error page fails a message that is on its way",
        Replaced(
            HTTP_WORDS,
            "return refusal(said, answer) if said else Unknown(Reason.GATEWAY_ERROR, "
            'f"http_{answer.status}")',
            "return refusal(said, answer) if said else NotAccepted(Detail.PROVIDER_ERROR)",
        ),
        f"{AT_HTTP_OUTCOMES}test_p3_without_a_whole_answer_in_its_words_the_outcome_is_unknown",
    ),
    Guard(
        "a key that was used proves that the first call arrived",
        "P3",
        "a replay that meets its own first message is called turned away",
        Replaced(
            "notifier/providers/resend.py",
            "if answer.status == 409 and _name_in(document_of(answer.body)) == words.KEY_USED:",
            "if False:",
        ),
        "tests/providers/test_resend_sending.py::"
        "test_a_key_that_was_used_with_other_content_proves_that_a_message_was_taken",
    ),
    Guard(
        "a text below the provider's shortest validity is not posted",
        "P5",
        "a text is given more life than its link has",
        Replaced(
            TWILIO, "        if envelope.validity_s < SHORTEST_VALIDITY_S:\n", "        if False:\n"
        ),
        "tests/providers/test_twilio_sending.py::"
        "test_p5_below_the_shortest_validity_nothing_is_posted",
    ),
    Guard(
        "what reads outcomes imports no sender",
        "P4",
        "a look-up can reach a sender",
        Replaced(
            "notifier/flow/reconcile.py",
            "from notifier.store.ledger.looks import Look\n",
            "from notifier.store.ledger.looks import Look\n"
            "from notifier.ports import sending  # noqa: F401\n",
        ),
        "tests/db/ledger/test_reconcile.py::"
        "test_p4_what_reads_outcomes_cannot_reach_a_sender_by_any_chain_of_imports",
    ),
    Guard(
        "the verifier hashes each row",
        "P8",
        "a row that says something else passes",
        Replaced(
            TRAIL_VERIFIER, '        if row_hash(row) != row["hash"]:\n', "        if False:\n"
        ),
        f"{AT_TAMPERING}test_p8_what_needs_no_checkpoint_is_named_without_one",
    ),
    Guard(
        "the verifier follows the chain",
        "P8",
        "a row that was put in between passes",
        Replaced(TRAIL_VERIFIER, '    elif stored["seq"] > last["seq"]:\n', "    elif False:\n"),
        f"{AT_TAMPERING}test_p8_what_needs_no_checkpoint_is_named_without_one",
    ),
    Guard(
        "the verifier checks signatures",
        "P8",
        "whoever has the database signs checkpoints anew",
        Replaced(
            TRAIL_VERIFIER,
            '        return "the signature is not of this key"\n',
            '        return ""\n',
        ),
        f"{AT_CHECKPOINTS}test_p8_a_forged_checkpoint_is_found",
    ),
    Guard(
        "the verifier digests what was sealed",
        "P8",
        "heads are exchanged under a genuine signature",
        Replaced(
            TRAIL_VERIFIER,
            '(heads.count, heads.hexdigest()) != (record["heads"], record["heads_sha256"])',
            "False",
        ),
        f"{AT_CHECKPOINTS}test_p8_a_forged_checkpoint_is_found",
    ),
    Guard(
        "the verifier follows the checkpoints",
        "P8",
        "a checkpoint is taken out of the midst of the others",
        Replaced(TRAIL_VERIFIER, '    elif record["previous"] != last[1]:\n', "    elif False:\n"),
        f"{AT_CHECKPOINTS}test_p8_a_genuine_checkpoint_of_another_past_does_not_fit",
    ),
    Guard(
        "a field under the hash has its length before it",
        "P8",
        "what is moved from one field into the next gives the same hash",
        Migrated(
            "CREATE OR REPLACE FUNCTION notifier.trail_field(field text) RETURNS text "
            "LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT coalesce(field || ',', "
            "'-,') $$"
        ),
        "tests/db/ledger/test_trail.py::test_p8_the_chain_holds_for_code_that_knows_only_the_rule",
    ),
    Guard(
        "a template revision never changes after its first use",
        "P8",
        "nobody can say what a person was told",
        Replaced(
            "notifier/messages/revisions.py",
            "        elif source_digest(template_id, revision, root) != digest:\n",
            "        elif False:\n",
        ),
        "tests/messages/test_revisions.py::"
        "test_a_changed_source_under_a_known_revision_stops_the_start",
    ),
)
