"""The ping that an outside monitor waits for while all is well here."""

from __future__ import annotations

import ssl
import threading
from typing import TYPE_CHECKING, Final

import httpcore2

from notifier.logs import log
from notifier.timed_http import HttpTroubleError, TimedHttp

if TYPE_CHECKING:
    from pydantic import SecretStr

EVERY_S: Final = 30.0
LIMIT_S: Final = 5.0
MOST_BYTES: Final = 65_536


class Deadman:
    """Pings one address; the address is a secret, because whoever has it can keep it quiet."""

    def __init__(self, url: SecretStr) -> None:
        self._url = httpcore2.URL(url.get_secret_value())
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Ping once, in a thread of its own; not while the last ping is still under way."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self.ping, name="deadman", daemon=True)
            self._thread.start()

    def ping(self) -> bool:
        """Ask once, follow nothing; whether the answer was a success."""
        client = TimedHttp(ssl.create_default_context(), "GET")
        try:
            answer = client.request("GET", self._url, {}, limit_s=LIMIT_S, max_bytes=MOST_BYTES)
        except HttpTroubleError as error:
            log.warning("deadman_not_pinged", code=error.what)
            return False
        finally:
            client.close()
        if answer.status >= 300:
            log.warning("deadman_not_pinged", http_status=answer.status)
        return answer.status < 300
