"""Serves the application: one process that answers and sends, under a small one that watches.

The HTTP server runs its worker in a child process. The printed pid is the parent's; when that
alone is killed, the child must not go on serving or sending, so the kernel is asked to kill it
with its parent (Linux), and a thread watches for the parent everywhere.

The parent holds the address and the child inherits it: the server's own sockets would share one
with every other process of the same user, each taking some of the other's requests.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import util
from typing import Any, Final

from flask import Flask
from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.server.mp import MPServer

from notifier import silent_lines
from notifier.logs import server_log_config
from notifier.setting_values import Bind
from notifier.starting import CannotStart
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
BACKLOG: Final = 1024
"""Connections that the kernel keeps until one is taken."""
STOP_LIMIT_S: Final = 30
"""How long the child may take to end what is in hand before it is killed."""


def hold(bind: Bind) -> socket.socket:
    """Take the address, not listening yet. Raises `CannotStart` where somebody listens there.

    Of two that hold it at the same time, the first to listen has it.
    """
    with told_by_setting(bind):
        found = socket.getaddrinfo(bind.host, bind.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        held = socket.socket(family, kind, protocol)
        try:
            # Lines of a process that has ended may linger; a listener is not passed over by this.
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            held.bind(address)
        except OSError:
            held.close()
            raise
    return held


@contextmanager
def told_by_setting(bind: Bind) -> Iterator[None]:
    """Raise what the system says about the address as `CannotStart`, with the setting's name."""
    where = f"[{bind.host}]:{bind.port}" if ":" in bind.host else f"{bind.host}:{bind.port}"
    try:
        yield
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            why = f"({where} is taken by another process); stop that one, or choose another port"
        else:
            why = f"({where}: {error.strerror}); it wants host:port of this machine"
        raise CannotStart(f"NOTIFIER_BIND cannot be used {why}") from None


class _Server(MPServer):
    """The HTTP server on a socket that listens already.

    What it overrides is how the library hands a socket on where it cannot have the kernel share
    an address; that works everywhere.
    """

    def __init__(
        self, listening: socket.socket, beside: Callable[[], None] | None, **options: Any
    ) -> None:
        super().__init__("app", **options)
        self._listening, self._beside = listening, beside

    def _init_shared_socket(self) -> None:
        self._sso = self._listening
        backlog = (self.backlog,) if sys.platform == "linux" else ()
        holder: Any = SocketHolder  # what it takes differs from what it declares
        self._shd = holder(self._sso.fileno(), False, *backlog)

    def startup(self, spawn_target: Any, target_loader: Any) -> None:
        super().startup(spawn_target, target_loader)  # type: ignore[no-untyped-call]
        if self._beside:
            self._beside()


def serve(
    held: socket.socket,
    bind: Bind,
    build: Callable[[], tuple[Flask, Callable[[], None]]],
    *,
    beside: Callable[[], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT; raises SystemExit with 1 where the child failed.

    `held` is the address, from `hold`. `build` runs in the child: it gives the application and
    what to call at its end; `beside` runs here once the child is there, for threads must not be
    started before a fork. Raises `CannotStart` where somebody else listens there by now.
    """
    parent = os.getpid()
    with told_by_setting(bind):
        held.listen(BACKLOG)

    def load(*_: Any, **__: Any) -> Flask:
        die_with(parent)
        hear_signals()
        silent_lines.watch(bind.port)
        app, stop = build()
        app.wsgi_app = Gate(app.wsgi_app, REQUESTS_AT_ONCE)  # type: ignore[method-assign]
        # The last thing a child process does, after it has answered its last request.
        util.Finalize(None, stop, exitpriority=100)
        return app

    server = _Server(
        held,
        beside,
        address=bind.host,
        port=bind.port,
        backlog=BACKLOG,
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
