"""Twilio's callbacks: signed by Twilio's own code, verified by ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import urlencode

import pytest
from twilio.request_validator import RequestValidator
from werkzeug.datastructures import MultiDict

from notifier.domain.reasons import Detail
from notifier.domain.receipts import ReceiptStatus
from notifier.ports.asking import (
    Callback,
    CallbackRefused,
    CallbackUnreadable,
    ProviderReceipt,
    ReceiptParser,
)
from tests.providers import http_sending as ways
from tests.providers.http_sending import asking_twilio

URL = f"{ways.PUBLIC_URL}/callbacks/twilio/{ways.REFERENCE}"
S = ReceiptStatus
Pairs = Sequence[tuple[str, str]]


class _Repeated(MultiDict[str, str]):
    """Gives a name's values as the independent signer asks for them."""

    def getall(self, name: str) -> list[str]:
        return self.getlist(name)


def fields(**changes: str) -> list[tuple[str, str]]:
    usual = {
        "MessageSid": ways.MESSAGE_SID,
        "MessageStatus": "delivered",
        "AccountSid": ways.SID,
        "To": ways.NUMBER,
        "From": ways.FROM_NUMBER,
        "ApiVersion": "2010-04-01",
    }
    return [(name, value) for name, value in (usual | changes).items() if value]


def signed(
    pairs: Pairs, *, signed_url: str = URL, url: str = URL, token: str = ways.TOKEN
) -> Callback:
    signature = RequestValidator(token).compute_signature(signed_url, _Repeated(pairs))
    headers = {
        "X-Twilio-Signature": signature,
        "Content-Type": "application/x-www-form-urlencoded; charset=UTF-8",
    }
    return Callback(url, headers, urlencode(pairs).encode())


def parse(callback: Callback) -> list[ProviderReceipt]:
    parser: ReceiptParser = asking_twilio()
    return list(parser.parse(callback))


def test_a_callback_that_twilios_own_code_signed_is_read() -> None:
    (receipt,) = parse(signed(fields()))
    assert receipt == ProviderReceipt(
        provider="twilio",
        account=ways.SID,
        identity=receipt.identity,
        status=S.DELIVERED,
        provider_code="delivered",
        reference=ways.REFERENCE,
        provider_message_id=ways.MESSAGE_SID,
    )


@pytest.mark.parametrize(
    ("word", "status", "detail"),
    [
        *[
            (word, S.ACCEPTED, None)
            for word in (
                "accepted",
                "scheduled",
                "queued",
                "sending",
                "sent",
                "partially_delivered",
            )
        ],
        ("delivered", S.DELIVERED, None),
        ("read", S.DELIVERED, None),
        ("undelivered", S.FAILED, Detail.UNCLASSIFIED),
        ("failed", S.FAILED, Detail.UNCLASSIFIED),
        ("canceled", S.FAILED, Detail.CANCELLED),
        ("received", S.UNMAPPED, Detail.UNCLASSIFIED),
        ("newly_invented", S.UNMAPPED, Detail.UNCLASSIFIED),
        ("Delivered", S.UNMAPPED, Detail.UNCLASSIFIED),
    ],
)
def test_each_status_has_one_meaning(
    word: str, status: ReceiptStatus, detail: Detail | None
) -> None:
    (receipt,) = parse(signed(fields(MessageStatus=word)))
    assert (receipt.status, receipt.detail, receipt.provider_code) == (status, detail, word)


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        ("21211", Detail.INVALID_DESTINATION),
        ("21614", Detail.INVALID_DESTINATION),
        ("21635", Detail.INVALID_DESTINATION),
        ("30006", Detail.INVALID_DESTINATION),
        ("30005", Detail.INVALID_DESTINATION),
        ("21610", Detail.UNSUBSCRIBED),
        ("30004", Detail.BLOCKED),
        ("21612", Detail.CARRIER_REJECTED),
        ("30034", Detail.SENDER_REJECTED),
        ("21606", Detail.SENDER_REJECTED),
        ("21212", Detail.SENDER_REJECTED),
        ("21408", Detail.SENDER_REJECTED),
        ("30007", Detail.CONTENT_REJECTED),
        ("30003", Detail.UNREACHABLE),
        ("30001", Detail.RATE_LIMITED),
        ("20429", Detail.RATE_LIMITED),
        ("20003", Detail.AUTH_ERROR),
        ("30036", Detail.EXPIRED_AT_PROVIDER),
        ("30008", Detail.CARRIER_REJECTED),
        ("39999", Detail.UNCLASSIFIED),
    ],
)
def test_each_error_code_has_one_meaning(code: str, detail: Detail) -> None:
    (receipt,) = parse(signed(fields(MessageStatus="undelivered", ErrorCode=code)))
    assert (receipt.status, receipt.detail, receipt.provider_code) == (S.FAILED, detail, code)


