"""What a script says about a moment: who is down, what the auth service and a provider answer."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from notifier.domain.outcome import Accepted, NotAccepted, Outcome, ProviderPause, Refused, Unknown
from notifier.domain.reasons import Detail, Reason
from notifier.rehearsal.acts import REQUESTED_AT
from notifier.rehearsal.notice import Attempt
from notifier.rehearsal.script import Call, LinkTrouble, Look, Script

_AMBIGUOUS: Final = {
    "connection_lost": Unknown(Reason.CONNECTION_LOST),
    "gateway_error": Unknown(Reason.GATEWAY_ERROR),
    "unreadable_answer": Unknown(Reason.UNREADABLE_ANSWER),
}


def moment_of(seconds: float) -> datetime:
    """The moment so many seconds after the request."""
    return REQUESTED_AT + timedelta(seconds=seconds)


def awake(script: Script, moment: datetime) -> datetime:
    """The first moment from then on at which our processes run."""
    for outage in sorted(script.outages, key=lambda each: each.from_s):
        if moment_of(outage.from_s) <= moment < moment_of(outage.until_s):
            moment = moment_of(outage.until_s)
    return moment


def link_trouble(script: Script, now: datetime) -> LinkTrouble | None:
    """Why the auth service gives no link now; None where it gives one."""
    for each in script.links:
        ended = each.until_s is not None and now >= moment_of(each.until_s)
        if moment_of(each.from_s) <= now and not ended:
            return each
    return None


def seen_by(script: Script, attempt: Attempt, now: datetime) -> Look:
    """What the provider says when it is asked about this attempt now."""
    passed = (now - attempt.started_at).total_seconds()
    known = [each for each in script.channel(attempt.channel).looks if each.after_s <= passed]
    return known[-1] if known else Look("cannot_tell")


def outcome_of(call: Call, begun: datetime, deadline: datetime) -> tuple[datetime, Outcome | None]:
    """When the caller learns what, None where it learns nothing because it dies."""
    ends = begun + timedelta(seconds=call.after_s)
    if call.answer == "killed":
        return ends, None
    if call.answer == "hang" or ends >= deadline:
        return deadline, Unknown(Reason.TIMEOUT)
    return ends, _answered(call)


def _answered(call: Call) -> Outcome:
    if call.answer == "accepted":
        return Accepted("message")
    if call.answer == "refused":
        return Refused(call.detail or Detail.UNCLASSIFIED)
    if call.answer == "not_accepted":
        detail = call.detail or Detail.UNREACHABLE
        wait_s = call.retry_after_s
        return NotAccepted(detail, pause=None if wait_s is None else ProviderPause(detail, wait_s))
    return _AMBIGUOUS[call.answer]
