"""The guards of single sign-on: whose answer is believed, and as whom it lets somebody in."""

from __future__ import annotations

from tests.guards.guard import Guard, Replaced

OIDC_STARTS = "notifier/accounts/oidc_starts.py"
OIDC_ISSUER = "notifier/accounts/oidc_issuer.py"
OIDC_TOKENS = "notifier/accounts/oidc_tokens.py"
OIDC = "notifier/accounts/oidc.py"
AT_OIDC = "tests/web/people/test_oidc.py::"
AT_OIDC_TOKENS = "tests/web/people/test_oidc_tokens.py::"

ISSUER_GUARDS: tuple[Guard, ...] = (
    Guard(
        "a way to the issuer comes back to its own browser",
        "P10",
        "somebody signs a colleague's browser in as himself, or takes over an answer",
        Replaced(
            OIDC_STARTS,
            "WHERE state_digest = %s AND browser_digest = %s AND",
            "WHERE state_digest = %s AND %s IS NOT NULL AND",
        ),
        f"{AT_OIDC}test_an_answer_belongs_to_the_browser_that_began_and_counts_once",
    ),
    Guard(
        "a way to the issuer comes back once",
        "P10",
        "an answer that was overheard is used a second time",
        Replaced(
            OIDC_STARTS,
            "        DELETE FROM sign_in_start\n         WHERE state_digest",
            "        UPDATE sign_in_start SET next_path = next_path\n         WHERE state_digest",
        ),
        f"{AT_OIDC}test_a_way_to_the_issuer_is_taken_once_and_in_time",
    ),
    Guard(
        "a way to the issuer comes back in time",
        "P10",
        "an answer that lay about for days lets somebody in",
        Replaced(OIDC_STARTS, "\n           AND expires_at > db_now()", ""),
        f"{AT_OIDC}test_a_way_to_the_issuer_is_taken_once_and_in_time",
    ),
    Guard(
        "an answer that names another issuer is refused",
        "P10",
        "one issuer's answer is taken for another's",
        Replaced(
            OIDC_ISSUER,
            "if said != self.client.issuer and (said is not None or names_itself is True):",
            "if False:",
        ),
        f"{AT_OIDC_TOKENS}test_an_answer_that_names_another_issuer_is_refused",
    ),
    Guard(
        "a token is for this sign-in",
        "P10",
        "a token of another sign-in is put into this one",
        Replaced(OIDC_TOKENS, 'for key in ("nonce", "client_id")}', 'for key in ("client_id",)}'),
        f"{AT_OIDC_TOKENS}test_a_claim_that_is_not_for_this_sign_in_lets_nobody_in",
    ),
    Guard(
        "a token is for us",
        "P10",
        "a token that the issuer made for somebody else's service lets its owner in here",
        Replaced(
            OIDC_TOKENS, '        "aud": {"essential": True, "value": expected["client_id"]},\n', ""
        ),
        f"{AT_OIDC_TOKENS}test_a_claim_that_is_not_for_this_sign_in_lets_nobody_in",
    ),
    Guard(
        "a token is of our issuer",
        "P10",
        "whoever shares a key with our issuer says who comes in",
        Replaced(
            OIDC_TOKENS, '        "iss": {"essential": True, "value": expected["issuer"]},\n', ""
        ),
        f"{AT_OIDC_TOKENS}test_a_claim_that_is_not_for_this_sign_in_lets_nobody_in",
    ),
    Guard(
        "a token is signed by what the issuer alone can sign",
        "P10",
        "whoever knows the secret that we share with the issuer makes tokens himself",
        Replaced(OIDC_TOKENS, 'and each.get("kty") in _KEY_KINDS\n', "and True\n"),
        f"{AT_OIDC_TOKENS}test_a_shared_secret_among_the_keys_is_no_key",
    ),
    Guard(
        "an issuer describes itself",
        "P10",
        "whoever answers in the issuer's place says where tokens come from",
        Replaced(OIDC_ISSUER, 'if document.get("issuer") != self.client.issuer:', "if False:"),
        f"{AT_OIDC_TOKENS}test_an_issuer_that_describes_itself_oddly_is_not_used",
    ),
    Guard(
        "one role and no more",
        "P10",
        "somebody with two roles sees what one of them must not",
        Replaced(OIDC, "if len(set(found)) > 1 and not client.ordered:", "if False:"),
        f"{AT_OIDC_TOKENS}test_a_role_is_a_whole_value_of_the_claim_and_exactly_one",
    ),
    Guard(
        "no role is no entry",
        "P10",
        "everybody in the company reads notices",
        Replaced(
            OIDC, "        raise SignInRefused(Refusal.NO_ROLE)\n", "        return Role.SUPPORT\n"
        ),
        f"{AT_OIDC_TOKENS}test_a_role_is_a_whole_value_of_the_claim_and_exactly_one",
    ),
    Guard(
        "a shut account stays shut for whoever comes from the issuer",
        "P10",
        "who was shut out here comes back by the issuer's door",
        Replaced(
            "notifier/accounts/oidc_people.py", 'if row["disabled_at"] is not None:', "if False:"
        ),
        f"{AT_OIDC}test_a_person_of_the_issuer_who_is_shut_out_is_out_everywhere",
    ),
)
