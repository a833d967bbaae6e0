"""What people read: the same text every time, and nothing in it that we did not write."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifier.domain.states import Channel
from notifier.domain.values import RenderedMessage, ResetLink
from notifier.messages.render import MAX_NAME, RenderFailed, render, safe_name
from notifier.messages.revisions import find
from notifier.messages.segments import count_segments

LINK = "https://accounts.example.test/reset?token=planted-5519&x=1"
LONG_LINK = "https://accounts.example.test/reset?token=" + "a" * 78
UNTIL = datetime(2026, 9, 3, 14, 4, 59, tzinfo=UTC)
KEY = b"k" * 32


def message(
    channel: Channel = Channel.EMAIL,
    *,
    locale: str | None = "en",
    link: str = LINK,
    until: datetime = UNTIL,
    name: str | None = "Mara",
    key: bytes = KEY,
) -> RenderedMessage:
    return render("password-reset", "1", locale, channel, ResetLink(link), until, name, key)


def html_of(rendered: RenderedMessage) -> str:
    assert rendered.html is not None
    return rendered.html.reveal()


class Page(HTMLParser):
    """The tags with their attributes, and the text that a person sees."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(
    ("locale", "time", "word"),
    [
        ("en", "14:04 UTC on 3 September 2026", "did not ask"),
        ("de-AT", "14:04 Uhr UTC am 3. September 2026", "Wenn Sie das nicht waren"),
    ],
)
def test_the_email_says_what_it_is_until_when_and_what_if_it_was_not_you(
    locale: str, time: str, word: str
) -> None:
    rendered = message(locale=locale)
    for shown in (rendered.text.reveal(), Page(html_of(rendered)).text):
        assert LINK in shown
        assert time in shown
        assert word in shown
        assert "Mara" in shown


@pytest.mark.parametrize("month", range(1, 13))
def test_german_and_english_name_every_month(month: int) -> None:
    until = datetime(2026, month, 1, tzinfo=UTC)
    english = message(until=until).text.reveal()
    german = message(until=until, locale="de").text.reveal()
    assert until.strftime("%B") in english
    names = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
    assert f"1. {names.split()[month - 1]} 2026" in german


def test_the_time_is_given_in_utc_whatever_zone_it_came_in() -> None:
    elsewhere = UNTIL.astimezone(timezone(timedelta(hours=-11)))
    assert message(until=elsewhere) == message()


@given(st.integers(1_600_000_000, 4_000_000_000).map(lambda at: datetime.fromtimestamp(at, UTC)))
def test_p5_no_text_promises_more_life_than_there_is(until: datetime) -> None:
    email = message(until=until).text.reveal()
    text = message(Channel.SMS, until=until).text.reveal()
    assert until.strftime("%H:%M UTC") in email
    assert until.strftime("%H:%M UTC, %Y-%m-%d") in text


def test_the_html_loads_nothing_and_is_in_its_language() -> None:
    page = Page(html_of(message(locale="de")))
    names = [name for name, _ in page.tags]
    assert not {"img", "script", "link", "iframe", "style", "form"} & set(names)
    assert dict(page.tags)["html"] == {"lang": "de"}
    targets = [at[key] for _, at in page.tags for key in ("href", "src", "background") if key in at]
    assert targets == [LINK]
    assert {"h1", "title", "meta"} <= set(names)


def test_nothing_in_the_link_or_the_name_becomes_markup() -> None:
    rendered = message(link="https://example.test/?a='x'&b=1", name="O'Neill")
    source = html_of(rendered)
    assert "&#39;x&#39;&amp;b=1" in source
    assert "O&#39;Neill" in source
    assert "O'Neill" in rendered.text.reveal()


@pytest.mark.parametrize("locale", ["en", "de"])
def test_the_sms_fits_two_segments_with_a_long_link_and_has_no_name(locale: str) -> None:
    text = message(Channel.SMS, locale=locale, link=LONG_LINK).text.reveal()
    assert len(LONG_LINK) == 120
    assert count_segments(text) <= 2
    assert LONG_LINK in text
    assert "Mara" not in text


def test_the_same_inputs_give_the_same_bytes_and_any_other_input_another_digest() -> None:
    same = [message().digest for _ in range(3)]
    others = [
        message(Channel.SMS).digest,
        message(locale="de").digest,
        message(link=LONG_LINK).digest,
        message(until=UNTIL + timedelta(minutes=1)).digest,
        message(name=None).digest,
        message(key=b"other").digest,
    ]
    assert len({*same}) == 1
    assert len({*same, *others}) == 7


