"""What Twilio says when it is asked: by destination and time, or about one text."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import parse_qs, urlsplit

import pytest

from notifier.domain.reasons import Detail
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel
from notifier.domain.values import Destination
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
from tests.providers.http_sending import asking_twilio
from tests.providers.scripted_api import Answer, ScriptedApi, api, reply
from tests.providers.test_twilio_callbacks import fields, parse, signed

STARTED = datetime(2033, 5, 1, 12, 0, tzinfo=UTC)
QUESTION = Question(
    Channel.SMS,
    ways.REFERENCE,
    STARTED,
    STARTED + timedelta(seconds=30),
    Destination(Channel.SMS, ways.NUMBER),
)
COLLECTION = f"/2010-04-01/Accounts/{ways.SID}/Messages"
SERVICE = "MG" + "2c" * 16
S = ReceiptStatus


def message(number: int = 1, at: datetime = STARTED, /, **members: object) -> dict[str, object]:
    return {
        "sid": f"SM{number:032x}",
        "account_sid": ways.SID,
        "to": ways.NUMBER,
        "from": ways.FROM_NUMBER,
        "messaging_service_sid": None,
        "direction": "outbound-api",
        "status": "sent",
        "error_code": None,
        "body": ways.LINK,
        "date_created": format_datetime(at),
        "date_updated": format_datetime(at + timedelta(seconds=9)),
        "date_sent": None,
        **members,
    }


def page(*messages: dict[str, object], following: object = None) -> bytes:
    return reply(200, {"messages": list(messages), "next_page_uri": following})


def found(peer: ScriptedApi, question: Question = QUESTION, sender: str = "") -> Looked:
    with closing(asking_twilio(peer.url, sender or ways.FROM_NUMBER)) as asking:
        return asking.find(question, 5.0)


def polled(peer: ScriptedApi, sid: str = ways.MESSAGE_SID) -> Looked:
    with closing(asking_twilio(peer.url)) as asking:
        return asking.poll(sid, 5.0)


def sids(looked: Looked) -> list[str | None]:
    assert isinstance(looked, Found)
    return [each.provider_message_id for each in looked.receipts]


def queries(peer: ScriptedApi) -> list[dict[str, list[str]]]:
    assert all(line.startswith(f"GET {COLLECTION}.json?") for line in peer.lines)
    return [parse_qs(urlsplit(line.split(" ")[1]).query) for line in peer.lines]


def test_it_says_that_it_is_found_by_destination_and_can_be_polled() -> None:
    asking: OutcomeLookup = asking_twilio()
    assert (asking.can_find, asking.can_poll) == (Capability.BY_DESTINATION, True)


def test_p4_texts_are_searched_by_number_and_sender_with_gets_alone() -> None:
    with api(page(message(1, status="delivered"), message(2, status="failed"))) as peer:
        looked = found(peer)
    assert queries(peer) == [{"To": [ways.NUMBER], "From": [ways.FROM_NUMBER], "PageSize": ["100"]}]
    assert isinstance(looked, Found)
    first, second = looked.receipts
    assert (first.status, first.occurred_at) == (S.DELIVERED, STARTED)
    assert (second.status, second.detail) == (S.FAILED, Detail.UNCLASSIFIED)
    assert {each.reference for each in looked.receipts} == {None}
    assert sids(looked) == [f"SM{1:032x}", f"SM{2:032x}"]


def test_a_text_that_is_still_queued_and_has_no_sending_time_is_found() -> None:
    with api(page(message(status="queued", date_sent=None))) as peer:
        assert len(sids(found(peer))) == 1


@pytest.mark.parametrize(
    "members",
    [
        {"to": "+447700900144"},
        {"to": None},
        {"from": "+15005550001"},
        {"direction": "inbound"},
        {"account_sid": "AC" + "ff" * 16},
        {"sid": "not a sid"},
        {"sid": None},
    ],
)
def test_p3_what_cannot_be_ours_is_left_out_whatever_the_filter_did(
    members: dict[str, object],
) -> None:
    with api(page(message(1), message(2, **members))) as peer:
        assert sids(found(peer)) == [f"SM{1:032x}"]
    with api(page(message(2, **members))) as peer:
        assert found(peer) == NotFound()


def test_texts_of_a_messaging_service_are_known_by_the_service() -> None:
    ours = message(1, messaging_service_sid=SERVICE, **{"from": "+15005550099"})
    with api(page(ours, message(2))) as peer:
        assert sids(found(peer, sender=SERVICE)) == [f"SM{1:032x}"]
    assert queries(peer) == [{"To": [ways.NUMBER], "PageSize": ["100"]}]


def test_pages_are_followed_on_our_own_path_until_the_list_ends() -> None:
    following = f"https://elsewhere.example/x?To={ways.NUMBER[1:]}&Page=1&PageToken=PA1"

    def choose(line: str) -> Answer:
        return page(message(2)) if "PageToken" in line else page(message(1), following=following)

    with api(choose) as peer:
        assert sids(found(peer)) == [f"SM{1:032x}", f"SM{2:032x}"]
    assert queries(peer)[1]["PageToken"] == ["PA1"]


def test_the_list_is_not_followed_into_the_past() -> None:
    old = message(9, STARTED - timedelta(days=2))
    with api(page(message(1), old, following="/x?Page=1")) as peer:
        assert len(sids(found(peer))) == 2
    assert len(peer.lines) == 1


@pytest.mark.parametrize(
    ("answer", "looked"),
    [
        (page(), NotFound()),
        (page(message(), following="/x?Page=1"), CannotTell("too_many")),
        (page(message(), following=7), CannotTell("bad_page")),
        (page(message(), following="/x"), CannotTell("bad_page")),
        (page(message(), following="/x?a=\r\nb"), CannotTell("bad_page")),
        (reply(200, {"message": "?"}), CannotTell("status_200")),
        (reply(401, {"code": 20003}), CannotTell("status_401")),
        (reply(404, {"messages": []}), CannotTell("status_404")),
        (reply(503, b"<html>"), CannotTell("status_503")),
    ],
)
def test_p3_only_a_list_seen_to_its_end_is_not_found(answer: bytes, looked: Looked) -> None:
    with api(answer) as peer:
        assert found(peer) == looked
    assert len(peer.lines) <= 3


def test_without_a_destination_nothing_is_asked() -> None:
    question = Question(Channel.SMS, ways.REFERENCE, STARTED, STARTED)
    with api(page()) as peer:
        assert found(peer, question) == CannotTell("no_destination")
    assert peer.connections == 0


def test_p4_a_poll_is_one_get_and_tells_the_same_thing_as_the_callback() -> None:
    told = message(sid=ways.MESSAGE_SID, status="undelivered", error_code=30003)
    with api(reply(200, told)) as peer:
        looked = polled(peer)
    assert peer.lines == [f"GET {COLLECTION}/{ways.MESSAGE_SID}.json HTTP/1.1"]
    assert isinstance(looked, Found)
    (receipt,) = looked.receipts
    assert (receipt.status, receipt.detail) == (S.FAILED, Detail.UNREACHABLE)
    assert (receipt.provider_code, receipt.account) == ("30003", ways.SID)
    assert receipt.occurred_at == STARTED + timedelta(seconds=9)
    called_back = parse(signed(fields(MessageStatus="undelivered", ErrorCode="30003")))
    assert receipt.identity == called_back[0].identity


@pytest.mark.parametrize(
    ("answer", "looked"),
    [
        (reply(404, {"code": 20404, "status": 404}), NotFound()),
        (reply(404, {"code": 1}), CannotTell("status_404")),
        (reply(404, b"<html>"), CannotTell("status_404")),
        (reply(401, {"code": 20003}), CannotTell("status_401")),
        (reply(200, message(7)), CannotTell("not_theirs")),
        (
            reply(200, message(sid=ways.MESSAGE_SID, account_sid="AC1")),
            CannotTell("not_theirs"),
        ),
        (reply(200, {}), CannotTell("not_theirs")),
        (reply(200, b"<html>"), CannotTell("not_json")),
    ],
)
def test_p3_a_poll_that_tells_nothing_says_so(answer: bytes, looked: Looked) -> None:
    with api(answer) as peer:
        assert polled(peer) == looked


def test_an_id_that_is_none_is_not_asked_about() -> None:
    with api() as peer:
        assert polled(peer, "../../x") == CannotTell("bad_id")
    assert peer.connections == 0


def test_the_probe_reads_the_account_and_says_shortly_how_it_went() -> None:
    with api(reply(401, {"code": 20003})) as peer, closing(asking_twilio(peer.url)) as asking:
        probed = asking.probe(5.0)
    assert (probed.ok, probed.what) == (False, "auth_error")
    assert peer.lines == [f"GET /2010-04-01/Accounts/{ways.SID}.json HTTP/1.1"]
