"""Sets the wall clock of a Python process wrong by `CLOCK_WRONG_BY_S` seconds, before all else.

On the path of a process that a test starts, and of no other. What Python reads as wall time is
shifted: `time.time`, `time.time_ns` and what asks `datetime` for now or today. Monotonic clocks
tell the truth, as they do on a host whose clock was set wrong.
"""

from __future__ import annotations

import copyreg
import datetime as dt
import os
import time

WRONG_BY_S = float(os.environ["CLOCK_WRONG_BY_S"])
true = dt.datetime
true_time, true_time_ns, true_gmtime, true_localtime = (
    time.time,
    time.time_ns,
    time.gmtime,
    time.localtime,
)


class Instances(type):
    """Every true datetime counts as an instance of the shifted class."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, true)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, true)


class Shifted(true, metaclass=Instances):
    """Makes true datetimes only, with another idea of now."""

    def __new__(cls, *args: object, **kwargs: object) -> true:  # type: ignore[misc]
        return true(*args, **kwargs)  # type: ignore[arg-type]

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> true:  # type: ignore[override]
        return true.now(tz) + dt.timedelta(seconds=WRONG_BY_S)

    @classmethod
    def today(cls) -> true:  # type: ignore[override]
        return cls.now()


for name in ("fromisoformat", "fromtimestamp", "combine", "strptime", "fromordinal"):
    setattr(Shifted, name, getattr(true, name))
Shifted.__name__ = Shifted.__qualname__ = "datetime"
Shifted.__module__ = "datetime"
# A pickle names the class, and what stands under its name must be what is named.
copyreg.pickle(true, lambda value: (Shifted, value.__reduce_ex__(2)[1]))  # type: ignore[arg-type,return-value]
dt.datetime = Shifted  # type: ignore[misc]
time.time = lambda: true_time() + WRONG_BY_S
time.time_ns = lambda: true_time_ns() + int(WRONG_BY_S * 1_000_000_000)
time.gmtime = lambda at=None: true_gmtime(time.time() if at is None else at)
time.localtime = lambda at=None: true_localtime(time.time() if at is None else at)
