"""For whom a new revision holds, and from when: it differs by the parts of a policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from notifier.web.people.policy_words import GROUPS

if TYPE_CHECKING:
    from notifier.domain.policy_drafts import Change

_FROM_ADMISSION: Final = (
    "Holds for notices that are admitted from then on. Those admitted already keep the values "
    "they came with."
)
TIMES: Final[Mapping[str, str]] = {
    "time": _FROM_ADMISSION,
    "doubt": _FROM_ADMISSION,
    "pace": (
        "Waits before a further try, time limits of a call, pauses and the first look hold for "
        "notices that are admitted from then on. Further looks, leases and sweeps change at once, "
        "for all. A mail server's time limits are taken up when a process starts."
    ),
    "limits": (
        "Holds for events that are admitted from then on. What was decided of earlier ones stays."
    ),
    "alert": (
        "Holds at once, for everything: the next look judges by it, and so do the pages. An alert "
        "that stands is judged by it too, with the life of a token that it opened with."
    ),
    "retention": "Holds at once, for all that is kept: the next sweep erases by it.",
}
"""By the part's key."""


def times_of(changes: Iterable[Change]) -> Sequence[tuple[str, str]]:
    """The title of each part that something changes in, and when that holds."""
    names = {each.name for each in changes}
    return [(each.title, TIMES[each.key]) for each in GROUPS if names & set(each.values)]