def test_the_digest_is_keyed_over_the_parts_in_fixed_order() -> None:
    rendered = message()
    parts = ("email", rendered.subject, rendered.text.reveal(), html_of(rendered))
    material = b"".join(len(part.encode()).to_bytes(8, "big") + part.encode() for part in parts)
    assert rendered.digest == hmac.new(KEY, material, hashlib.sha256).hexdigest()


@pytest.mark.parametrize(
    ("given_name", "shown"),
    [
        ("Mara", "Mara"),
        ("  Mara \t\n Lind  ", "Mara Lind"),
        ("J. R. O'Neill-Sáenz", "J. R. O'Neill-Sáenz"),
        ("田中 さくら", "田中 さくら"),
        ("Mara\u202eLind\u200b\x00", "MaraLind"),
        ("Zoe\u0308", "Zoë"),
        ("n" * MAX_NAME, "n" * MAX_NAME),
        ("n" * (MAX_NAME + 1), None),
        ("", None),
        (" \u200b ", None),
        (None, None),
        ("win at evil.test", None),
        ("https://evil.test", None),
        ("me@evil.test", None),
        ("www evil/test", None),
        ("<b>Mara</b>", None),
        ("{{ link }}", None),
        ("Mara\ud800", "Mara"),
        ("Louis 14", "Louis 14"),
        ("R2D2", "R2D2"),
        ("Konto gesperrt Tel 0800 123 456 789", None),
        ("Call 110", None),
        ("Text STOP to 82 123", None),
        ("a1b1c0", None),
        ("Tel \u0660\u0668\u0660\u0660", None),
        ("Tel \uff10\uff18\uff10\uff10", None),
        ("Tel \u2460\u2461\u2462", None),
    ],
)
def test_a_name_passes_only_where_it_can_be_nothing_but_a_name(
    given_name: str | None, shown: str | None
) -> None:
    assert safe_name(given_name) == shown


@given(st.text())
def test_no_name_at_all_breaks_the_message(name: str) -> None:
    rendered = message(name=name)
    assert len(Page(html_of(rendered)).tags) == len(Page(html_of(message())).tags)


@pytest.mark.parametrize(
    ("template_id", "revision"),
    [("password-reset", "2"), ("other", "1"), ("../messages/password-reset", "1"), ("", "")],
)
def test_an_unknown_template_is_a_failure_without_content(template_id: str, revision: str) -> None:
    with pytest.raises(RenderFailed) as failed:
        render(template_id, revision, "en", Channel.SMS, ResetLink(LINK), UNTIL, None, KEY)
    assert failed.value.what == "unknown_template"


def test_p7_a_template_that_fails_leaves_no_content_in_its_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    template = find("password-reset", "1")
    assert template is not None
    broken = template.texts.from_string("{{ link.no_such_part.at_all }}")
    monkeypatch.setattr(template.texts, "get_template", lambda _: broken)
    with pytest.raises(RenderFailed) as failed:
        message(Channel.SMS)
    assert failed.value.what == "UndefinedError"
    assert (failed.value.__context__, failed.value.__cause__) == (None, None)


def test_a_time_without_a_zone_or_a_text_without_end_is_a_failure() -> None:
    with pytest.raises(RenderFailed, match="naive_time"):
        message(until=UNTIL.replace(tzinfo=None))
    with pytest.raises(RenderFailed, match="too_long"):
        message(Channel.SMS, link=LONG_LINK + "a" * 1500)


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("", 1),
        ("a" * 160, 1),
        ("a" * 161, 2),
        ("a" * 306, 2),
        ("a" * 307, 3),
        ("ä" * 160, 1),
        ("€" * 80, 1),
        ("€" * 81, 2),
        ("a" * 152 + "€" + "a" * 151, 2),
        ("a" * 152 + "€" + "a" * 152, 3),
        ("✓" * 70, 1),
        ("✓" * 71, 2),
        ("✓" * 134, 2),
        ("✓" * 135, 3),
        ("😀" * 35, 1),
        ("😀" * 36, 2),
    ],
)
def test_segments_are_counted_as_networks_count_them(text: str, segments: int) -> None:
    assert count_segments(text) == segments
