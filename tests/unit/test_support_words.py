"""What a support agent reads: the strongest word, and sentences that hold in every case."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notifier.domain.notice_state import DeliveryFacts, notice_state
from notifier.domain.reasons import Detail, Reason
from notifier.domain.states import Channel, DeliveryState, NoticeState
from notifier.domain.support_story import DeliveryStory, Left, NoticeStory, SupportWord
from notifier.domain.support_words import next_permitted, support_word, utc, wording

S = DeliveryState
NOW = datetime(2026, 5, 3, 14, 6, tzinfo=UTC)
EXPIRES = datetime(2026, 5, 3, 14, 10, tzinfo=UTC)


def story(
    email: S,
    sms: S = S.SUPPRESSED,
    *,
    email_reason: Reason | None = None,
    sms_reason: Reason | None = None,
    left: Left = Left.NEVER,
    left_at: datetime | None = None,
    now: datetime = NOW,
    canceled: bool = False,
    on_hold: bool = False,
    failures: tuple[Detail | None, Detail | None] = (None, None),
    delay: Detail | None = None,
    without_link: bool = False,
    ended_by: Reason | None = None,
) -> NoticeStory:
    state, _ = notice_state(DeliveryFacts(email), DeliveryFacts(sms), canceled=canceled)
    return NoticeStory(
        state=state,
        email=DeliveryStory(
            Channel.EMAIL, email, email_reason, left, left_at, failures[0], delay, without_link
        ),
        sms=DeliveryStory(Channel.SMS, sms, sms_reason, failure=failures[1]),
        now=now,
        expires_at=EXPIRES,
        on_hold=on_hold,
        ended_by=ended_by,
    )


@pytest.mark.parametrize(
    ("ended_by", "headline", "action"),
    [
        (
            Reason.RESET_USED,
            "Since then the link has been used.",
            (
                "The link has been used. If that was not the customer, treat the account as at "
                "risk and follow your security procedure."
            ),
        ),
        (
            Reason.RESET_SUPERSEDED,
            "Since then a newer request has taken its place.",
            "Ask the customer to use the newest message; links in older ones may be dead.",
        ),
        (
            Reason.RESET_REVOKED,
            "Since then the request has been withdrawn.",
            "Ask the customer to request a new reset. A link that still arrives may be dead.",
        ),
    ],
)
@pytest.mark.parametrize("state", [S.DELIVERED, S.ACCEPTED, S.UNKNOWN])
@pytest.mark.parametrize("now", [NOW, EXPIRES])
def test_nobody_is_sent_to_a_link_that_is_over(
    now: datetime, state: S, ended_by: Reason, headline: str, action: str
) -> None:
    told = wording(story(state, S.SUPPRESSED, left=Left.YES, ended_by=ended_by, now=now))
    assert told.headline.endswith(headline)
    assert told.customer_action == action


def test_a_link_that_arrived_works_on_after_an_operator_s_stop() -> None:
    told = wording(story(S.DELIVERED, S.SUPPRESSED, left=Left.YES, ended_by=Reason.OPERATOR_STOP))
    assert "The link works until" in told.customer_action


@pytest.mark.parametrize(
    ("email", "sms", "word"),
    [
        (S.DELIVERED, S.STANDBY, "delivered"),
        (S.ACCEPTED, S.FAILED, "accepted"),
        (S.UNKNOWN, S.ACCEPTED, "accepted"),
        (S.ATTEMPTED, S.STANDBY, "unknown"),
        (S.UNKNOWN, S.QUEUED, "unknown"),
        (S.FAILED, S.QUEUED, "queued"),
        (S.CLAIMED, S.SUPPRESSED, "queued"),
        (S.CANCELED, S.EXPIRED, "canceled"),
        (S.EXPIRED, S.FAILED, "expired"),
        (S.FAILED, S.SUPPRESSED, "failed"),
        (S.SUPPRESSED, S.SUPPRESSED, "not sent"),
    ],
)
def test_the_word_names_the_strongest_that_may_have_reached_the_person(
    email: S, sms: S, word: str
) -> None:
    assert support_word(story(email, sms)) == word


def test_a_halt_turns_queued_into_on_hold_and_nothing_else() -> None:
    assert support_word(story(S.QUEUED, on_hold=True)) is SupportWord.ON_HOLD
    assert support_word(story(S.UNKNOWN, on_hold=True)) is SupportWord.UNKNOWN


def test_an_accepted_email_says_when_it_reached_the_mail_system_and_where_to_look() -> None:
    told = wording(story(S.ACCEPTED, left=Left.YES, left_at=NOW - timedelta(minutes=2)))
    assert told.headline == "The email reached the mail system at 14:04 UTC."
    assert "spam" in told.customer_action
    assert "14:10 UTC" in told.customer_action


def test_a_delivered_text_is_spoken_of_as_a_text() -> None:
    told = wording(story(S.FAILED, S.DELIVERED))
    assert told.headline.startswith("The text message was delivered")
    assert "text messages" in told.customer_action


def test_delivered_never_says_that_the_account_was_recovered() -> None:
    assert "not that the account was recovered" in wording(story(S.DELIVERED)).headline


def test_unknown_promises_no_second_message() -> None:
    told = wording(story(S.UNKNOWN, left=Left.MAYBE))
    assert "may have been sent" in told.headline
    assert "not sent again on a guess" in told.customer_action


@pytest.mark.parametrize(
    ("left", "sentence"),
    [
        (Left.NEVER, "No message left us."),
        (Left.MAYBE, "A message may have left us."),
        (Left.YES, "A message had left us, but it was not seen delivered."),
    ],
)
@pytest.mark.parametrize("state", [S.EXPIRED, S.CANCELED])
def test_an_end_keeps_whether_anything_had_left(state: S, left: Left, sentence: str) -> None:
    told = wording(story(state, left=left, now=EXPIRES, canceled=state is S.CANCELED))
    assert told.headline.endswith(sentence)
    assert told.left is left


def test_after_expiry_the_customer_is_told_that_the_link_is_dead() -> None:
    for state in (S.DELIVERED, S.EXPIRED, S.FAILED, S.SUPPRESSED):
        told = wording(story(state, now=EXPIRES))
        assert "no longer works" in told.customer_action
    assert "14:10 UTC" not in wording(story(S.DELIVERED, now=EXPIRES)).customer_action


def test_what_was_not_sent_says_why_on_each_channel() -> None:
    told = wording(
        story(S.SUPPRESSED, email_reason=Reason.NO_DESTINATION, sms_reason=Reason.NO_CONSENT)
    )
    assert "email, no destination is on file" in told.headline
    assert "text message, the customer has not agreed" in told.headline


@pytest.mark.parametrize("now", [NOW, EXPIRES])
def test_what_no_contact_can_mend_sends_nobody_to_try_again(now: datetime) -> None:
    ruled = wording(
        story(
            S.SUPPRESSED,
            email_reason=Reason.NO_CONSENT,
            sms_reason=Reason.EXCLUDED_BY_POLICY,
            now=now,
        )
    )
    assert "would end the same way" in ruled.customer_action
    assert "contact details" not in ruled.customer_action
    ours = wording(
        story(
            S.SUPPRESSED, email_reason=Reason.RENDER_FAILED, sms_reason=Reason.NO_CONSENT, now=now
        )
    )
    assert "email, a fault of ours" in ours.headline
    assert "on-call" in ours.customer_action


@pytest.mark.parametrize("now", [NOW, EXPIRES])
@pytest.mark.parametrize(
    ("email", "reason"), [(S.FAILED, Reason.REFUSED), (S.SUPPRESSED, Reason.INVALID_DESTINATION)]
)
def test_a_contact_that_failed_is_checked_before_a_new_request_also_after_expiry(
    email: S, reason: Reason, now: datetime
) -> None:
    told = wording(story(email, email_reason=reason, sms_reason=Reason.NO_CONSENT, now=now))
    assert "contact details" in told.customer_action
    assert "new reset" in told.customer_action


def test_a_cap_asks_for_patience_only_within_its_hour() -> None:
    told = wording(story(S.SUPPRESSED, email_reason=Reason.ACCOUNT_CAP_REACHED))
    assert "wait an hour" in told.customer_action


def test_two_failures_are_told_as_two() -> None:
    told = wording(story(S.FAILED, S.FAILED))
    assert told.headline == "Neither the email nor the text message could be delivered."


def test_a_failure_says_why_and_asks_for_other_contacts_only_where_they_may_be_wrong() -> None:
    blocked = wording(story(S.FAILED, S.FAILED, failures=(Detail.BLOCKED, Detail.CONTENT_REJECTED)))
    assert "Email: the recipient or the provider blocks us; text message: " in blocked.headline
    assert "contact details may well be right" in blocked.customer_action
    assert "on-call" in blocked.customer_action
    mixed = (Detail.INVALID_DESTINATION, Detail.CONTENT_REJECTED)
    wrong = wording(story(S.FAILED, S.FAILED, failures=mixed))
    assert "that the contact details on the account are right" in wrong.customer_action
    full = wording(story(S.FAILED, failures=(Detail.MAILBOX_FULL, None)))
    assert "make room in their mailbox" in full.customer_action


@pytest.mark.parametrize(("state", "now"), [(S.ACCEPTED, NOW), (S.EXPIRED, EXPIRES)])
def test_a_full_mailbox_sends_nobody_to_look_for_spam_alone(state: S, now: datetime) -> None:
    told = wording(story(state, left=Left.YES, delay=Detail.MAILBOX_FULL, now=now))
    assert "the mailbox is full" in told.headline
    assert "make room in their mailbox" in told.customer_action
    arrived = wording(story(S.DELIVERED, left=Left.YES, delay=Detail.MAILBOX_FULL))
    assert "mailbox is full" not in arrived.headline
    assert "make room" not in arrived.customer_action


def test_a_text_that_failed_is_told_beside_an_email_that_nobody_has_seen_arrive() -> None:
    beside = "The text message could not be delivered."
    assert beside in wording(story(S.ACCEPTED, S.FAILED)).headline
    assert beside in wording(story(S.UNKNOWN, S.FAILED, left=Left.MAYBE)).headline
    assert beside not in wording(story(S.DELIVERED, S.FAILED)).headline


def test_a_link_that_the_auth_service_does_not_give_is_named_and_is_a_matter_for_on_call() -> None:
    waits = wording(story(S.QUEUED, without_link=True))
    assert waits.headline == "The email is waiting: the auth service has given no link for it yet."
    assert "tell on-call" in waits.customer_action
    over = wording(story(S.EXPIRED, without_link=True, now=EXPIRES))
    assert over.headline.endswith("No message left us: the auth service gave no link.")
    assert "tell on-call" in over.customer_action


def test_a_stop_by_an_operator_says_so_once_and_speaks_of_no_link_that_never_left() -> None:
    told = wording(story(S.CANCELED, email_reason=Reason.OPERATOR_STOP, canceled=True))
    assert told.headline == "An operator stopped this notice. No message left us."
    assert "still arrives" not in told.customer_action
    maybe = story(S.CANCELED, email_reason=Reason.OPERATOR_STOP, canceled=True, left=Left.MAYBE)
    assert "still arrives" in wording(maybe).customer_action


def test_a_used_link_is_a_matter_of_security() -> None:
    told = wording(story(S.CANCELED, email_reason=Reason.RESET_USED, canceled=True))
    assert "because the link had already been used" in told.headline
    assert "security" in told.customer_action


def test_a_cancel_is_told_beside_what_may_have_left() -> None:
    told = wording(story(S.UNKNOWN, canceled=True, left=Left.MAYBE))
    assert told.support_word is SupportWord.UNKNOWN
    assert "canceled since" in told.headline


def test_times_carry_their_zone_and_the_date_where_it_is_another_day() -> None:
    rome = timezone(timedelta(hours=2))
    assert utc(datetime(2026, 5, 3, 16, 4, tzinfo=rome), NOW) == "14:04 UTC"
    assert utc(datetime(2026, 5, 4, 0, 1, tzinfo=UTC), NOW) == "4 May 2026, 00:01 UTC"


def test_every_state_has_a_next_step() -> None:
    sentences = {next_permitted(state) for state in S}
    assert len(sentences) == len(S)
    assert "do not resend" in next_permitted(S.UNKNOWN)


maybe_delivery = st.none() | st.builds(
    DeliveryStory,
    channel=st.sampled_from(Channel),
    state=st.sampled_from(DeliveryState),
    reason=st.none() | st.sampled_from(Reason),
    left=st.sampled_from(Left),
    left_at=st.none() | st.just(NOW),
    failure=st.none() | st.sampled_from(Detail),
    delay=st.none() | st.sampled_from(Detail),
    without_link=st.booleans(),
)


@settings(max_examples=500)
@given(
    told=st.builds(
        NoticeStory,
        state=st.sampled_from(NoticeState),
        email=maybe_delivery,
        sms=maybe_delivery,
        now=st.sampled_from([NOW, EXPIRES]),
        expires_at=st.just(EXPIRES),
        on_hold=st.booleans(),
    )
)
def test_there_are_whole_sentences_for_whatever_happened(told: NoticeStory) -> None:
    words = wording(told)
    assert words.headline.endswith(".")
    assert words.customer_action.endswith(".")
    assert "_" not in words.headline + words.customer_action
    assert "None" not in words.headline + words.customer_action
