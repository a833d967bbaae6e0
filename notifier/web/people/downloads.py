"""How many files may be on their way at once.

The server's thread stays with an answer until its reader has taken it, however slowly. So
downloads get a small part of the threads, and each person a small part of that.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

EACH: Final = 4
IN_ALL: Final = 24
"""A tenth of the connections that the server takes at once."""
RETRY_AFTER_S: Final = 30


class TooManyAtOnce(Exception):
    """So many files are on their way to this person, or to everybody, as may be."""


class Downloads:
    """Counts the files that one process is sending."""

    def __init__(self, in_all: int = IN_ALL, each: int = EACH) -> None:
        self._in_all = in_all
        self._each = each
        self._going: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def one_more(self, who: str) -> Iterator[None]:
        """A place for one file to this person for the length of the block.

        Raises `TooManyAtOnce`.
        """
        with self._lock:
            if self._going[who] >= self._each or self._going.total() >= self._in_all:
                raise TooManyAtOnce
            self._going[who] += 1
        try:
            yield
        finally:
            with self._lock:
                self._going[who] -= 1
                if not self._going[who]:
                    del self._going[who]
