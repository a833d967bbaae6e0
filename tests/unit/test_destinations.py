"""Which addresses and numbers may be written to, and the form each is kept in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifier.domain.destinations import check_destination, check_email, check_number
from notifier.domain.states import Channel


def email(text: str) -> str | None:
    found = check_email(text)
    return found.reveal() if found else None


def number(text: str) -> str | None:
    found = check_number(text)
    return found.reveal() if found else None


# --- numbers


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("+447700900123", "+447700900123"),
        ("+12025550143", "+12025550143"),
        ("+1 (202) 555-0143", "+12025550143"),
        ("00447700900123", "+447700900123"),
        ("+44 (0)7700 900123", "+447700900123"),
        ("+4407700900123", "+447700900123"),
        ("+33 6.12.34.56.78", "+33612345678"),
    ],
)
def test_one_number_has_one_form(written: str, kept: str) -> None:
    assert number(written) == kept


@pytest.mark.parametrize(
    "written", ["011 44 7700 900123", "0 7700 900123", "03432640000", "07700900123"]
)
def test_a_number_without_its_country_is_refused(written: str) -> None:
    assert number(written) is None


def test_the_italian_zero_belongs_to_the_number() -> None:
    assert number("+390600000000") == "+390600000000"
    assert number("+39 (0)6 0000 0000") == "+390600000000"
    assert number("+39335000000") == "+39335000000"


@pytest.mark.parametrize(
    "written",
    [
        "+1 202 555 CALL",
        "a20255501 43a",
        "+12025550143 ext.",
        "+12025550143 ext. 5",
        "+12025550143x5",
    ],
)
def test_letters_are_never_turned_into_digits(written: str) -> None:
    assert number(written) is None


@pytest.mark.parametrize("written", ["112", "911", "88888", "+112", "+44", "+88888", "00000", ""])
def test_emergency_and_short_numbers_are_refused(written: str) -> None:
    assert number(written) is None


@pytest.mark.parametrize("written", ["+449012345678", "+19002345678", "+18005551234"])
def test_premium_and_toll_free_numbers_are_refused(written: str) -> None:
    assert number(written) is None


def test_a_landline_is_accepted() -> None:
    assert number("+442071838750") == "+442071838750"


def test_a_number_too_long_for_its_country_is_refused() -> None:
    assert number("+4477009001234") is None
    assert number("+447700900123" + "0" * 30) is None


@pytest.mark.parametrize(
    "written",
    ["+447700900123\n", " +447700900123", "+447700900123 ", "+44\t7700900123", "+٤٤7700900123"],
)
def test_a_number_with_stray_characters_is_refused(written: str) -> None:
    assert number(written) is None


def test_only_the_range_for_drama_is_excused_from_being_assigned() -> None:
    assert number("+447700900999") == "+447700900999"
    assert number("+447700901000") is None


@given(st.text(max_size=40))
def test_any_text_is_a_number_in_its_form_or_nothing(text: str) -> None:
    kept = number(text)
    assert kept is None or (kept[0] == "+" and kept[1:].isascii() and kept[1:].isdigit())


@given(st.from_regex(r"(\+|00)(44|1|39|33|49)[0-9 ()-]{6,14}", fullmatch=True))
def test_a_kept_number_is_kept_as_it_is(text: str) -> None:
    kept = number(text)
    assert kept is None or number(kept) == kept


# --- addresses


@pytest.mark.parametrize(
    "written",
    [
        "user@example.test\n",
        "user@example.test\r\n",
        " user@example.test",
        "user@example.test ",
        "us\ter@example.test",
        "us er@example.test",
        '"us\r\ner"@example.test',
        "us\x00er@example.test",
        "us\u200ber@example.test",
        "user@exa\u00admple.test",
        "user@example.test\u2028",
        "us\ud800er@example.test",
    ],
)
def test_an_address_with_space_or_control_characters_is_refused(written: str) -> None:
    assert email(written) is None


def test_a_foreign_domain_goes_out_in_ascii() -> None:
    assert email("user@bücher.example") == "user@xn--bcher-kva.example"
    assert email("user@раypal.example") == "user@xn--ypal-43d9g.example"  # noqa: RUF001


def test_a_local_part_that_is_not_ascii_is_refused() -> None:
    assert email("jörg@example.test") is None


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("a+reset@example.test", "a+reset@example.test"),
        ("a@example.test", "a@example.test"),
        ('"john doe"@example.test', '"john doe"@example.test'),
        ('"abc"@example.test', '"abc"@example.test'),
        ("A@Example.TEST", "A@example.test"),
    ],
)
def test_the_local_part_is_kept_as_given(written: str, kept: str) -> None:
    assert email(written) == kept


@pytest.mark.parametrize("domain", ["example.test", "mail.example", "example.com", "a.b.test"])
def test_domains_for_rehearsals_are_accepted(domain: str) -> None:
    assert email(f"user@{domain}") == f"user@{domain}"


@pytest.mark.parametrize(
    "written",
    [
        "",
        "@",
        "user",
        "user@",
        "@example.test",
        "user@localhost",
        "user@printer.local",
        "user@nowhere.invalid",
        "user@[192.0.2.1]",
        "user@192.0.2.1",
        "User <user@example.test>",
        "a@b@example.test",
        "a,b@example.test",
        ".user@example.test",
        "us..er@example.test",
        "user@-example.test",
        "x" * 65 + "@example.test",
        "user@" + "x" * 64 + ".test",
        "user@" + "x." * 130 + "test",
    ],
)
def test_what_is_no_address_is_refused(written: str) -> None:
    assert email(written) is None


@given(st.text(max_size=60) | st.emails())
def test_a_kept_address_is_ascii_on_one_line_and_kept_as_it_is(text: str) -> None:
    kept = email(text)
    assert kept is None or (kept.isascii() and kept.isprintable() and email(kept) == kept)


def test_the_channel_chooses_the_check() -> None:
    assert check_destination(Channel.EMAIL, "+447700900123") is None
    assert check_destination(Channel.SMS, "user@example.test") is None


def test_p7_a_destination_shows_only_its_mask() -> None:
    shown = repr(check_email("user@example.test")) + repr(check_number("+447700900123"))
    assert "user@" not in shown
    assert "447700900" not in shown
