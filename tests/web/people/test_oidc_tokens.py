"""What an issuer says is believed only where the issuer alone can have said it, to us, now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from notifier import setting_values
from notifier.accounts import oidc_issuer, oidc_starts
from notifier.accounts.oidc import (
    Identity,
    IssuerUnreachable,
    Refusal,
    SignInRefused,
    client_of,
    identity_of,
    role_of,
)
from notifier.accounts.oidc_issuer import Issuer
from notifier.accounts.permissions import Role
from notifier.doctor import _single_sign_on
from notifier.settings import SettingsInvalid, load_settings
from tests.issuers import (
    CLIENT_SECRET,
    LyingIssuer,
    altered,
    client_at,
    lying_issuer,
    new_key,
    signed_with_secret,
    unsigned,
)
from tests.unit.test_settings import LEAST

START = oidc_starts.of_state("the-state", "what the browser holds")


@pytest.fixture
def liar() -> Iterator[LyingIssuer]:
    with lying_issuer() as issuer:
        yield issuer


def sign_in(issuer: Issuer, liar: LyingIssuer, now: datetime | None = None) -> Identity:
    code = liar.authorize(issuer.way_in(START)).partition("code=")[2].partition("&")[0]
    claims = issuer.claims(code, START, now or datetime.now(UTC))
    return identity_of(issuer.client, claims)


def refusal(liar: LyingIssuer, now: datetime | None = None) -> tuple[Refusal, str]:
    with pytest.raises(SignInRefused) as caught:
        sign_in(Issuer(client_at(liar.url)), liar, now)
    return caught.value.refusal, caught.value.detail


def test_an_honest_token_says_who_it_is_and_the_code_counts_once(liar: LyingIssuer) -> None:
    issuer = Issuer(client_at(liar.url))
    assert sign_in(issuer, liar) == Identity(liar.url, "sub-ada", "ada", Role.SUPPORT)
    with pytest.raises(SignInRefused) as caught:
        issuer.claims("code-0-1", START, datetime.now(UTC))
    assert caught.value.refusal is Refusal.CODE


NOW = time.time()


@pytest.mark.parametrize(
    ("changed", "claim"),
    [
        ({"aud": "somebody-else"}, "aud"),
        ({"aud": ["reset-notices", "somebody-else"]}, "azp"),
        ({"azp": "somebody-else"}, "azp"),
        ({"iss": "https://other.example.test"}, "iss"),
        ({"nonce": "of another sign-in"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"exp": NOW - 3600}, "exp"),
        ({"exp": None}, "exp"),
        ({"exp": "tomorrow"}, "exp"),
        ({"iat": NOW + 3600}, "iat"),
        ({"nbf": NOW + 3600}, "nbf"),
        ({"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}, "at_hash"),
        ({"sub": None}, "sub"),
        ({"sub": ""}, "sub"),
        ({"sub": "x" * 256}, "sub"),
    ],
)
def test_a_claim_that_is_not_for_this_sign_in_lets_nobody_in(
    liar: LyingIssuer, changed: dict[str, Any], claim: str
) -> None:
    liar.token_claims = changed
    found, detail = refusal(liar)
    assert found is Refusal.TOKEN
    assert claim in detail


FORGERIES: dict[str, Callable[[LyingIssuer], Any]] = {
    "none": lambda _: unsigned,
    "client secret": lambda _: signed_with_secret(CLIENT_SECRET.encode()),
    "public key": lambda liar: signed_with_secret(liar.key.as_pem(private=False)),
    "altered": altered,
    "another key": lambda _: LyingIssuer().signed,
}


@pytest.mark.parametrize("how", FORGERIES)
def test_a_signature_that_others_can_make_lets_nobody_in(liar: LyingIssuer, how: str) -> None:
    liar.forge = FORGERIES[how](liar)
    assert refusal(liar)[0] is Refusal.TOKEN


def test_the_clock_that_counts_is_the_one_that_is_handed_in(liar: LyingIssuer) -> None:
    there = datetime.now(UTC)
    late = sign_in(Issuer(client_at(liar.url)), liar, there + timedelta(seconds=330))
    assert late.role is Role.SUPPORT
    assert refusal(liar, there + timedelta(seconds=600)) == (Refusal.TOKEN, "exp")
    assert refusal(liar, there - timedelta(seconds=600)) == (Refusal.TOKEN, "iat")


def test_a_new_key_of_the_issuer_is_fetched_once_when_it_is_met(liar: LyingIssuer) -> None:
    issuer = Issuer(client_at(liar.url))
    sign_in(issuer, liar)
    liar.publish(new_key("second"))
    assert sign_in(issuer, liar).subject == "sub-ada"
    sign_in(issuer, liar)
    assert liar.asked.count("/keys") == 2


def test_a_shared_secret_among_the_keys_is_no_key(liar: LyingIssuer) -> None:
    liar.published = [{"kty": "oct", "k": "AAAA", "kid": "first"}]
    assert refusal(liar) == (Refusal.TOKEN, "signature")


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({"issuer": "https://other.example.test"}, "names_another_issuer"),
        ({"token_endpoint": "http://id.example.test/token"}, "no_usable_token_endpoint"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "no_usable_authorization_endpoint"),
        ({"jwks_uri": None}, "no_usable_jwks_uri"),
        ({"end_session_endpoint": "//evil.example"}, "no_usable_end_session_endpoint"),
    ],
)
def test_an_issuer_that_describes_itself_oddly_is_not_used(
    liar: LyingIssuer, document: dict[str, Any], what: str
) -> None:
    liar.document = document
    with pytest.raises(IssuerUnreachable) as caught:
        Issuer(client_at(liar.url)).offer()
    assert caught.value.what == what
    assert what in _single_sign_on(client_at(liar.url)).detail


def test_an_answer_that_names_another_issuer_is_refused(liar: LyingIssuer) -> None:
    issuer = Issuer(client_at(liar.url))
    issuer.check_sender(None)
    issuer.check_sender(liar.url)
    liar.document = {"authorization_response_iss_parameter_supported": True}
    for strict, said in ((issuer, "https://other.example.test"), (Issuer(issuer.client), None)):
        with pytest.raises(SignInRefused) as caught:
            strict.check_sender(said)
        assert caught.value.refusal is Refusal.OTHER_ISSUER


def test_a_silent_issuer_is_asked_once_and_left_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(oidc_issuer, "QUIET_S", 600.0)
    with lying_issuer() as liar:
        issuer = Issuer(client_at(liar.url))
    for what in ("no_connection", "silent_before"):
        with pytest.raises(IssuerUnreachable) as caught:
            issuer.offer()
        assert caught.value.what == what


def test_the_doctor_reads_what_the_issuer_offers(liar: LyingIssuer) -> None:
    found = _single_sign_on(client_at(liar.url))
    assert found.ok
    assert found.detail == "reachable, 1 keys, signatures ES256"
    assert liar.asked == ["/.well-known/openid-configuration", "/keys"]


@pytest.mark.parametrize(
    ("claims", "role"),
    [
        ({"groups": "auditor"}, Role.AUDITOR),
        ({"groups": ["staff", "on-call"]}, Role.ON_CALL),
        ({"groups": ["support", "support"]}, Role.SUPPORT),
        ({"groups": ["support", "admin"]}, Refusal.SEVERAL_ROLES),
        ({"groups": ["Admin", "ADMIN", " admin", "admin ", "administrators"]}, Refusal.NO_ROLE),
        ({"groups": {"admin": True}}, Refusal.NO_ROLE),
        ({"groups": [["admin"], 1, None]}, Refusal.NO_ROLE),
        ({"groups": "support,admin"}, Refusal.NO_ROLE),
        ({"groups": ["x"] * 1000 + ["admin"]}, Refusal.NO_ROLE),
        ({"role": "admin"}, Refusal.NO_ROLE),
        ({}, Refusal.NO_ROLE),
    ],
)
def test_a_role_is_a_whole_value_of_the_claim_and_exactly_one(
    claims: dict[str, Any], role: Role | Refusal
) -> None:
    assert role_or_refusal(claims) is role


def test_an_order_of_the_operators_own_decides_between_several() -> None:
    order = {"sre": Role.ON_CALL, "desk": Role.SUPPORT}
    told = {"roles": order, "ordered": True, "role_claim": "realm_access.roles"}
    for held, role in (
        (["desk", "sre"], Role.ON_CALL),
        (["desk"], Role.SUPPORT),
        (["admin", "on-call"], Refusal.NO_ROLE),
    ):
        assert role_or_refusal({"realm_access": {"roles": held}}, **told) is role
    assert role_or_refusal({"realm_access": "sre"}, **told) is Refusal.NO_ROLE
    assert role_or_refusal({"realm_access.roles": "sre"}, **told) is Role.ON_CALL


def role_or_refusal(claims: dict[str, Any], **more: Any) -> Role | Refusal:
    try:
        return role_of(client_at("https://id.example.test", **more), claims)
    except SignInRefused as error:
        return error.refusal


OIDC = {
    "NOTIFIER_OIDC_ISSUER": "https://id.example.test/realm",
    "NOTIFIER_OIDC_CLIENT_ID": "us",
    "NOTIFIER_OIDC_CLIENT_SECRET": "canary-secret",
    "NOTIFIER_OIDC_ROLE_CLAIM": "groups",
}


def test_the_settings_say_who_we_are_at_the_issuer() -> None:
    roles = "sre = on-call, cn=desk=support"
    client = client_of(load_settings({**LEAST, **OIDC, "NOTIFIER_OIDC_ROLES": roles}))
    assert client is not None
    assert list(client.roles.items()) == [("sre", Role.ON_CALL), ("cn=desk", Role.SUPPORT)]
    assert client.redirect_uri == "http://127.0.0.1:8000/login/sso/return"
    assert "canary-secret" not in repr(client)
    plain = client_of(load_settings({**LEAST, **OIDC}))
    assert plain is not None
    assert (list(plain.roles), plain.ordered) == ([role.value for role in Role], False)
    assert client_of(load_settings(LEAST)) is None
    assert tuple(Role) == setting_values.ROLE_NAMES


@pytest.mark.parametrize(
    ("changed", "variable"),
    [
        ({"NOTIFIER_OIDC_ISSUER": ""}, "NOTIFIER_OIDC_ISSUER"),
        ({"NOTIFIER_OIDC_ISSUER": "http://id.example.test"}, "NOTIFIER_OIDC_ISSUER"),
        ({"NOTIFIER_OIDC_ISSUER": "https://id.example.test?x=1"}, "NOTIFIER_OIDC_ISSUER"),
        ({"NOTIFIER_OIDC_CLIENT_SECRET": " "}, "NOTIFIER_OIDC_CLIENT_SECRET"),
        ({"NOTIFIER_OIDC_ROLES": "sre"}, "NOTIFIER_OIDC_ROLES"),
        ({"NOTIFIER_OIDC_ROLES": "sre=root"}, "NOTIFIER_OIDC_ROLES"),
        ({"NOTIFIER_OIDC_ROLES": "sre=admin,sre=support"}, "NOTIFIER_OIDC_ROLES"),
        ({"NOTIFIER_PUBLIC_URL": "http://notices.example.test"}, "NOTIFIER_PUBLIC_URL"),
    ],
)
def test_a_setting_that_would_open_a_hole_names_its_variable(
    changed: dict[str, str], variable: str
) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        load_settings({**LEAST, **OIDC, **changed})
    assert [each.variable for each in caught.value.problems] == [variable]
    assert "example.test" not in str(caught.value)
