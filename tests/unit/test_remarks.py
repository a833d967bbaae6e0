"""What people may write beside an act, and what is refused because it could be somebody's."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from notifier.domain.remarks import (
    LONGEST,
    LONGEST_REASON,
    RemarkUnfit,
    check_reason,
    check_remark,
)

FINE = [
    "HD-12: mailed on 2026-11-30 at 14:05, id b7bc2f4a-e38e-4336-af7d-e6c392c2f817",
    "log of 2026-11-30 shows it, id SM123456789abc",
    "x",
    "slow carrier",
    "a drill",
    "relay incident 4711",
    "Queue age was 320 s at 14:05:30 UTC, 12 % over the limit",
    "from 2026-11-30T14:05:33.123456Z until 2026-11-30T15:00+01:00",
    "30.11.2026 14:05-15:20, 1/12/2026 and 20261130",
    "12:00:00 14:00:00 16:00:00",
    "INC0012345, CHG0030192, JIRA ABC-123456 and #1234567",
    "evt-1, evt-20261130-0001, evt_01J9ZQ4X8T2M and event:order.4711:2",
    "01977e3c5f7a7c3eb0a1d2e3f4a5b6c7 is the notice",
    "password-reset@1 has the wrong text",
    "lease_s 30 to 40, retention/detail_days 90, alert/queue_age_s 300",
    "limits 120, 300, 600, 900 and 1200",
    "margins 120/300/900 s",
    "shares 0.05, 0.10, 0.25 and 0.025",
    "p95 1200 ms > 900 ms, <1 % lost, 10 000 notices, 1,000,000 rows",
    "Twilio 30007 and SMTP 550 5.1.1: e.g. no mailbox, i.e. nobody there",
    "see operate.md, policy.toml and version 1.2.3",
    "sent.Then lost again, etc.",
    "a.m. or p.m.; and/or; either...or; what?! yes",
    "Täuschung gemeldet — Anbieter prüft “Spam”",
    "Das Gerät fällt aus: 3 von 5 Leitungen",
    "हिन्दी में लिखा",
    "(again) the text is wrong",
    "#4711 the text is wrong",
    "x" * LONGEST,
]

NOBODYS = {
    "a link or the address of a host": [
        "see https://auth.example/reset?token=x",
        "app.example.com/reset?token=SECRET",
        "reset at app.example.com",
        "example.com",
        "EXAMPLE.COM.",
        "(www.anything)",
        "portal.intern/reset",
        "auth.firma?token=abc",
        "relay.lan:8025 has it",
        "javascript://x",
        "tel:112 and mailto:jane",
        "ｅｘａｍｐｌｅ．com",  # noqa: RUF001
        "from 10.0.0.12",
        "jane.doe at example dot example.com",
    ],
    "an address": [
        "jane.doe@example.com",
        "Call jane.doe@example.com or +44 7700 900123, https://app.example/reset?token=abc",
        "jane@2cool.example",
        "jane @ home",
        "jane@12345",
    ],
    "a phone number, or as many digits as one": [
        "call +44 7700 900123",
        "07700900123 says so",
        "07700/900/123",
        "0044;7700;900123",
        "0044, 7700, 900123",
        "x07700900123",
        "tel07700900",
        "Tel.07700900 is hers",
        "07700900123x",
        "a447700900123b",
        "2026-11-30 447700900123",
        "447700/900/123",
        "0151'2345'678",
        "(0)151 / 23 45 67 8",
        "555-123-4567",
        "555 1234567",
        "at +1:555:123:4567",
        "5 of 0044;7700;900123",
        "12, 07700-900123",
        "HD-4711/07700/900123",
        "０７７００９００１２３",  # noqa: RUF001
        "٠٧٧٠٠٩٠٠١٢٣",
        "⁰⁷⁷⁰⁰⁹⁰⁰¹²³",
        "HD-123456789",
        "1234567",
    ],
    "a mark that cannot be kept": [
        "<b>bold</b>",
        "line\nbreak",
        "tab\tbed",
        "=cmd|calc",
        "-1+1",
        "+1 agree",
        "\u202egnp",
        "a\x00b",
        "zero\u200bwidth",
    ],
}  # fmt: skip


@pytest.mark.parametrize("text", FINE)
def test_words_days_hours_and_ids_can_be_written(text: str) -> None:
    assert check_remark(f" {text} ") == text
    assert check_reason(text) == text


@pytest.mark.parametrize(
    ("why", "text"), [(why, text) for why, texts in NOBODYS.items() for text in texts]
)
def test_p7_links_addresses_and_numbers_are_refused_by_name_and_not_repeated(
    why: str, text: str
) -> None:
    for padded in (text, f"seen: {text}"):
        if why.startswith("a mark") and padded != text and padded.isprintable():
            continue
        with pytest.raises(RemarkUnfit) as refused:
            check_remark(padded, "note")
        said = str(refused.value)
        assert said.startswith("the note ")
        assert why in said
        assert text not in said


def test_what_says_nothing_or_too_much_is_refused_by_name() -> None:
    for text, said in (("", "is missing"), ("  ", "is missing"), ("x" * 201, "is too long")):
        with pytest.raises(RemarkUnfit, match=f"the review {said}; write 1 to 200 letters"):
            check_remark(text, "review")
    assert check_reason("x" * LONGEST_REASON)
    with pytest.raises(RemarkUnfit, match="the reason is too long; write 1 to 500 letters"):
        check_reason("x" * (LONGEST_REASON + 1))


@pytest.mark.parametrize("unit", ["a.", "1 ", "1a", "0.", "-1", "aa-1:", "1:1", "@1", "#1", "a1_"])
def test_the_worst_text_is_judged_at_once(unit: str) -> None:
    for length in (LONGEST_REASON, 2_000_000):
        text = (unit * length)[:length]
        began = time.process_time()
        with suppress(RemarkUnfit):
            check_reason(text)
        assert time.process_time() - began < 0.25
