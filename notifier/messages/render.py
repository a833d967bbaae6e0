"""From a template revision and a live link to a message for one channel.

Rendering is deterministic: the same inputs give the same bytes on every host and in every
year, so no library decides how a date looks. The keyed digest lets a repeat prove that it
says the same thing without the text being kept.
"""

from __future__ import annotations

import hashlib
import hmac
import unicodedata
from datetime import UTC, datetime
from typing import Final

from notifier.domain.states import Channel
from notifier.domain.values import RenderedMessage, ResetLink, Secret
from notifier.messages.revisions import Template, find, pick_locale

MAX_NAME: Final = 40
MAX_NAME_DIGITS: Final = 2
"""In any script: fewer than any number that can be called or texted."""
MAX_SMS: Final = 1600
"""Characters; ten segments, the most that networks join."""

_NAME_MARKS: Final = frozenset(" -'.\N{RIGHT SINGLE QUOTATION MARK}\N{MIDDLE DOT}")


class RenderFailed(Exception):
    """The message cannot be made. `what` is a short code; nothing of the content is in it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def render(  # noqa: PLR0913, PLR0917 - each of these is an input that the text depends on
    template_id: str,
    revision: str,
    locale: str | None,
    channel: Channel,
    link: ResetLink,
    expires_at: datetime,
    name: str | None,
    digest_key: bytes,
) -> RenderedMessage:
    """Make the message of `channel`. `locale` is any BCP 47 tag, matched as `pick_locale` does.

    `expires_at` is shown in UTC, cut to the minute, so that no text promises more life than
    the link has. `name` is untrusted and may be left out. Raises RenderFailed.
    """
    template = find(template_id, revision)
    if template is None:
        raise RenderFailed(what="unknown_template")
    if expires_at.tzinfo is None:
        raise RenderFailed(what="naive_time")
    folder, _ = pick_locale(locale, template)
    values = {"link": link.reveal(), "until": expires_at.astimezone(UTC)}
    if channel is Channel.SMS:
        return _sms(template, folder, values, digest_key)
    return _email(template, folder, values | {"name": safe_name(name)}, digest_key)


def safe_name(name: str | None) -> str | None:
    """A person's name as it may stand in a message that we sign for; None where it may not.

    People choose it themselves, and some choose advertising: a mail program makes a link of
    anything that looks like one. So only letters, digits and the marks of real names pass,
    a full stop only before a space or at the end, and too few digits to be called: the name
    stands in a message that its reader trusts. Control and direction characters go.
    """
    if name is None:
        return None
    visible = (
        each if each.isspace() or unicodedata.category(each)[0] != "C" else "" for each in name
    )
    words = " ".join(unicodedata.normalize("NFC", "".join(visible)).split())
    if not words or len(words) > MAX_NAME or not all(map(_may_stand_in_name, words)):
        return None
    if sum(map(str.isdecimal, words)) > MAX_NAME_DIGITS:
        return None
    if any(not rest.startswith(" ") for rest in words.split(".")[1:] if rest):
        return None
    return words


def _may_stand_in_name(character: str) -> bool:
    return (
        character in _NAME_MARKS
        or unicodedata.category(character)[0] in "LM"
        or character.isdecimal()
    )


def _sms(template: Template, folder: str, values: dict[str, object], key: bytes) -> RenderedMessage:
    text = _fill(template, f"{folder}/sms.txt", values)
    if len(text) > MAX_SMS:
        raise RenderFailed(what="too_long")
    return RenderedMessage(Channel.SMS, "", Secret(text), None, _digest(key, Channel.SMS, "", text))


def _email(
    template: Template, folder: str, values: dict[str, object], key: bytes
) -> RenderedMessage:
    subject = _fill(template, f"{folder}/email.subject.txt", {})
    if "\n" in subject or not subject:
        raise RenderFailed(what="subject")
    text = _fill(template, f"{folder}/email.txt", values) + "\n"
    html = _fill(template, f"{folder}/email.html", values) + "\n"
    return RenderedMessage(
        Channel.EMAIL,
        subject,
        Secret(text),
        Secret(html),
        _digest(key, Channel.EMAIL, subject, text, html),
    )


def _fill(template: Template, part: str, values: dict[str, object]) -> str:
    """One part. The failure is raised outside the handler: its cause may quote the link."""
    try:
        return template.texts.get_template(part).render(values).strip()
    except Exception as error:  # noqa: BLE001 - a template may raise anything at all
        what = type(error).__name__
    raise RenderFailed(what=what)


def _digest(key: bytes, *parts: str) -> str:
    digest = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()