@pytest.mark.parametrize(
    ("public", "signed_with"),
    [
        ("https://notices.example.test", "https://notices.example.test:443"),
        ("https://notices.example.test:443", "https://notices.example.test"),
        ("http://127.0.0.1", "http://127.0.0.1:80"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000", "http://127.0.0.1"),
        ("https://Notices.Example.Test", "https://Notices.Example.Test"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("https://[::1]", "https://[::1]:443"),
    ],
)
@pytest.mark.parametrize("rest", ["/callbacks/twilio/ref7", "/callbacks/twilio/ref7/?a=b&c=%20"])
def test_the_address_may_be_signed_with_or_without_its_port(
    public: str, signed_with: str, rest: str
) -> None:
    callback = signed(fields(), url=public + rest, signed_url=signed_with + rest)
    assert parse(callback)[0].reference == "ref7"


@pytest.mark.parametrize(
    "signed_url",
    [
        URL.replace("https:", "http:"),
        URL + "/",
        URL + "x",
        URL + "?a=b",
        URL.replace("notices", "evil"),
        URL.replace(".test", ".test:8443"),
    ],
)
def test_a_signature_over_another_address_is_refused(signed_url: str) -> None:
    with pytest.raises(CallbackRefused):
        parse(signed(fields(), signed_url=signed_url))


def test_repeated_and_odd_fields_are_under_the_signature() -> None:
    odd = [*fields(), ("Z", "2"), ("Z", "1"), ("Z", "2"), ("Empty", ""), ("Ünï", "ø +&=%")]
    assert parse(signed(odd))[0].status is S.DELIVERED
    with pytest.raises(CallbackRefused):
        parse(Callback(URL, signed(odd).headers, urlencode([*odd, ("Z", "3")]).encode()))


@pytest.mark.parametrize("position", range(0, 160, 13))
def test_one_changed_byte_anywhere_is_refused(position: int) -> None:
    good = signed(fields())
    body = bytearray(good.body)
    body[position] = ord("q") if body[position] != ord("q") else ord("z")
    with pytest.raises(CallbackRefused):
        parse(Callback(good.url, good.headers, bytes(body)))


@pytest.mark.parametrize("signature", ["", "AAAA", "é", "=" * 500, "x" * 28])
def test_a_missing_or_made_up_signature_is_refused(signature: str) -> None:
    good = signed(fields())
    with pytest.raises(CallbackRefused):
        parse(Callback(URL, {**good.headers, "X-Twilio-Signature": signature}, good.body))
    with pytest.raises(CallbackRefused):
        parse(Callback(URL, {"Content-Type": good.headers["Content-Type"]}, good.body))


def test_another_accounts_token_or_another_account_is_refused() -> None:
    with pytest.raises(CallbackRefused):
        parse(signed(fields(), token="another"))
    for account in ("AC" + "ff" * 16, ""):
        with pytest.raises(CallbackRefused):
            parse(signed(fields(AccountSid=account)))


def test_a_form_that_is_none_or_endless_is_refused() -> None:
    headers = signed(fields()).headers
    for body in (b"\xff\xfe", b"", b"a&" * 5000, b"x=1&" * 5000):
        with pytest.raises(CallbackRefused):
            parse(Callback(URL, headers, body))


def test_a_json_body_is_covered_by_its_digest_in_the_address() -> None:
    body = json.dumps(dict(fields(MessageStatus="failed", ErrorCode="30003"))).encode()
    validator = RequestValidator(ways.TOKEN)
    url = f"{URL}?bodySHA256={validator.compute_hash(body.decode())}"
    headers = {
        "x-twilio-signature": validator.compute_signature(url, {}),
        "content-type": "application/json",
    }
    assert validator.validate(url, body.decode(), headers["x-twilio-signature"])
    (receipt,) = parse(Callback(url, headers, body))
    assert (receipt.status, receipt.detail) == (S.FAILED, Detail.UNREACHABLE)
    for changed in (body + b" ", body.replace(b"30003", b"30004"), b""):
        with pytest.raises(CallbackRefused):
            parse(Callback(url, headers, changed))
    bare = {**headers, "x-twilio-signature": validator.compute_signature(URL, {})}
    with pytest.raises(CallbackRefused):
        parse(Callback(URL, bare, body))


def test_a_repeat_has_the_same_identity_and_another_thing_another() -> None:
    things = [
        fields(),
        fields(MessageStatus="sent"),
        fields(MessageSid="SM" + "3d" * 16),
        fields(MessageStatus="failed", ErrorCode="30003"),
        fields(MessageStatus="failed", ErrorCode="30005"),
    ]
    first = [parse(signed(each))[0].identity for each in things]
    assert [parse(signed(each))[0].identity for each in things] == first
    assert len(set(first)) == len(things)


@pytest.mark.parametrize(
    "changes",
    [{"MessageSid": ""}, {"MessageSid": "a b"}, {"MessageSid": "SM\x00"}, {"MessageSid": "é"}],
)
def test_a_genuine_callback_that_names_no_message_is_unreadable(changes: dict[str, str]) -> None:
    with pytest.raises(CallbackUnreadable):
        parse(signed(fields(**changes)))


def test_older_field_names_are_read_too() -> None:
    older = fields(MessageSid="", MessageStatus="", SmsSid=ways.MESSAGE_SID, SmsStatus="sent")
    (receipt,) = parse(signed(older))
    assert (receipt.status, receipt.provider_message_id) == (S.ACCEPTED, ways.MESSAGE_SID)


def test_a_status_that_is_given_twice_is_read_as_neither() -> None:
    (receipt,) = parse(signed([*fields(), ("MessageStatus", "failed")]))
    assert (receipt.status, receipt.provider_code) == (S.UNMAPPED, None)


@pytest.mark.parametrize(
    "path", ["/callbacks/twilio/", "/callbacks/twilio/a b", "/callbacks/twilio/a/b", "/elsewhere/a"]
)
def test_an_address_without_a_reference_gives_none(path: str) -> None:
    url = ways.PUBLIC_URL + path
    assert parse(signed(fields(), url=url, signed_url=url))[0].reference is None


def test_odd_values_are_dropped_and_never_kept() -> None:
    (receipt,) = parse(signed(fields(MessageStatus=f"to {ways.NUMBER}", ErrorCode=ways.NUMBER)))
    assert (receipt.status, receipt.provider_code) == (S.UNMAPPED, None)
