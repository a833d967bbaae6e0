"""One box that finds a notice: by exact id, or by a destination that is never written down.

The box is posted, so what is typed stands in no address. An id leads to its deep link; a
destination becomes keyed fingerprints behind a random token of this session, for minutes.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from flask import Blueprint, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from notifier.accounts import rate_limits
from notifier.accounts.permissions import Permission
from notifier.accounts.read_audit import Read
from notifier.accounts.sessions import digest_of
from notifier.domain.destinations import check_email, check_number
from notifier.domain.event import is_id
from notifier.domain.states import Channel
from notifier.store.reads import look_up as reads
from notifier.store.reads.look_up import Key, LookedUp
from notifier.web.people import rows as twins
from notifier.web.people.lists import NOTICE_COLUMNS, notice_cells
from notifier.web.people.pasted import meant
from notifier.web.people.preferences import told
from notifier.web.people.visit import Form, needs, services, visitor, wanted, write_down

if TYPE_CHECKING:
    from notifier.domain.values import Destination
    from notifier.store.database import PooledConnection

TOKEN_LIFE: Final = timedelta(minutes=15)
LONGEST: Final = 320
"""Characters that are looked at: the longest address there is, with a name before it."""
_NUMBER_LIKE: Final = re.compile(r"[+0-9 ().\-]{6,}")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
PATHS: Final = {Key.TICKET: "t", Key.EVENT: "e", Key.RESET_REQUEST: "r", Key.ACCOUNT: "a"}
KEY_WORDS: Final = {
    Key.TICKET: "ticket",
    Key.EVENT: "event",
    Key.RESET_REQUEST: "reset request",
    Key.ACCOUNT: "account",
    Key.REFERENCE: "attempt reference",
}


@dataclass(frozen=True, slots=True)
class Hint:
    """Why nothing was searched: in words for the person who typed."""

    text: str


_EMPTY: Final = Hint("Type a ticket, event, reset request or account id, an address or a number.")
_NO_ADDRESS: Final = Hint("That is no complete email address. Nothing was searched.")
_NO_NUMBER: Final = Hint(
    "No notice carries that as an id, and it is no complete phone number either. Write a number "
    "with + and the country code, as in +44 7700 900123."
)
_NOTHING_KNOWN: Final = Hint(
    "An id has letters, digits and . _ : - only; an address has an @; a number begins with +. "
    "Nothing was searched."
)


@needs(Permission.LOOK_UP)
def search_form() -> ResponseReturnValue:
    """The box alone, or the result behind a token."""
    token = request.args.get("s")
    if token is None:
        return render_template("pages/search.html", hint=None)
    return _by_token(token)


@needs(Permission.LOOK_UP)
def search() -> ResponseReturnValue:
    """Decide by shape what was typed, and lead there; what surrounds a pasted thing goes last."""
    text = request.form.get("q", "").strip()
    if not text:
        return _ask_again(_EMPTY)
    with services().database.connection() as connection:
        rate_limits.count(connection, rate_limits.LOOK_UPS, visitor().name)
        if len(text) > LONGEST:
            return _ask_again(_NOTHING_KNOWN)
        thing = meant(text)
        for each in dict.fromkeys((text, thing)):
            found = _by_id(connection, each) if is_id(each) else None
            if found is not None:
                return found
        wish = _destination(thing)
        if wish is None:
            return _nothing(thing)
        if isinstance(wish, Hint):
            return _ask_again(wish)
        rate_limits.count(connection, rate_limits.DESTINATION_SEARCHES, visitor().name)
        token = _keep(connection, wish)
    return redirect(url_for("people.search_form", s=token), 303)


def _destination(text: str) -> tuple[Destination, ...] | Hint | None:
    """The destinations that were meant, a hint, or None for an id that leads nowhere."""
    if "@" in text:
        return _addresses(text) or _NO_ADDRESS
    if _NUMBER_LIKE.fullmatch(text):
        number = check_number(text)
        return (number,) if number else _NO_NUMBER
    return None if is_id(text) else _NOTHING_KNOWN


def _addresses(text: str) -> tuple[Destination, ...]:
    """The address as typed and in small letters: people rarely know which one was used."""
    found = (check_email(each) for each in dict.fromkeys((text, text.lower())))
    return tuple(each for each in found if each is not None)


def _by_id(connection: PooledConnection, text: str) -> ResponseReturnValue | None:
    """Where an exact id leads, or None. A miss is written down as a keyed digest."""
    if _UUID.fullmatch(text) and reads.exists(connection, UUID(text)):
        return redirect(url_for("people.notice", notice_id=UUID(text)), 303)
    kinds = reads.kinds_of(connection, text)
    notices = {each for found in kinds.values() for each in found}
    if not kinds:
        write_down(connection, Read("look_up", "id", _digest(text), 0))
        return None
    write_down(connection, Read("look_up", "id", text, len(notices)))
    if len(notices) == 1:
        return redirect(url_for("people.notice", notice_id=notices.pop()), 303)
    strongest = next(key for key in PATHS if key in kinds)
    return redirect(url_for(f"people.by_{strongest}", value=text), 303)


def _digest(text: str) -> str:
    """For the audit of a miss: what was typed may be a number, so it is not kept."""
    return hmac.new(services().fingerprint_keys[0], text.encode(), hashlib.sha256).hexdigest()[:16]


def _keep(connection: PooledConnection, wish: tuple[Destination, ...]) -> str:
    token = secrets.token_urlsafe(24)
    fingerprints = [
        bytes.fromhex(each.fingerprint(key)) for each in wish for key in services().fingerprint_keys
    ]
    connection.execute(
        """
        INSERT INTO search_token (token_digest, session_digest, channel, fingerprints, mask,
                                  created_at, expires_at)
        SELECT %s, %s, %s, %s, %s, clock.now, clock.now + %s
          FROM (SELECT db_now() AS now) AS clock
        """,
        [digest_of(token), visitor().session_digest, wish[0].channel, fingerprints, wish[0].mask,
         TOKEN_LIFE],
    )  # fmt: skip
    return token


def _by_token(token: str) -> ResponseReturnValue:
    with services().database.connection() as connection:
        row = connection.execute(
            """
            SELECT channel, fingerprints, mask FROM search_token
             WHERE token_digest = %s AND session_digest = %s AND expires_at > db_now()
            """,
            [digest_of(token), visitor().session_digest],
        ).fetchone()
        if row is None:
            return render_template("pages/search.html", hint=Hint(
                "That search has ended: it is kept for 15 minutes, in your own session only. "
                "Search again."))  # fmt: skip
        found = reads.by_fingerprint(connection, row["fingerprints"])
        ref = row["fingerprints"][0].hex()[:16]
        write_down(connection, Read("look_up", "destination", ref, len(found.rows)))
    what = "email address" if row["channel"] == Channel.EMAIL else "phone number"
    return _results(found, what, row["mask"], ())


def _deep_link(key: Key, value: str) -> ResponseReturnValue:
    with services().database.connection() as connection:
        rate_limits.count(connection, rate_limits.LOOK_UPS, visitor().name)
        found = reads.look_up(connection, key, value)
        ref = value if found.rows else _digest(value)
        write_down(connection, Read("look_up", key, ref, len(found.rows)))
    others = tuple(each for each in PATHS if each is not key)
    if len(found.rows) == 1 and wanted() in {Form.PAGE, Form.FRAGMENT}:
        return redirect(url_for("people.notice", notice_id=found.rows[0].notice_id), 303)
    return _results(found, KEY_WORDS[key], value, others, key)


@needs(Permission.LOOK_UP)
def by_ticket(value: str) -> ResponseReturnValue:
    """Notices of a help-desk ticket."""
    return _deep_link(Key.TICKET, value)


@needs(Permission.LOOK_UP)
def by_event(value: str) -> ResponseReturnValue:
    """The notice of an event."""
    return _deep_link(Key.EVENT, value)


@needs(Permission.LOOK_UP)
def by_reset_request(value: str) -> ResponseReturnValue:
    """The notice of a reset request."""
    return _deep_link(Key.RESET_REQUEST, value)


@needs(Permission.LOOK_UP)
def by_account(value: str) -> ResponseReturnValue:
    """Notices of an account."""
    return _deep_link(Key.ACCOUNT, value)


def _results(
    found: LookedUp, what: str, value: str, others: tuple[Key, ...], export: Key | None = None
) -> ResponseReturnValue:
    plain = (notice_cells(row, found) for row in found.rows)
    twin = twins.for_programs(wanted(), "notices", NOTICE_COLUMNS, plain, found.as_of, {})
    if twin is not None:
        return twin
    if not found.rows:
        return render_template("pages/nothing.html", key=what, value=value, kinds=others)
    return render_template(
        "pages/results.html", found=found, what=what, value=value, kinds=others,
        wording_of=told, export=export,
    )  # fmt: skip


def _nothing(text: str) -> ResponseReturnValue:
    return render_template("pages/nothing.html", key="id", value=text, kinds=())


def _ask_again(hint: Hint) -> ResponseReturnValue:
    return make_response(render_template("pages/search.html", hint=hint), 422)


def add_search(blueprint: Blueprint) -> None:
    """Put the box and the deep links at their addresses."""
    blueprint.add_url_rule("/search", view_func=search_form, methods=["GET"])
    blueprint.add_url_rule("/search", view_func=search, methods=["POST"])
    blueprint.add_url_rule("/t/<id:value>", view_func=by_ticket)
    blueprint.add_url_rule("/e/<id:value>", view_func=by_event)
    blueprint.add_url_rule("/r/<id:value>", view_func=by_reset_request)
    blueprint.add_url_rule("/a/<id:value>", view_func=by_account)
