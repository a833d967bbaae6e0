"""Live, ready, measured: what a platform and a monitor ask."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from http import HTTPStatus

from flask import Blueprint, Response, request
from prometheus_client import CONTENT_TYPE_LATEST

from notifier.logs import fault_fields, log
from notifier.web.machines.answers import json_answer, require_token
from notifier.web.security import is_asked_from_here
from notifier.web.services import MachineServices, PartReport, Scope


def health_blueprint(services: MachineServices) -> Blueprint:
    """`/healthz`, `/readyz` and `/metrics` over `services`."""
    blueprint = Blueprint("health", __name__)
    looks = SharedLook(services.readiness)

    # Strict, so that a proxy which keeps one spelling to itself keeps all of them.
    @blueprint.get("/healthz", strict_slashes=True)
    def live() -> Response:
        return json_answer({"live": True})

    @blueprint.get("/readyz", strict_slashes=True)
    def ready() -> Response:
        parts = looks.within(services.readiness_limit_s)
        is_ready = all(part.ok for part in parts)
        body = {
            "ready": is_ready,
            "parts": [{"part": p.part, "ok": p.ok, "detail": p.detail} for p in parts],
        }
        return json_answer(body, HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE)

    @blueprint.get("/metrics", strict_slashes=True)
    def metrics() -> Response:
        if not (services.asked_from_here_alone and is_asked_from_here(request)):
            require_token(services, Scope.METRICS)
        headers = {"Cache-Control": "no-store"}
        return Response(services.metrics.text(), 200, headers, content_type=CONTENT_TYPE_LATEST)

    return blueprint


class SharedLook:
    """Looks at readiness in a thread of its own, so that a probe never waits for a full pool.

    Probes that come while a look is under way share it: however long one hangs, there is one.
    """

    def __init__(self, look: Callable[[], Sequence[PartReport]]) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._running: _Look | None = None

    def within(self, limit_s: float) -> Sequence[PartReport]:
        """What a look found, or after `limit_s` seconds that it found nothing in time."""
        with self._lock:
            if self._running is None or self._running.done.is_set():
                self._running = _Look(self._look)
            look = self._running
        if look.done.wait(limit_s):
            return look.found
        return [PartReport("readiness", ok=False, detail=f"no answer within {limit_s:g} s")]


class _Look:
    def __init__(self, look: Callable[[], Sequence[PartReport]]) -> None:
        self.done = threading.Event()
        self.found: Sequence[PartReport] = ()
        threading.Thread(target=self._run, args=(look,), name="readiness", daemon=True).start()

    def _run(self, look: Callable[[], Sequence[PartReport]]) -> None:
        try:
            self.found = look()
        except Exception as error:  # noqa: BLE001 - whatever it is, this part is not ready
            log.warning("readiness_failed", **fault_fields(error))
            self.found = [PartReport("readiness", ok=False, detail=type(error).__name__)]
        finally:
            self.done.set()
