"""The guards of admission's keys: each is given once for ever, and its first content stands."""

from __future__ import annotations

from tests.guards.guard import Guard, Replaced

ADMISSION = "notifier/store/ledger/admission.py"
EVENT = "notifier/domain/event.py"
ONCE = "tests/db/ledger/test_admission_once.py::"


def _looked_for(key: str, old: str, new: str) -> Guard:
    return Guard(
        f"what was admitted is found by its {key}",
        "P1",
        f"another body under the {key} of long ago is a fault of ours in place of a conflict",
        Replaced(ADMISSION, old, new),
        f"{ONCE}test_p1_a_key_of_years_ago_with_another_body_is_a_conflict[{key}]",
    )


def _compared(key: str) -> Guard:
    return Guard(
        f"the {key} is part of the content",
        "P1",
        f"an event under another {key} is answered as the repeat of one that it is not",
        Replaced(EVENT, f'            "{key}": self.{key},\n', ""),
        f"{ONCE}test_p1_a_repeat_under_one_other_key_is_a_conflict[{key}]",
    )


ADMISSION_GUARDS: tuple[Guard, ...] = (
    _looked_for(
        "event_id",
        " WHERE a.event_id = %(event_id)s OR a.idempotency_key",
        " WHERE a.idempotency_key",
    ),
    _looked_for(
        "idempotency_key",
        "event_id)s OR a.idempotency_key = %(idempotency_key)s\n",
        "event_id)s\n",
    ),
    _looked_for("reset_request_id", "    OR a.reset_request_id = %(reset_request_id)s\n", ""),
    _compared("event_id"),
    _compared("idempotency_key"),
    _compared("reset_request_id"),
    Guard(
        "a repeat of years ago is told as one",
        "P1",
        "who asks again after years has an old event announced anew, and others canceled for it",
        Replaced(
            ADMISSION, 'first["expires_at"], created=False', 'first["expires_at"], created=True'
        ),
        f"{ONCE}test_p1_a_repeat_after_years_is_answered_as_it_was_and_makes_nothing",
    ),
    Guard(
        "a signed cancel ends the one event that it was for",
        "P1",
        "whoever saw one cancel stops the notices of others with it",
        Replaced(
            "notifier/flow/cancel.py",
            "if cancels.event_of_message(connection, digest, event_id) != event_id:",
            "if cancels.event_of_message(connection, digest, event_id) is None:",
        ),
        "tests/db/ledger/test_cancel.py::test_a_signed_message_ends_one_event_and_no_other",
    ),
    Guard(
        "a conflict stands on the trail of who was first",
        "P8",
        "somebody tried to have another message sent under a known id, and nobody can see it",
        Replaced(
            "notifier/flow/admission.py",
            "            self._note_conflict(stored.notice_id)\n",
            "",
        ),
        f"{ONCE}test_p1_other_content_is_a_conflict_on_the_trail_and_changes_nothing[other expiry]",
    ),
    Guard(
        "what was admitted before decides, not today's rules",
        "P1",
        "a sender that repeats an event of before a change of the rules is told that it is invalid",
        Replaced(
            "notifier/web/machines/admission.py",
            "services.find_admitted(invalid.event) if invalid.event else None",
            "None",
        ),
        "tests/web/machines/test_admission.py::"
        "test_p1_a_repeat_is_answered_although_todays_rules_would_refuse_it",
    ),
)
