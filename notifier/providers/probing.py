"""What a look at a provider without a message found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Probed:
    """Whether the provider let us in; `what` is short and holds no secret."""

    ok: bool
    what: str
