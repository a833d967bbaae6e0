"""What Postmark says when it is asked, and what is made of it."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from notifier.domain.reasons import Detail
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.ports.asking import (
    CannotTell,
    Capability,
    Found,
    Looked,
    NotFound,
    OutcomeLookup,
    Question,
)
from tests.providers import http_sending as ways
from tests.providers.http_sending import asking_postmark
from tests.providers.scripted_api import Answer, Choose, ScriptedApi, api, reply
from tests.providers.test_postmark_receipts import AT_TEXT, METADATA, bounce, parse

STARTED = datetime(2033, 5, 1, 12, 0, tzinfo=UTC)
QUESTION = Question(Channel.EMAIL, ways.REFERENCE, STARTED, STARTED + timedelta(seconds=30))
S = ReceiptStatus


def listed(**members: object) -> dict[str, object]:
    return {
        "MessageID": ways.MESSAGE_ID,
        "To": [{"Email": ways.ADDRESS}],
        "Status": "Sent",
        "ReceivedAt": AT_TEXT,
        "Metadata": METADATA,
        **members,
    }


def event(kind: str, **details: object) -> dict[str, object]:
    return {"Recipient": ways.ADDRESS, "Type": kind, "ReceivedAt": AT_TEXT, "Details": details}


def answers(**by_path: Answer) -> Choose:
    """Answers by the kind of question: `search`, `details`, `bounce`."""

    def choose(line: str) -> Answer:
        path = urlsplit(line.split(" ")[1]).path
        kind = "bounce" if "bounces" in path else "details" if "details" in path else "search"
        return by_path.get(kind, reply(500, b""))

    return choose


def found(peer: ScriptedApi) -> Looked:
    with closing(asking_postmark(peer.url)) as asking:
        return asking.find(QUESTION, 5.0)


def polled(peer: ScriptedApi) -> Looked:
    with closing(asking_postmark(peer.url)) as asking:
        return asking.poll(ways.MESSAGE_ID, 5.0)


def statuses(looked: Looked) -> list[tuple[ReceiptStatus, Detail | None]]:
    assert isinstance(looked, Found)
    assert {each.provider_message_id for each in looked.receipts} == {ways.MESSAGE_ID}
    assert {each.reference for each in looked.receipts} == {ways.REFERENCE}
    return [(each.status, each.detail) for each in looked.receipts]


def test_it_says_that_it_is_found_by_reference_and_can_be_polled() -> None:
    asking: OutcomeLookup = asking_postmark()
    assert (asking.can_find, asking.can_poll) == (Capability.BY_REFERENCE, True)


def test_p4_a_message_is_searched_by_the_reference_in_its_metadata_with_gets_alone() -> None:
    search = reply(200, {"TotalCount": 1, "Messages": [listed()]})
    details = reply(200, listed(MessageEvents=[event("Delivered")]))
    with api(answers(search=search, details=details)) as peer:
        assert statuses(found(peer)) == [(S.ACCEPTED, None), (S.DELIVERED, None)]
    assert all(line.startswith("GET ") for line in peer.lines)
    assert parse_qs(urlsplit(peer.lines[0].split(" ")[1]).query) == {
        "count": ["50"],
        "offset": ["0"],
        "metadata_notice_ref": [ways.REFERENCE],
    }
    assert peer.requests[0].headers["x-postmark-server-token"] == ways.TOKEN


def test_what_the_list_says_stands_where_the_details_cannot_be_read() -> None:
    with api(answers(search=reply(200, {"Messages": [listed()]}))) as peer:
        assert statuses(found(peer)) == [(S.ACCEPTED, None)]


@pytest.mark.parametrize(
    ("answer", "looked"),
    [
        (reply(200, {"TotalCount": 0, "Messages": []}), NotFound()),
        (reply(200, {"Messages": [listed(Metadata={})]}), CannotTell("filter_ignored")),
        (reply(200, {"Messages": [listed(MessageID=None)]}), CannotTell("unreadable")),
        (reply(200, {"TotalCount": 0}), CannotTell("status_200")),
        (reply(401, {"ErrorCode": 10}), CannotTell("status_401")),
        (reply(404, {"Messages": []}), CannotTell("status_404")),
        (reply(429, b"<html>"), CannotTell("status_429")),
    ],
)
def test_p3_only_postmarks_own_empty_list_is_not_found(answer: bytes, looked: Looked) -> None:
    with api(answers(search=answer)) as peer:
        assert found(peer) == looked


@pytest.mark.parametrize(
    ("word", "status", "detail"),
    [
        ("Queued", S.ACCEPTED, None),
        ("Sent", S.ACCEPTED, None),
        ("Processed", S.ACCEPTED, None),
        ("Scheduled", S.ACCEPTED, None),
        ("Blocked", S.FAILED, Detail.BLOCKED),
        ("Failed", S.FAILED, Detail.UNCLASSIFIED),
        ("Brewing", S.UNMAPPED, Detail.UNCLASSIFIED),
    ],
)
def test_each_status_has_one_meaning(
    word: str, status: ReceiptStatus, detail: Detail | None
) -> None:
    with api(answers(details=reply(200, listed(Status=word)))) as peer:
        assert statuses(polled(peer)) == [(status, detail)]


def test_each_event_has_one_meaning() -> None:
    kinds = ["Transient", "Delivered", "SpamComplaint", "Opened", "SubscriptionChanged", "Odd"]
    details = reply(200, listed(MessageEvents=[*map(event, kinds), "no event"]))
    with api(answers(details=details)) as peer:
        assert statuses(polled(peer))[1:] == [
            (S.DELAYED, Detail.UNREACHABLE),
            (S.DELIVERED, None),
            (S.INFORMATION, Detail.UNSUBSCRIBED),
            (S.INFORMATION, None),
            (S.INFORMATION, Detail.UNSUBSCRIBED),
            (S.UNMAPPED, Detail.UNCLASSIFIED),
        ]


def test_a_bounce_found_by_polling_is_read_for_its_kind_and_is_the_one_called_back() -> None:
    details = reply(200, listed(MessageEvents=[event("Bounced", BounceID="692560173")]))
    told = bounce("Blocked")
    del told["Metadata"]
    with api(answers(details=details, bounce=reply(200, told))) as peer:
        looked = polled(peer)
    assert statuses(looked)[1:] == [(S.FAILED, Detail.BLOCKED)]
    assert isinstance(looked, Found)
    assert looked.receipts[1].identity == parse(bounce("Blocked"))[0].identity
    assert peer.lines[1] == "GET /bounces/692560173 HTTP/1.1"


@pytest.mark.parametrize(
    ("answer", "rest"),
    [
        (reply(503, b""), []),
        (reply(429, {}), []),
        (reply(404, {"ErrorCode": 407}), [(S.FAILED, Detail.UNCLASSIFIED)]),
        (reply(200, {**bounce("Blocked"), "MessageID": "x"}), [(S.FAILED, Detail.UNCLASSIFIED)]),
    ],
)
def test_a_bounce_that_cannot_be_read_now_is_left_for_the_next_poll(
    answer: bytes, rest: list[tuple[ReceiptStatus, Detail | None]]
) -> None:
    details = reply(200, listed(MessageEvents=[event("Bounced", BounceID=7)]))
    with api(answers(details=details, bounce=answer)) as peer:
        assert statuses(polled(peer))[1:] == rest


@pytest.mark.parametrize(
    ("answer", "looked"),
    [
        (reply(422, {"ErrorCode": 701, "Message": "none"}), NotFound()),
        (reply(404, {"ErrorCode": 1}), CannotTell("status_404")),
        (reply(200, listed(MessageID="other")), CannotTell("not_theirs")),
        (reply(200, b"<html>"), CannotTell("not_json")),
    ],
)
def test_p3_a_poll_that_tells_nothing_says_so(answer: bytes, looked: Looked) -> None:
    with api(answers(details=answer)) as peer:
        assert polled(peer) == looked


def test_an_id_that_is_none_is_not_asked_about() -> None:
    with api() as peer:
        assert asking_postmark(peer.url).poll("../server", 1.0) == CannotTell("bad_id")
    assert peer.connections == 0


@pytest.mark.parametrize(
    ("answer", "ok", "what"),
    [
        (reply(200, {"Name": "x"}), True, "answered 200"),
        (reply(401, {"ErrorCode": 10}), False, "auth_error"),
        (reply(502, b"<html>"), False, "status_502"),
    ],
)
def test_the_probe_reads_and_says_shortly_how_it_went(answer: bytes, ok: bool, what: str) -> None:
    with api(answer) as peer, closing(asking_postmark(peer.url)) as asking:
        probed = asking.probe(5.0)
    assert (probed.ok, probed.what) == (ok, what)
    assert peer.lines == ["GET /server HTTP/1.1"]
