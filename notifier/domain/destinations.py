"""Which addresses and numbers a message may go to, and the one form each is kept in.

Email (RFC 5321, as `email-validator` reads it, without DNS): the part before the @ is kept
exactly as given, must be ASCII, and may be quoted; the domain goes out in its ASCII form, in
small letters. Spaces outside quotes, control and invisible characters refuse the address.
Domains that can never receive mail (`localhost`, `.local`, `.invalid`, ...) are refused;
`.test` and `.example` are not, because rehearsals live there.

Numbers (E.164, as `phonenumbers` reads them): the country code must be there, after `+` or
after the international prefix `00`, which is the same thing written out. Spaces, dots,
hyphens and brackets are dropped, a bracketed trunk zero with them, except where the zero
belongs to the number (Italy). Letters and extensions are refused, never turned into digits;
`011` and national forms are refused, because they mean something only in one country. The
number must be valid for its country, or lie in Ofcom's range for drama (+44 7700 900000 to
900999), which no real person has. Landlines are accepted, since networks do read texts out
and ranges do not prove a kind of line; premium, shared-cost, toll-free, pager, voicemail and
company-wide numbers are refused: they cost money or reach no one person.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

import phonenumbers
from email_validator import EmailNotValidError, validate_email
from phonenumbers import PhoneNumberFormat, PhoneNumberType

from notifier.domain.states import Channel
from notifier.domain.values import Destination

_LONGEST_ADDRESS: Final = 254
_LONGEST_NUMBER: Final = 32
_NUMBER: Final = re.compile(r"\+[1-9](?:[ .()-]*[0-9])*", re.ASCII)
_DRAMA: Final = re.compile(r"\+447700900[0-9]{3}", re.ASCII)
_REFUSED_KINDS: Final = frozenset(
    {
        PhoneNumberType.PREMIUM_RATE,
        PhoneNumberType.SHARED_COST,
        PhoneNumberType.TOLL_FREE,
        PhoneNumberType.PAGER,
        PhoneNumberType.VOICEMAIL,
        PhoneNumberType.UAN,
    }
)


def check_email(text: str) -> Destination | None:
    """The address as it goes out, or None where no mail can go to it."""
    if len(text) > _LONGEST_ADDRESS or any(_is_invisible(each) for each in text):
        return None
    try:
        found = validate_email(
            text,
            check_deliverability=False,
            allow_smtputf8=False,
            allow_quoted_local=True,
            test_environment=True,
            strict=True,
        )
    except EmailNotValidError:
        return None
    local, at, _ = text.rpartition("@")
    if not at or found.ascii_domain is None:
        return None
    return Destination(Channel.EMAIL, f"{local}@{found.ascii_domain.lower()}")


def check_number(text: str) -> Destination | None:
    """The number in E.164 form, or None where no text can go to it."""
    written = "+" + text[2:] if text.startswith("00") else text
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(written):
        return None
    try:
        number = phonenumbers.parse(written, None)
    except phonenumbers.NumberParseException:
        return None
    form = phonenumbers.format_number(number, PhoneNumberFormat.E164)
    return Destination(Channel.SMS, form) if _may_be_texted(number, form) else None


def check_destination(channel: Channel, text: str) -> Destination | None:
    """`check_email` or `check_number`, by channel."""
    return check_email(text) if channel is Channel.EMAIL else check_number(text)


def _may_be_texted(number: phonenumbers.PhoneNumber, form: str) -> bool:
    if _DRAMA.fullmatch(form):
        return True
    if not phonenumbers.is_valid_number(number):
        return False
    return phonenumbers.number_type(number) not in _REFUSED_KINDS


def _is_invisible(character: str) -> bool:
    """Control, format and unassigned characters, and every space but the plain one.

    The plain space is left to the address grammar: inside quotes it is part of the name.
    """
    kind = unicodedata.category(character)
    return kind[0] == "C" or (kind[0] == "Z" and character != " ")
