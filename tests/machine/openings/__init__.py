"""Directed beginnings of an example, so that every edge of the state table is reached often.

Each one brings a notice into a situation that chance alone would seldom meet; the rules go on
from there. `salt` varies an opening without making another one of it.
"""

from tests.machine.openings import answers, arrivals, claims, decisions, replays
from tests.machine.openings.words import ANY, OPENINGS

__all__ = ["ANY", "OPENINGS", "answers", "arrivals", "claims", "decisions", "replays"]
