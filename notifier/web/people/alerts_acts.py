"""Acts on one alert: have it in hand, give it back, write beside it, end it, review it.

Each carries the version that its author saw. One that has passed is refused, and the alert is
shown as it stands now with what was typed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID

from flask import Blueprint, redirect, request, url_for
from flask.typing import ResponseReturnValue

from notifier.accounts.permissions import Permission
from notifier.accounts.read_audit import Outcome
from notifier.domain.remarks import RemarkUnfit
from notifier.flow.alerts import AlertMoved, Alerts, LedToAction, Verdict
from notifier.web.people.alerts import alert_page
from notifier.web.people.asked import NUMBER, checked
from notifier.web.people.errors import Unfit
from notifier.web.people.notebook import Notebook, fit_to_keep
from notifier.web.people.visit import needs, services, visitor

MOVED: Final = (
    "The alert has moved on since you opened the page, so nothing was done. This is how it stands "
    "now; if you still want it, send it again."
)
_Word = TypeVar("_Word", LedToAction, Verdict)


@dataclass(frozen=True, slots=True)
class Sent:
    """What a form brought."""

    episode_id: UUID
    version: int
    by: str
    typed: Mapping[str, str]


def _acknowledge(alerts: Alerts, sent: Sent) -> None:
    alerts.acknowledge(
        sent.episode_id, version=sent.version, by=sent.by, note=sent.typed["acknowledge"]
    )


def _give_back(alerts: Alerts, sent: Sent) -> None:
    alerts.unacknowledge(sent.episode_id, version=sent.version, by=sent.by)


def _note(alerts: Alerts, sent: Sent) -> None:
    alerts.note(sent.episode_id, text=sent.typed["note"], by=sent.by)


def _resolve(alerts: Alerts, sent: Sent) -> None:
    alerts.resolve(sent.episode_id, version=sent.version, by=sent.by, note=sent.typed["resolve"])


def _review(alerts: Alerts, sent: Sent) -> None:
    alerts.review(
        sent.episode_id,
        version=sent.version,
        by=sent.by,
        led_to_action=_word(LedToAction, "led_to_action"),
        what=sent.typed["review"],
        verdict=_word(Verdict, "verdict"),
    )


ACTS: Final[Mapping[str, Callable[[Alerts, Sent], None]]] = {
    "acknowledge": _acknowledge,
    "give_back": _give_back,
    "note": _note,
    "resolve": _resolve,
    "review": _review,
}


@needs(Permission.ANSWER_ALERTS)
def act_on_alert(episode_id: UUID, act: str) -> ResponseReturnValue:
    """Do it, on the state that the form was made for."""
    typed = {name: request.form.get(name, "") for name in ACTS}
    typed |= {name: request.form.get(name, "") for name in ("led_to_action", "verdict")}
    version = int(checked({"version": NUMBER}, request.form).get("version", "0"))
    note = Notebook(str(episode_id), f"alert_{act}", fit_to_keep(typed[act]))
    note.write(Outcome.ASKED)
    try:
        ACTS[act](Alerts(services().database), Sent(episode_id, version, visitor().name, typed))
    except RemarkUnfit as error:
        note.write(Outcome.NOT_DONE)
        fault = f"Nothing was done. {error.sentence}"
        return alert_page(episode_id, fault=fault, typed=typed, status=422)
    except AlertMoved:
        note.write(Outcome.STALE)
        return alert_page(episode_id, fault=MOVED, typed=typed, status=409)
    note.write(Outcome.DONE)
    return redirect(url_for("people.alert", episode_id=episode_id), 303)


def _word(words: type[_Word], name: str) -> _Word:
    try:
        return words(request.form.get(name, ""))
    except ValueError:
        raise Unfit(name, f"is one of {', '.join(words)}") from None


def add_alert_acts(blueprint: Blueprint) -> None:
    """Put the acts at their addresses."""
    rule = f"/alerts/<uuid:episode_id>/<any({','.join(ACTS)}):act>"
    blueprint.add_url_rule(rule, view_func=act_on_alert, methods=["POST"])
