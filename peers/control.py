"""The routes every peer has: its journal, what it holds, and letting go."""

from __future__ import annotations

from peers.journal import Holds, Journal
from peers.web import Reply, Request, Route, as_json

LONGEST_WAIT_S = 30.0


def control_routes(journal: Journal, holds: Holds) -> dict[tuple[str, str], Route]:
    """`/journal.json?since=&wait=`, `/held.json` and `POST /control/release`.

    `since` is the last `seq` the reader has; `wait` (seconds) asks to be answered only when
    there is something newer. A release takes `{id?, drop?}`.
    """

    def read(request: Request) -> Reply:
        since = int(request.query.get("since", "0"))
        wait_s = min(float(request.query.get("wait", "0")), LONGEST_WAIT_S)
        entries = journal.since(since, wait_s)
        return as_json({"entries": entries, "next": since + len(entries)})

    def held(_: Request) -> Reply:
        return as_json({"held": holds.listing()})

    def release(request: Request) -> Reply:
        wanted = request.json()
        number = wanted.get("id")
        count = holds.release(
            None if number is None else int(number), drop=bool(wanted.get("drop", False))
        )
        return as_json({"released": count})

    return {
        ("GET", "/journal.json"): read,
        ("GET", "/held.json"): held,
        ("POST", "/control/release"): release,
    }
