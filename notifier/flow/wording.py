"""What the message templates and the policy ask of an event, and a claim's own message."""

from __future__ import annotations

from datetime import datetime

from notifier.domain.event_document import EventRules
from notifier.domain.states import Channel
from notifier.domain.values import RenderedMessage
from notifier.flow.policies import PolicyShelf
from notifier.messages import revisions
from notifier.messages.render import RenderFailed, render
from notifier.ports.links import LinkGranted
from notifier.store.ledger.claim import Claim


def message_of(
    key: bytes, claim: Claim, answer: LinkGranted, expires_at: datetime
) -> RenderedMessage:
    """The message of a claim, under the notice's own template revision and locale.

    `key` makes its digest. Raises `RenderFailed`.
    """
    if answer.link is None:
        raise RenderFailed("no_link")
    return render(
        claim.template_id,
        claim.template_revision,
        claim.locale_used,
        Channel(claim.channel),
        answer.link,
        expires_at,
        answer.name,
        key,
    )


def pick_locale(requested: str | None, template_id: str, revision: str) -> tuple[str, bool]:
    """The locale that a template revision has for a request, and whether it fell back."""
    template = revisions.find(template_id, revision)
    return revisions.pick_locale(requested, template) if template else ("en", True)


def event_rules(shelf: PolicyShelf) -> EventRules:
    """The rules in force for a new event."""
    _, policy = shelf.current()
    return EventRules(
        max_life_s=policy.max_life_s,
        template_exists=lambda name, revision: revisions.find(name, revision) is not None,
        parallel_reason_codes=frozenset(policy.parallel_reason_codes),
    )
