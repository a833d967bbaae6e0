"""A threaded TCP server on loopback that can really be switched off.

The standard one goes on serving connections that are already open after it was closed; a
peer that is down must not.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from typing import Any


class LoopbackServer(socketserver.ThreadingTCPServer):
    """Keeps its open connections so that `stop` can cut them."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, port: int, handler: type[socketserver.BaseRequestHandler]) -> None:
        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()
        super().__init__(("127.0.0.1", port), handler)
        self.port: int = self.server_address[1]
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    def start(self) -> None:
        """Begin to take connections."""
        self._thread.start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take note of the connection, then serve it in a thread."""
        with self._open_lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection that has been served."""
        with self._open_lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that went away is no fault of the peer; anything else is shown."""
        with contextlib.suppress(OSError):
            super().handle_error(request, client_address)

    def stop(self) -> None:
        """Stop listening and cut every open connection."""
        self.shutdown()
        self.server_close()
        with self._open_lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()
