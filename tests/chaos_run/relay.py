"""What stands between two processes on the network, and can be taken away.

A relay passes each connection on to one of its backends in turn, and to the next where one
refuses: a plain load balancer. Closed, it refuses connections itself; cut, everything that is
open through it ends with a TCP reset, in whatever moment it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import struct
import threading
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, Self, TypeVar

from tests.ports import port_to_bind

LINGER_NOT = struct.pack("ii", 1, 0)
CHUNK = 65_536
CONNECT_LIMIT_S = 5.0
Result = TypeVar("Result")


class Relay:
    """Passes TCP connections on, from a thread of its own; steered from any other."""

    def __init__(self, backends: Sequence[int] = ()) -> None:
        self.port = port_to_bind()
        self.url = f"http://127.0.0.1:{self.port}"
        self._backends = list(backends)
        self._turn = itertools.count()
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="relay")

    def __enter__(self) -> Self:
        self._thread.start()
        self.reopen()
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def lead_to(self, backends: Sequence[int]) -> None:
        """The ports to pass on to from now on."""
        self._backends = list(backends)

    def reopen(self) -> None:
        """Take connections (again)."""
        self._do(self._listen())

    def refuse(self) -> None:
        """Refuse new connections, as a service that is down; open ones go on."""
        self._do(self._deafen())

    def cut(self) -> int:
        """Reset everything that is open; how many connections that were."""
        return self._do(self._cut())

    # all below runs on the relay's own thread

    def _do(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        if self._server is None:
            listening = socket.create_server(("127.0.0.1", self.port), backlog=256)
            self._server = await asyncio.start_server(self._take, sock=listening)

    async def _deafen(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _cut(self) -> int:
        found = list(self._open)
        for writer in found:
            own = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
            writer.transport.abort()
        return len(found) // 2

    async def _end(self) -> None:
        await self._deafen()
        await self._cut()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with self._noted(writer):
            behind = await self._connect()
            if behind is None:
                return
            with self._noted(behind[1]):
                ways = (self._pump(reader, behind[1]), self._pump(behind[0], writer))
                tasks = [asyncio.ensure_future(way) for way in ways]
                try:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in tasks:
                        task.cancel()

    @contextlib.contextmanager
    def _noted(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        self._open.add(writer)
        try:
            yield
        finally:
            self._open.discard(writer)
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        backends, first = self._backends, next(self._turn)
        for place in range(len(backends)):
            port = backends[(first + place) % len(backends)]
            with contextlib.suppress(OSError):
                async with asyncio.timeout(CONNECT_LIMIT_S):
                    return await asyncio.open_connection("127.0.0.1", port)
        return None

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                writer.write(data)
                await writer.drain()
