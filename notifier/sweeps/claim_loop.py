"""Sends: claims due deliveries and carries each on a thread of its own.

Every process with workers runs one loop, so sending goes on without a leader. It claims only
as many rows as it has idle threads: a lease held by work that waits is a lease wasted. The
channels share the threads, and each keeps a part that no other can take, so that a provider
that hangs cannot starve the other channel.
"""

from __future__ import annotations

import logging
import math
import secrets
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from notifier.clock import ClockUnknown
from notifier.domain.reasons import Reason
from notifier.domain.states import Channel
from notifier.flow import put_back
from notifier.flow.desk import Desk
from notifier.flow.dispatch import Dispatch
from notifier.flow.recording import STORE_TROUBLE
from notifier.store.ledger.claim import Claim
from notifier.store.reads.due import next_due_s

log = logging.getLogger(__name__)

POLL_S: Final = 1.0
BLOCKED_S: Final = 0.2
"""How soon to look again while an outcome waits to be written or the clock is unknown."""


class Bell(Protocol):
    """What wakes the loop."""

    def wait(self, timeout: float) -> None:
        """Return at the next ring, or after `timeout` seconds."""
        ...

    def ring_here(self) -> None:
        """Wake this process's loops only."""
        ...


class ClaimLoop:
    """The claiming thread and its workers; `start` once, `stop` once."""

    def __init__(
        self,
        *,
        dispatch: Dispatch,
        desk: Desk,
        channels: Sequence[Channel],
        workers: int,
        bell: Bell,
    ) -> None:
        self._dispatch = dispatch
        self._desk = desk
        self._channels = tuple(channels)
        self._workers = workers
        self._bell = bell
        self._busy: Counter[Channel] = Counter()
        self._lock = threading.Lock()
        self._short_of_threads = True
        self._next_due_at = math.inf
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="dispatch")
        self._thread = threading.Thread(target=self._run, name="claim", daemon=True)

    def start(self) -> None:
        """Begin to claim."""
        self._thread.start()

    def stop(self) -> None:
        """Claim nothing more, and let what is in hand end (each call is time-boxed)."""
        self._stop.set()
        self._bell.ring_here()
        self._thread.join()
        self._pool.shutdown(wait=True)

    def is_alive(self) -> bool:
        """Whether the claiming thread runs."""
        return self._thread.is_alive()

    def busy(self) -> int:
        """How many deliveries are being carried now."""
        with self._lock:
            return self._busy.total()

    def _run(self) -> None:
        while not self._stop.is_set():
            wait_s = self._jittered(POLL_S)
            try:
                if self._dispatch.recorder.waiting:
                    wait_s = BLOCKED_S
                elif self._claim_all():
                    continue
                else:
                    wait_s = min(wait_s, self._until_due())
            except (ClockUnknown, *STORE_TROUBLE) as error:
                log.warning("nothing claimed: %s", type(error).__name__)
                wait_s = BLOCKED_S
            except Exception as error:  # noqa: BLE001 - this thread must outlive any fault
                log.error("the claim failed: %s", type(error).__name__)  # noqa: TRY400 - no values
            self._bell.wait(wait_s)

    def _claim_all(self) -> bool:
        """Claim once for each channel; whether any of them may have more at once."""
        # Until the round is over every thread that comes free rings; a ring is never lost.
        self._short_of_threads = True
        short, idle = False, True
        for channel in self._channels:
            slots = self._free(channel)
            claims = self._dispatch.claim(channel, slots) if slots else []
            for claim in claims:
                self._begin(channel, claim)
            short = short or len(claims) == slots
            idle = idle and slots > 0 and not claims
        self._short_of_threads = short
        if idle:
            self._look_ahead()
        return short and any(self._free(channel) for channel in self._channels)

    def _look_ahead(self) -> None:
        """Ask when the next delivery falls due; only a round that found nothing does."""
        with self._dispatch.database.connection() as connection:
            wait_s = next_due_s(connection, self._channels)
        self._next_due_at = math.inf if wait_s is None else time.monotonic() + wait_s

    def _until_due(self) -> float:
        """Seconds until then. What was due before now has been claimed, or is kept back."""
        left = self._next_due_at - time.monotonic()
        return left if left > 0 else math.inf

    def _free(self, channel: Channel) -> int:
        """Idle threads that this channel may take: all but the others' untouched parts."""
        part = max(self._workers // (2 * len(self._channels)), 1)
        with self._lock:
            kept = sum(
                max(part - self._busy[other], 0) for other in self._channels if other != channel
            )
            return max(self._workers - self._busy.total() - kept, 0)

    def _begin(self, channel: Channel, claim: Claim) -> None:
        with self._lock:
            self._busy[channel] += 1
        self._pool.submit(self._carry, channel, claim)

    def _carry(self, channel: Channel, claim: Claim) -> None:
        try:
            self._dispatch.carry(claim)
        except (ClockUnknown, *STORE_TROUBLE) as error:
            log.warning("left to its lease: %s", type(error).__name__)
        except Exception as error:  # noqa: BLE001 - a poison row must stand alone
            log.error("a delivery failed: %s", type(error).__name__)  # noqa: TRY400 - no values
            self._isolate(claim)
        finally:
            with self._lock:
                self._busy[channel] -= 1
            if self._short_of_threads:
                self._bell.ring_here()

    def _isolate(self, claim: Claim) -> None:
        """Fail what raised before its intent; an open attempt is left to its lease."""
        try:
            put_back.fail(self._desk, claim, Reason.INTERNAL_FAULT)
        except Exception as error:  # noqa: BLE001 - the lease ends it where this cannot
            log.warning("left to its lease: %s", type(error).__name__)

    @staticmethod
    def _jittered(seconds: float) -> float:
        return seconds * (0.8 + secrets.randbelow(400) / 1000)
