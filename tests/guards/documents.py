"""Writes the reference pages that are tables of the code: `python -m tests.guards.documents`.

A test compares each page with what is generated here, so that none can fall behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from notifier.domain.reasons import Reason
from notifier.domain.states import CLOSED, MOVES, DeliveryState
from notifier.domain.support_words import next_permitted
from tests.guards import settings_page as settings
from tests.guards.mutants import GUARDS

ROOT: Final = Path(__file__).resolve().parents[2]
S = DeliveryState

MEANINGS: Final = {
    S.STANDBY: "Held in reserve.",
    S.QUEUED: "Durable, and may be claimed when it is due.",
    S.CLAIMED: "Leased by a worker; nothing external has been done by this attempt yet.",
    S.ATTEMPTED: "The intent is committed: the external call may have begun.",
    S.UNKNOWN: "Nobody can say whether the call reached the provider.",
    S.ACCEPTED: "The provider holds the message, or handed it on.",
    S.DELIVERED: "Delivery evidence was observed.",
    S.FAILED: "A classified, final failure.",
    S.SUPPRESSED: "It was decided not to send.",
    S.EXPIRED: "The window closed.",
    S.CANCELED: "The reset was used, superseded or revoked, or an operator stopped it.",
}

STATES_HEAD: Final = """\
# States of a delivery

A delivery is a notice's job on one channel. It is in one of the states below, and goes from
one to another only by a move of the table that follows, for one of the reasons beside it.
The table stands as data in `notifier/domain/states.py`. The database holds the same moves:
a trigger refuses any other change of a state, and a check refuses any other row of the trail.

*Written by `python -m tests.guards.documents`; a test compares it with the code.*

## States
"""

MOVES_HEAD: Final = """\
## Moves

A new delivery comes from nowhere (*new*). Nothing leads out of a closed state. A row of the
trail that moves nothing is a fact: it has the same state on both sides, and any reason.
"""

GUARDS_HEAD: Final = """\
# Guards

A guard is one place in the product that keeps a promise: a constraint, a predicate, a lock, a
line. Each is listed with what would happen without it and with the test that watches it.
`make mutants` breaks them one by one, each in a copy of the checkout, and fails when a test
stays green; `make test` does so for the quick ones (marked \N{BLACK STAR}).

*Written by `python -m tests.guards.documents`; a test compares it with the table of guards.*
"""


def row(*cells: str) -> str:
    """A line of a Markdown table."""
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table."""
    return "\n".join([row(*head), row(*["---"] * len(head)), *(row(*each) for each in rows)])


def states_page() -> str:
    """`docs/reference/states.md`."""
    states = [
        (f"`{state}`", MEANINGS[state], "closed" if state in CLOSED else "", next_permitted(state))
        for state in S
    ]
    moves = [
        (f"`{start}`" if start else "*new*", f"`{end}`", reasons_of(reasons))
        for (start, end), reasons in MOVES.items()
    ]
    return "\n".join(
        [
            STATES_HEAD,
            table(("state", "meaning", "", "what may be done next"), states),
            "",
            MOVES_HEAD,
            table(("from", "to", "reasons"), moves),
            "",
        ]
    )


def reasons_of(reasons: frozenset[Reason]) -> str:
    """The reasons in the order in which the code lists them."""
    return " ".join(f"`{reason}`" for reason in Reason if reason in reasons)


def guards_page() -> str:
    """`docs/reference/guards.md`."""
    rows = [
        (
            guard.promise,
            f"{guard.name} \N{BLACK STAR}" if guard.quick else guard.name,
            guard.without,
            f"`{guard.broken_by.path}`",
            f"`{guard.test}`",
        )
        for guard in sorted(GUARDS, key=lambda guard: int(guard.promise[1:]))
    ]
    head = ("promise", "guard", "without it", "stands in", "watched by")
    return f"{GUARDS_HEAD}\n{table(head, rows)}\n"


def settings_page() -> str:
    """`docs/reference/settings.md`."""
    head = ("variable", "what it is for", "form", "where it is not set", "must be set")
    return f"{settings.HEAD}\n{table(head, list(settings.rows()))}\n{settings.TOKENS}"


PAGES: Final[dict[str, Callable[[], str]]] = {
    "docs/reference/states.md": states_page,
    "docs/reference/guards.md": guards_page,
    "docs/reference/settings.md": settings_page,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(page(), encoding="utf-8")
