"""What must be the same: states, leases, attempts, support facts, and the trail's every row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from notifier.domain.states import Channel, DeliveryState, NoticeState
from notifier.domain.support_story import DeliveryStory, NoticeStory
from notifier.domain.support_words import support_word as told_word
from tests.machine.model.facts import Attempt, Delivery, Notice, Row, support_word
from tests.machine.model.world import World

Rows = list[dict[str, Any]]


class Disagreement(AssertionError):
    """The product and the model do not say the same."""


def compared(
    world: World, names: Mapping[UUID, str], seen: dict[str, int], looked: tuple[Rows, ...]
) -> Iterator[dict[str, Any]]:
    """Compare everything; gives the moves that are new on the trail."""
    notices, deliveries, attempts, rows = looked
    assert len(notices) == len(names), "a notice is missing"
    for row in notices:
        notice = world.notices[names[row["notice_id"]]]
        own = [each for each in rows if each["notice_id"] == row["notice_id"]]
        new = [each for each in own if each["seq"] > seen[notice.name]]
        seen[notice.name] = row["seq"]
        _same_rows(notice, new)
        _same(notice.name, notice_facts(notice), _of_notice(row))
        yield from (each for each in new if each["from_state"] != each["to_state"])
    for row in deliveries:
        notice = world.notices[names[row["notice_id"]]]
        delivery = notice.on(row["channel"])
        _adopt_due(delivery, row)
        _same(f"{notice.name} {row['channel']}", _facts(notice, delivery), _of_delivery(row))
    for row in attempts:
        delivery = world.notices[names[row["notice_id"]]].on(row["channel"])
        attempt = delivery.attempts[row["number"] - 1]
        _same(f"attempt {row['reference']}", _attempt_facts(attempt), _of_attempt(row))
    _same_words(world, names, notices, deliveries)


def _same(what: str, model: object, product: object) -> None:
    if model != product:
        raise Disagreement(f"{what}\n  model   {model}\n  product {product}")


def _same_rows(notice: Notice, new: Rows) -> None:
    """The order of rows counts within a channel; across channels the design leaves it open."""
    found = [
        Row(each["channel"], each["from_state"], each["to_state"], each["reason"]) for each in new
    ]
    for channel in (None, "email", "sms"):
        expected = [each for each in notice.rows if each.channel == channel]
        _same(
            f"{notice.name}: trail of {channel}",
            expected,
            [each for each in found if each.channel == channel],
        )
    notice.rows.clear()


def _adopt_due(delivery: Delivery, row: dict[str, Any]) -> None:
    """A jittered moment is the product's to choose, inside the bounds."""
    if delivery.due_between is not None and delivery.state == "queued":
        first, last = delivery.due_between
        assert first <= row["due_at"] <= last, "due outside its bounds"
        delivery.due_at = row["due_at"]
    delivery.due_between = None


def notice_facts(notice: Notice) -> tuple[Any, ...]:
    state, basis = notice.state()
    return state, basis, notice.canceled, notice.expires_at, notice.hold_noted


def _of_notice(row: dict[str, Any]) -> tuple[Any, ...]:
    canceled = row["canceled_at"] is not None
    return row["state"], row["basis"], canceled, row["expires_at"], row["hold_noted"]


def _facts(notice: Notice, delivery: Delivery) -> dict[str, Any]:
    queued = delivery.state == "queued"
    return {
        "state": delivery.state,
        "stop_at": delivery.stop_at,
        "expires_at": notice.expires_at,
        "fence": delivery.fence,
        "owner": delivery.owner,
        "lease_until": delivery.lease_until,
        "attempts": len(delivery.attempts),
        "final": delivery.final,
        "may_have_left": delivery.may_have_left,
        "left": delivery.left,
        "arrived_at": delivery.arrived_at,
        "due_at": delivery.due_at if queued else None,
    }


def _of_delivery(row: dict[str, Any]) -> dict[str, Any]:
    queued = row["state"] == "queued"
    return {
        "state": row["state"],
        "stop_at": row["stop_at"],
        "expires_at": row["expires_at"],
        "fence": row["fence"],
        "owner": row["lease_owner"],
        "lease_until": row["lease_until"],
        "attempts": row["attempts"],
        "final": row["final_acceptance"],
        "may_have_left": row["may_have_left"],
        "left": row["left_at"] is not None,
        "arrived_at": row["arrived_at"],
        "due_at": row["due_at"] if queued else None,
    }


def _attempt_facts(attempt: Attempt) -> tuple[Any, ...]:
    return (
        attempt.reference,
        attempt.deadline,
        attempt.open,
        attempt.answered,
        attempt.replayed,
        attempt.replay_waits,
        attempt.message_id,
    )


def _of_attempt(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        row["reference"],
        row["deadline"],
        row["resolved_at"] is None,
        row["call_ended"],
        row["replay_started_at"] is not None,
        row["replay_started_at"] is not None and row["replay_ended_at"] is None,
        row["provider_message_id"],
    )


def _same_words(world: World, names: Mapping[UUID, str], notices: Rows, deliveries: Rows) -> None:
    for row in notices:
        told = {
            each["channel"]: DeliveryStory(Channel(each["channel"]), DeliveryState(each["state"]))
            for each in deliveries
            if each["notice_id"] == row["notice_id"]
        }
        story = NoticeStory(
            NoticeState(row["state"]),
            told["email"],
            told["sms"],
            row["expires_at"],
            row["expires_at"],
        )
        notice = world.notices[names[row["notice_id"]]]
        _same(f"{notice.name}: support word", support_word(notice), str(told_word(story)))
