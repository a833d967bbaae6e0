"""Properties of the decision over every notice that can be imagined, likely or not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st

from notifier.domain.event import PolicyMode
from notifier.domain.fallback import after, at_intent, expiry_decisions, settle
from notifier.domain.fallback_view import GONE_OUT, Decision, DeliveryView, NoticeView, Step
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel, DeliveryState, is_permitted

START = datetime(2026, 5, 3, 14, 0, tzinfo=UTC)

moments = st.integers(0, 20).map(lambda minute: START + timedelta(minutes=minute))
maybe_moments = st.none() | moments
choices = st.sampled_from(["send", "hold"])
deliveries = st.builds(
    DeliveryView,
    state=st.sampled_from(DeliveryState),
    stop_at=moments,
    halted=st.booleans(),
    ever_attempted=st.booleans(),
    call_deadline=maybe_moments,
    acceptance_is_final=st.booleans(),
)
notices = st.builds(
    NoticeView,
    now=moments,
    expires_at=moments,
    mode=st.sampled_from(PolicyMode),
    email=deliveries,
    sms=deliveries,
    fallback_at=maybe_moments,
    on_unknown=choices,
    on_unconfirmed=choices,
    takes_bounces=st.booleans(),
    canceled=st.booleans(),
    hold_noted=st.booleans(),
    email_arrived_at=maybe_moments,
    sms_queued_at=maybe_moments,
    avoidable_noted=st.booleans(),
)


def walk(view: NoticeView, steps: tuple[Step, ...]) -> NoticeView:
    """The view at the end, having checked that each move is one of the table's."""
    for step in steps:
        if isinstance(step, Decision):
            assert is_permitted(view.at(step.channel).state, step.to_state, step.reason)
        view = after(view, step)
    return view


@settings(max_examples=400)
@given(view=notices)
def test_the_decision_settles_soon_and_only_by_permitted_moves(view: NoticeView) -> None:
    for decide in (settle, at_intent, expiry_decisions):
        steps = decide(view)
        assert len(list(islice(steps, 7))) <= 6
        assert not decide(walk(view, steps))


@settings(max_examples=400)
@given(view=notices)
def test_p5_and_p6_no_start_is_opened_where_none_may_be(view: NoticeView) -> None:
    for step in settle(view):
        if isinstance(step, Decision) and step.to_state is DeliveryState.QUEUED:
            delivery = view.at(step.channel)
            assert view.now < min(delivery.stop_at, view.expires_at)
            assert not view.canceled
            if step.channel is Channel.SMS:
                assert not delivery.ever_attempted
                assert not delivery.halted
            else:
                assert step.reason is Reason.TEXT_ENDED_IN_TIME
        view = after(view, step)


@settings(max_examples=400)
@given(view=notices)
def test_both_channels_are_never_startable_at_once_in_the_default_mode(view: NoticeView) -> None:
    startable = {DeliveryState.QUEUED, DeliveryState.CLAIMED}
    if view.mode is not PolicyMode.EMAIL_THEN_SMS or view.canceled or view.now >= view.expires_at:
        return
    end = walk(view, settle(view))
    text_is_out = end.sms.state in startable | GONE_OUT
    assert not (end.email.state in startable and text_is_out)


@given(view=notices, order=st.permutations(["settle", "expiry"]))
def test_p12_the_sweeps_reach_one_end_in_any_order(view: NoticeView, order: list[str]) -> None:
    end = view
    for name in order:
        end = walk(end, settle(end) if name == "settle" else expiry_decisions(end))
    final = walk(end, settle(end))
    assert final == walk(view, settle(view))
