"""How often a process says that it lives, and from when on its silence is told.

For people alone: work is taken back by its lease and the lead passes by the leader's, however long
a process has been silent.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

BEAT_EVERY: Final = timedelta(seconds=5)
"""Each process writes its row so often."""
BEATS_MISSED: Final = 3
LATE_AFTER: Final = 1.5 * BEAT_EVERY
"""Silent for so long, one beat was missed: as yet a pause of the host may explain it."""
LOST_AFTER: Final = BEATS_MISSED * BEAT_EVERY
"""Silent for so long without a goodbye: it does not count as running."""
GONE_AFTER: Final = timedelta(minutes=5)
"""Silent for so long, it is taken for ended: killed, or its host went with it."""
