"""A process whose main thread waits while its other threads never stop starting threads.

Prints `up`; ends when it hears SIGTERM.
"""

from __future__ import annotations

import os
import signal
import threading

from notifier.serving import hear_signals


def churn() -> None:
    """Start one thread after the other; each start changes the starter's signal mask."""
    while True:
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()


def main() -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    hear_signals()
    for _ in range(2):
        threading.Thread(target=churn, daemon=True).start()
    print("up", flush=True)  # noqa: T201
    stop.wait()
    os._exit(0)


if __name__ == "__main__":
    main()
