"""Values that carry a secret or personal data, and what may be shown of them.

A `Secret` shows its mask whatever is done to it: it has no plain `str`, `repr` or format,
cannot be pickled or copied into JSON. `reveal()` is the one way to the content; only the
code that talks to the outside world at send time calls it.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import NoReturn

from notifier.domain.states import Channel

DOTS = "\N{BULLET}" * 3
"""Fixed width, so that a mask never leaks how long the original was."""


class Unserialised:
    """What is neither pickled nor copied: either would hand out what it carries."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        message = f"{type(self).__name__} cannot be serialised"
        raise TypeError(message)


class Secret(Unserialised):
    """A text that must never be stored, logged or shown."""

    __slots__ = ("_content", "_mask")

    def __init__(self, content: str, mask: str = DOTS) -> None:
        self._content = content
        self._mask = mask

    def reveal(self) -> str:
        """The content itself, for the wire only."""
        return self._content

    @property
    def mask(self) -> str:
        """What may be shown in its place."""
        return self._mask

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._mask}>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return hmac.compare_digest(self._content.encode(), other._content.encode())

    __hash__ = None  # type: ignore[assignment]


class ResetLink(Secret):
    """The reset URL, alive between the link answer and the provider call."""


class Destination(Secret):
    """An email address or an E.164 number, already checked and normalised."""

    __slots__ = ("channel",)

    def __init__(self, channel: Channel, address: str) -> None:
        super().__init__(address, mask_of(channel, address))
        self.channel = channel

    def fingerprint(self, key: bytes) -> str:
        """Keyed digest for comparing two destinations without holding either (hex)."""
        material = f"{self.channel}\x00{self._content}".encode()
        return hmac.new(key, material, hashlib.sha256).hexdigest()


def mask_of(channel: Channel, address: str) -> str:
    """A mask such as `j•••@e•••.com` or `•••0143` that does not show the length."""
    if channel is Channel.SMS:
        return f"{DOTS}{address[-4:]}" if len(address) > 7 else DOTS
    local, _, domain = address.rpartition("@")
    host, dot, top = domain.rpartition(".")
    return f"{local[:1]}{DOTS}@{host[:1]}{DOTS}{dot}{top}"


@dataclass(frozen=True, slots=True)
class RenderedMessage:
    """A message ready for one channel; its text carries the link, so all of it is secret.

    `digest` is the keyed SHA-256 (hex) of the parts in fixed order. The subject carries no
    secret.
    """

    channel: Channel
    subject: str
    text: Secret
    html: Secret | None
    digest: str
