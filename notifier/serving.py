"""Serves the application: one process that answers and sends, under a small one that watches.

The HTTP server runs its worker in a child process. The printed pid is the parent's; when that
alone is killed, the child must not go on serving or sending, so the kernel is asked to kill it
with its parent (Linux), and a thread watches for the parent everywhere.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import util
from typing import Any, Final

from flask import Flask
from granian.constants import HTTPModes, Interfaces
from granian.server import Server

from notifier import silent_lines
from notifier.logs import server_log_config
from notifier.web.gate import Gate

PR_SET_PDEATHSIG: Final = 1
WATCH_EVERY_S: Final = 0.5
REQUESTS_AT_ONCE: Final = 6
"""More do not answer more, because they share one interpreter.

Sixteen clients at once, two processors, places handed on in order: 4 at once gave 585 admissions
a second with a p99 of 47 ms, 6 gave 607 with 46 ms, 8 gave 585 with 60 ms.
"""
CONNECTIONS: Final = 256
"""Connections taken at once, each with a thread that may wait for its sender; further ones wait
in the listen queue. A thread that waits costs some tens of kilobytes."""
STOP_LIMIT_S: Final = 30
"""How long the child may take to end what is in hand before it is killed."""


def serve(host: str, port: int, build: Callable[[], tuple[Flask, Callable[[], None]]]) -> None:
    """Serve until SIGTERM or SIGINT; raises SystemExit with 1 where the child failed.

    `build` runs in the child: it gives the application and what to call at its end.
    """
    parent = os.getpid()

    def load(*_: Any, **__: Any) -> Flask:
        die_with(parent)
        hear_signals()
        silent_lines.watch(port)
        app, stop = build()
        app.wsgi_app = Gate(app.wsgi_app, REQUESTS_AT_ONCE)  # type: ignore[method-assign]
        # The last thing a child process does, after it has answered its last request.
        util.Finalize(None, stop, exitpriority=100)
        return app

    server = Server(
        "app",
        address=host,
        port=port,
        interface=Interfaces.WSGI,
        workers=1,
        blocking_threads=CONNECTIONS,
        backpressure=CONNECTIONS,
        http=HTTPModes.http1,
        log_dictconfig=server_log_config(),
        workers_kill_timeout=STOP_LIMIT_S,
    )
    server.serve(target_loader=load, wrap_loader=False)


def hear_signals() -> None:
    """See to it that this process's main thread hears SIGTERM and SIGINT; call it there.

    Python runs handlers in the main thread alone, and while that one waits, only a signal
    that interrupts itself wakes it. The kernel means the main thread, but any thread that
    changes its signal mask first takes the signal away, and each start of a thread does that:
    with many of them the stop was lost and the process killed half a minute later.
    """
    listening, telling = socket.socketpair()
    telling.setblocking(False)
    signal.set_wakeup_fd(telling.fileno(), warn_on_full_buffer=False)
    arguments = (listening, telling, threading.get_ident())
    threading.Thread(target=_pass_on, args=arguments, name="signals", daemon=True).start()


def _pass_on(listening: socket.socket, _telling: socket.socket, main_thread: int) -> None:
    """Direct the first request to stop at the main thread itself, where nobody can take it.

    Goes on listening: the passed-on signal is written here too, and where nobody holds the
    sockets, Python prints that it could not be.
    """
    passed_on = False
    while number := listening.recv(1):
        if not passed_on and number[0] in {signal.SIGTERM, signal.SIGINT}:
            passed_on = True
            signal.pthread_kill(main_thread, number[0])


def die_with(parent: int) -> None:
    """Make this process end when `parent` does, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the kernel was asked
        os._exit(1)
    threading.Thread(target=_watch, args=(parent,), name="watch-parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_EVERY_S)
    os._exit(1)
