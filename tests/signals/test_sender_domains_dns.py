"""Look-ups against a real server on loopback: presence, absence and failure are three things."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from notifier.ports.dns import Answer, Found
from notifier.signals.dns import MOST_QUESTIONS, Resolver
from tests.dns_server import Zone, running
from tests.ports import port_to_bind


@pytest.fixture
def port(zone: Zone) -> Iterator[int]:
    with running(zone) as port:
        yield port


def resolver(*ports: int, look_up_s: float = 30.0, check_s: float = 60.0) -> Resolver:
    """Patient where an answer comes, so that a busy machine changes nothing."""
    return Resolver([("127.0.0.1", each) for each in ports], look_up_s, check_s)


def ask(port: int, name: str, kind: str = "TXT") -> Answer:
    return resolver(port).ask(name, kind)


def test_a_record_comes_with_its_text_its_life_and_who_said_so(zone: Zone, port: int) -> None:
    zone.txt("mail.example", "v=spf1 -all", ttl=77)
    assert ask(port, "Mail.Example.") == Answer(
        Found.PRESENT, ("v=spf1 -all",), 77, f"127.0.0.1:{port}"
    )


def test_a_name_that_is_not_and_a_name_without_the_record_are_both_absence(
    zone: Zone, port: int
) -> None:
    zone.a("host.example")
    assert ask(port, "nothing.example").found is Found.ABSENT
    assert ask(port, "host.example").found is Found.ABSENT
    assert ask(port, "host.example", "A").texts == ("192.0.2.1",)


@pytest.mark.parametrize("code", ["SERVFAIL", "REFUSED", "FORMERR", "NOTIMP"])
def test_an_answer_that_is_none_is_a_failure_and_says_which(
    zone: Zone, port: int, code: str
) -> None:
    zone.codes["sick.example"] = code
    answer = ask(port, "sick.example")
    assert (answer.found, answer.trouble, answer.texts) == (Found.FAILED, code, ())
    assert zone.asked["udp", "sick.example", "TXT"] == 2


def test_silence_is_a_failure_and_takes_no_longer_than_its_limit(zone: Zone, port: int) -> None:
    zone.silent.add("mute.example")
    answer = resolver(port, look_up_s=0.05).ask("mute.example", "TXT")
    assert (answer.found, answer.trouble) == (Found.FAILED, "no answer in time")
    assert answer.resolver == f"127.0.0.1:{port}"


def test_a_closed_port_is_a_failure(zone: Zone) -> None:
    answer = resolver(port_to_bind(), look_up_s=0.2).ask("mail.example", "TXT")
    assert answer.found is Found.FAILED


def test_a_second_resolver_is_asked_where_the_first_fails(zone: Zone, port: int) -> None:
    zone.txt("mail.example", "there")
    with running(Zone(codes={"mail.example": "SERVFAIL"})) as sick:
        answer = resolver(sick, port).ask("mail.example", "TXT")
    assert (answer.texts, answer.resolver) == (("there",), f"127.0.0.1:{port}")


def test_what_does_not_fit_a_datagram_comes_over_tcp_whole(zone: Zone, port: int) -> None:
    long = "v=spf1 " + "ip4:192.0.2.1 " * 400 + "-all"
    zone.txt("long.example", long)
    assert ask(port, "long.example").texts == (long,)
    assert zone.asked["tcp", "long.example", "TXT"] == 1


def test_a_record_that_is_cut_and_not_to_be_had_over_tcp_is_a_failure(zone: Zone) -> None:
    zone.txt("long.example", "x" * 5000)
    with running(zone, over_tcp=False) as port:
        assert ask(port, "long.example").found is Found.FAILED


def test_strings_of_one_record_are_joined_and_records_are_not(zone: Zone, port: int) -> None:
    zone.txt("mail.example", [b"v=spf1 ip4:192.0", b".2.1 -all"], "another")
    assert sorted(ask(port, "mail.example").texts) == ["another", "v=spf1 ip4:192.0.2.1 -all"]


def test_an_alias_is_followed_to_the_record_behind_it(zone: Zone, port: int) -> None:
    zone.cname("s1._domainkey.mail.example", "key.provider.example")
    zone.txt("key.provider.example", "k=rsa; p=")
    assert ask(port, "s1._domainkey.mail.example").texts == ("k=rsa; p=",)


def test_an_alias_that_leads_nowhere_is_absence(zone: Zone, port: int) -> None:
    zone.cname("s1.mail.example", "gone.example")
    assert ask(port, "s1.mail.example").found is Found.ABSENT


def test_the_same_question_is_asked_once_in_a_check_and_again_in_the_next(
    zone: Zone, port: int
) -> None:
    zone.txt("mail.example", "old")
    once = resolver(port)
    once.ask("mail.example", "TXT")
    zone.txt("mail.example", "new")
    assert once.ask("mail.example", "TXT").texts == ("old",)
    assert ask(port, "mail.example").texts == ("new",)
    assert zone.asked["udp", "mail.example", "TXT"] == 2


def test_a_check_asks_no_more_than_its_share_and_the_rest_has_failed(zone: Zone, port: int) -> None:
    check = resolver(port)
    answers = [check.ask(f"n{number}.example", "A") for number in range(MOST_QUESTIONS + 5)]
    assert [each.found for each in answers[-6:]] == [Found.ABSENT] + 5 * [Found.FAILED]
    assert sum(zone.asked.values()) == MOST_QUESTIONS


def test_what_is_asked_when_the_time_of_the_check_is_over_has_failed_unasked(
    zone: Zone, port: int
) -> None:
    check = resolver(port, check_s=0.0)
    assert check.ask("mail.example", "TXT").trouble == "no time was left"
    assert not zone.asked


def test_a_name_that_dns_cannot_carry_is_a_failure_and_no_crash(zone: Zone, port: int) -> None:
    for name in ("x" * 64 + ".example", "a..b", "a." * 300):
        assert ask(port, name).found is Found.FAILED
