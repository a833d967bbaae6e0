"""How many parts a text message is sent in, and so what it costs (3GPP TS 23.038, 23.040)."""

from __future__ import annotations

from typing import Final

_BASIC: Final = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
_EXTENDED: Final = frozenset("\f^{}\\[~]|€")
"""Each of these takes two places, and they may not be parted."""

_ONE_GSM, _EACH_GSM = 160, 153
_ONE_UCS2, _EACH_UCS2 = 70, 67


def count_segments(text: str) -> int:
    """The number of segments of `text`: GSM-7 where its alphabet suffices, else UCS-2."""
    if all(character in _BASIC or character in _EXTENDED for character in text):
        widths = [2 if character in _EXTENDED else 1 for character in text]
        return _pack(widths, _ONE_GSM, _EACH_GSM)
    widths = [2 if ord(character) > 0xFFFF else 1 for character in text]
    return _pack(widths, _ONE_UCS2, _EACH_UCS2)


def _pack(widths: list[int], alone: int, each: int) -> int:
    """Fill one segment after the other; a character that does not fit goes to the next."""
    if sum(widths) <= alone:
        return 1
    segments, room = 1, each
    for width in widths:
        if width > room:
            segments, room = segments + 1, each
        room -= width
    return segments
