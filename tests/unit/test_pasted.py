"""What people paste into the search box, and what they mean by it."""

from __future__ import annotations

import pytest

from notifier.web.people.pasted import meant


@pytest.mark.parametrize(
    ("pasted", "thing"),
    [
        ("T-1007", "T-1007"),
        ("T-1007.", "T-1007"),
        ("“T-1007”", "T-1007"),
        ("#T-1007", "T-1007"),
        ("Ticket T-1007", "T-1007"),
        ("ticket id: T-1007,", "T-1007"),
        ("reset request req-1", "req-1"),
        ("(acct-jana)", "acct-jana"),
        ("mail:bounce:rr-1", "mail:bounce:rr-1"),
        ("ticket", "ticket"),
        ("id", "id"),
        ("https://notices.example/t/T-1007?live=off", "T-1007"),
        ("http://127.0.0.1:8000/n/01910000-0000-7000-8000-000000000000#act",
         "01910000-0000-7000-8000-000000000000"),
        ("https://notices.example/policy", "https://notices.example/policy"),
        ("<jana.moe@mail.example>", "jana.moe@mail.example"),
        ("Jana Moe <jana.moe@mail.example>", "jana.moe@mail.example"),
        ("mailto:jana.moe@mail.example", "jana.moe@mail.example"),
        ("jana.moe@mail.example,", "jana.moe@mail.example"),
        ("tel:+447700900143", "+447700900143"),
        ("(+44) 7700 900143", "+44 7700 900143"),
        ("+44 (0)7700 900143", "+44 7700 900143"),
        ("07700 900143", "07700 900143"),
        ("<>", "<>"),
        ("", ""),
    ],
)  # fmt: skip
def test_what_surrounds_the_thing_is_taken_off_and_nothing_else(pasted: str, thing: str) -> None:
    assert meant(pasted) == thing


@pytest.mark.parametrize("text", ["<" * 320, "id:" * 100, "a<" * 160, "( " * 160 + "+"])
def test_nothing_that_is_pasted_takes_long(text: str) -> None:
    assert len(meant(text)) <= len(text)
