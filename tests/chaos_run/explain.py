"""Where an outcome that nobody knows got lost, by the trail and the provider's journal together.

A delivery may end unknown only where its attempt's reason fits what really happened: a worker
that was lost was killed, stood still, or could not write; a call that broke was broken by the
provider or on the way. What fits nothing has no explanation, and breaks the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.chaos_run.fleet import Frozen
from tests.chaos_run.havoc import Kill, Outage
from tests.chaos_run.journals import Seen, Wire
from tests.chaos_run.senders import Told

Row = dict[str, Any]

NO_ANSWER = {
    "hang-after-accept", "hang-and-silent", "unseen", "reset-after-accept", "drop-after-accept",
    "lost-after-accept", "error-after-accept", "truncate", "junk", "unavailable", "proxy-page",
    "slow", "hang-after-dot", "reset-after-dot", "drop-after-dot", "garbage-after-dot",
    "lost-after-dot", "busy-after-dot", "drop-at-data", "drop-in-body",
}  # fmt: skip
"""Fates under which no answer came that could be understood, or not in time."""
TIMER_S = 0.05
READING_S = 0.5
"""How long an answer that has come may take to be read."""
SLACK_S = 6.0
"""How long after its call a worker may still be lost before it could write the result."""


@dataclass(frozen=True, slots=True)
class Causes:
    """Everything that was broken in the run."""

    kills: Sequence[Kill]
    frozen: Sequence[Frozen]
    restarts: Sequence[Outage]
    outages: Sequence[Outage]
    seen: dict[str, Seen]
    told: Told

    def of(self, attempt: Row) -> str | None:
        """Where the outcome of this attempt got lost; None where nothing explains it."""
        what = self._what(attempt)
        return what and f"{what}; {self._where(attempt)}"

    def _where(self, attempt: Row) -> str:
        seen = self.seen[attempt["channel"]]
        if attempt["reference"] in seen.kept_of():
            return "the provider has the message"
        if self._posts(attempt):
            return "the provider was asked and kept nothing"
        return "the provider was never asked"

    def _what(self, attempt: Row) -> str | None:
        begin = attempt["started_at"].timestamp()
        end = max(attempt["deadline"].timestamp(), begin) + SLACK_S
        pid = int(attempt["owner"].split(":")[1])
        if attempt["reason"] in (None, "worker_lost"):
            return self._lost_worker(pid, begin, end)
        posts = self._posts(attempt)
        if any(post.fate in NO_ANSWER for post in posts):
            return f"the provider gave no answer ({attempt['reason']}, {posts[0].fate})"
        if attempt["reason"] == "timeout" and self._ran_out(attempt, posts):
            return "its time was over before an answer could be read (timeout)"
        if self._broken_way(attempt):
            return f"the way was cut ({attempt['reason']})"
        if self._stood_still(pid, begin, end):
            return f"the process stood still in the call ({attempt['reason']})"
        return None

    def _ran_out(self, attempt: Row, posts: Sequence[Wire]) -> bool:
        """Whether the call lasted as long as it could, and no answer came well within that.

        A stop time can leave a call a few tenths of a second, and a busy machine takes them.
        """
        deadline = attempt["deadline"].timestamp()
        answers = self.seen[attempt["channel"]].answered
        known = [answers.get(attempt["reference"]), *(each.at for each in posts)]
        came = [at for at in known if at is not None]
        lasted = attempt["finished_at"].timestamp() >= deadline - TIMER_S
        return lasted and all(at >= deadline - READING_S for at in came[:1])

    def _posts(self, attempt: Row) -> list[Wire]:
        """The requests of an attempt; of its person's where a request names no reference."""
        destinations = self.told.events[attempt["event_id"]]["destinations"]
        channel = attempt["channel"]
        posts = self.seen[channel].posts_for().get(destinations[channel], [])
        return [each for each in posts if each.reference in (None, attempt["reference"])]

    def _lost_worker(self, pid: int, begin: float, end: float) -> str | None:
        if any(pid in kill.pids and begin <= kill.at + 1 <= end + 1 for kill in self.kills):
            return "its process was killed"
        if self._stood_still(pid, begin, end):
            return "its process stood still"
        if any(_overlap(each.begin, each.end, begin, end) for each in self.restarts):
            return "its result could not be written while Postgres was away"
        return None

    def _stood_still(self, pid: int, begin: float, end: float) -> bool:
        return any(
            pid in each.pids and _overlap(each.begin, each.end, begin, end) for each in self.frozen
        )

    def _broken_way(self, attempt: Row) -> bool:
        """Whether the way to this provider was cut or closed while the call lasted."""
        begin = attempt["started_at"].timestamp() - READING_S
        end = attempt["finished_at"].timestamp() + READING_S
        return any(
            each.what.startswith(attempt["provider"]) and _overlap(each.begin, each.end, begin, end)
            for each in self.outages
        )


def _overlap(begin: float, end: float, other_begin: float, other_end: float) -> bool:
    return begin <= other_end and other_begin <= end
