"""How the zone of a time is written: by its distance from UTC, which is never ambiguous.

Letters are (CST is two zones, IST three), and a time without its zone is of no use in a ticket.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

_MINUTE: Final = timedelta(minutes=1)


def zone_label(moment: datetime) -> str:
    """`UTC`, `UTC+1`, `UTC+5:30`: how far the clock of an aware time is from UTC."""
    ahead = moment.utcoffset() or timedelta()
    if not ahead:
        return "UTC"
    hours, minutes = divmod(round(abs(ahead) / _MINUTE), 60)
    sign = "+" if ahead > timedelta() else "\N{MINUS SIGN}"
    return f"UTC{sign}{hours}" + (f":{minutes:02}" if minutes else "")
