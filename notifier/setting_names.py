"""Variables that look like settings and are none: a slip of the pen leaves a default in force."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from notifier.settings import PREFIX, Settings


@dataclass(frozen=True, slots=True)
class UnknownSetting:
    """A variable that nothing reads, and the setting that may have been meant."""

    variable: str
    meant: str | None

    def __str__(self) -> str:
        guess = f", perhaps {self.meant}" if self.meant else ""
        return f"{self.variable} is no setting{guess}"


def unknown_settings(environ: Mapping[str, str]) -> Iterator[UnknownSetting]:
    """Every variable of our prefix that is none of the settings, by name."""
    known = [PREFIX + name.upper() for name in Settings.model_fields]
    for variable in sorted(environ):
        if variable.upper().startswith(PREFIX) and variable not in known:
            close = difflib.get_close_matches(variable.upper(), known, n=1, cutoff=0.85)
            yield UnknownSetting(variable, close[0] if close else None)
