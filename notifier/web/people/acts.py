"""Acts on one notice: have a provider asked now, add evidence, stop it.

Each has a page of its own that shows the state as it stands and carries its version; an act on a
version that has passed is refused and shows the new state. No act can send.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from flask import Blueprint, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from notifier.accounts.permissions import Permission
from notifier.accounts.read_audit import Outcome, Read
from notifier.domain import remarks
from notifier.domain.remarks import Evidence, RemarkUnfit
from notifier.domain.states import Channel
from notifier.flow.operator_acts import (
    ASKABLE,
    NothingToDo,
    NoticeMoved,
    OperatorActs,
    is_unproven,
)
from notifier.store.reads.notice import load_notice
from notifier.store.reads.notice_story import wording_of
from notifier.store.reads.versions import notice_version
from notifier.web.people.errors import Unfit
from notifier.web.people.notebook import Notebook, fit_to_keep
from notifier.web.people.preferences import preferences
from notifier.web.people.visit import needs, services, visitor, write_down

if TYPE_CHECKING:
    from notifier.store.reads.notice_facts import NoticePage

EVIDENCE: Final = {
    Evidence.PROVIDER_SAYS_SENT: "The provider says that it was sent",
    Evidence.PROVIDER_SAYS_NOT_SENT: "The provider says that it was never sent",
    Evidence.PERSON_HAS_IT: "The customer has it",
    Evidence.PERSON_LACKS_IT: "The customer does not have it",
    Evidence.OTHER: "Something else",
}
MOVED: Final = (
    "The notice has moved on since you opened the form, so nothing was done. This is how it "
    "stands now; if you still want it, send it again."
)


@dataclass(frozen=True, slots=True)
class Act:
    """How an act is called, and what it comes to."""

    name: str
    title: str
    button: str
    meaning: str
    possible: Callable[[NoticePage], bool]
    why_not: str


def unproven(page: NoticePage) -> list[Channel]:
    """The channels about which evidence can be added."""
    return [each.channel for each in page.deliveries if is_unproven(each.state, each.reason)]


def _can_look(page: NoticePage) -> bool:
    return page.is_open and any(
        each.state in ASKABLE and each.next_check_at is not None for each in page.deliveries
    )


def _can_stop(page: NoticePage) -> bool:
    return page.canceled_at is None and page.as_of < page.expires_at


ACTS: Final = {
    each.name: each
    for each in (
        Act(
            "look", "Ask the provider now", "Ask now",
            "The next look at the provider is due at once. It is asked what became of the "
            "message; nothing is sent.",
            _can_look, "No provider can be asked about this notice now.",
        ),
        Act(
            "note", "Add evidence", "Add it",
            "What you found out stands on the trail beside the unknown outcome, under your name. "
            "It changes no state and sends nothing.",
            lambda page: bool(unproven(page)), "No outcome of this notice is unknown.",
        ),
        Act(
            "stop", "Stop this notice", "Stop it",
            "What has not left is canceled and is not sent any more. What may have left cannot be "
            "called back, and keeps following its facts.",
            _can_stop, "There is nothing left to stop.",
        ),
    )
}  # fmt: skip


def possible_acts(page: NoticePage) -> list[Act]:
    """What the visitor may do to this notice now."""
    if services().acts is None or not visitor().may(Permission.ACT_ON_NOTICES):
        return []
    return [each for each in ACTS.values() if each.possible(page)]


@needs(Permission.ACT_ON_NOTICES)
def act_form(notice_id: UUID, act: str) -> ResponseReturnValue:
    """What the act means, and how the notice stands."""
    return _page(notice_id, ACTS[act])


@needs(Permission.ACT_ON_NOTICES)
def do_act(notice_id: UUID, act: str) -> ResponseReturnValue:
    """Do it, on the state that the form was made for."""
    acts = services().acts
    if acts is None:
        raise NotFound
    typed = {name: request.form.get(name, "") for name in ("reason", "evidence", "channel")}
    note = Notebook(str(notice_id), act, fit_to_keep(typed["reason"]))
    note.write(Outcome.ASKED)
    fault, outcome, status = None, Outcome.DONE, 303
    try:
        _DO[act](acts, notice_id, _version(), typed)
    except RemarkUnfit as error:
        fault, outcome, status = error.sentence, Outcome.NOT_DONE, 422
    except NothingToDo as error:
        fault, outcome, status = f"{error} Nothing was done.", Outcome.STALE, 409
    except NoticeMoved:
        fault, outcome, status = MOVED, Outcome.STALE, 409
    except LookupError:
        raise NotFound from None
    note.write(outcome)
    if fault:
        return _page(notice_id, ACTS[act], fault=fault, typed=typed, status=status)
    return redirect(url_for("people.notice", notice_id=notice_id), 303)


def _look(acts: OperatorActs, notice_id: UUID, version: int, typed: Mapping[str, str]) -> None:
    acts.look_now(notice_id, version=version, reason=typed["reason"], by=visitor().name)


def _note(acts: OperatorActs, notice_id: UUID, version: int, typed: Mapping[str, str]) -> None:
    if typed["evidence"] not in set(Evidence):
        raise Unfit("evidence", f"is one of {', '.join(Evidence)}")
    if typed["channel"] not in set(Channel):
        raise Unfit("channel", f"is one of {', '.join(Channel)}")
    acts.annotate(
        notice_id,
        version=version,
        channel=Channel(typed["channel"]),
        evidence=Evidence(typed["evidence"]),
        text=typed["reason"],
        by=visitor().name,
    )


def _stop(acts: OperatorActs, notice_id: UUID, version: int, typed: Mapping[str, str]) -> None:
    acts.stop(notice_id, version=version, reason=typed["reason"], by=visitor().name)


_DO: Final = {"look": _look, "note": _note, "stop": _stop}


def _version() -> int:
    text = request.form.get("version", "")
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise Unfit("version", "is the number that the form carries")
    return int(text)


def _page(
    notice_id: UUID,
    act: Act,
    *,
    fault: str | None = None,
    typed: Mapping[str, str] | None = None,
    status: int = 200,
) -> ResponseReturnValue:
    with services().database.connection() as connection:
        version = notice_version(connection, notice_id)
        page = load_notice(connection, notice_id)
        write_down(connection, Read("view", "notice", str(notice_id), int(page is not None)))
    if page is None:
        return render_template("pages/nothing.html", key="notice", value=str(notice_id), kinds=())
    return make_response(
        render_template(
            "pages/act.html", act=act, page=page, version=version,
            words=wording_of(page, preferences().tz), possible=act.possible(page),
            channels=unproven(page), evidence=EVIDENCE, fault=fault, typed=typed or {},
            longest=remarks.LONGEST, wanted=remarks.WANTED,
        ),
        status,
    )  # fmt: skip


def add_acts(blueprint: Blueprint) -> None:
    """Put the acts at their addresses."""
    rule = "/n/<uuid:notice_id>/<any(look,note,stop):act>"
    blueprint.add_url_rule(rule, view_func=act_form, methods=["GET"])
    blueprint.add_url_rule(rule, view_func=do_act, methods=["POST"])
