"""`POST /callbacks/{provider}/...`: what providers tell us.

Verified over the raw bytes before anything else is looked at; answered once it is durable. A
repeat, an unknown reference and a callback that is about nothing of ours are answered 2xx too:
asking the provider to send them again would help nobody. So is one that cannot be read, but it
is counted and logged: if many come, what became of messages is no longer learnt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from flask import Blueprint, Response, request

from notifier.logs import log
from notifier.metrics import Metrics, SignatureFault
from notifier.ports.asking import (
    Callback,
    CallbackRefused,
    CallbackUnreadable,
    ProviderReceipt,
    ReceiptParser,
)
from notifier.web.documents import CALLBACK_LIMIT, raw_body
from notifier.web.problems import Code, Problem

LONGEST_PATH: Final = 512


@dataclass(frozen=True, slots=True)
class CallbackServices:
    """What the callbacks call. `public_url` is the address that providers were given.

    `refused` is told the provider's name at each callback that was not believed.
    """

    public_url: str
    metrics: Metrics
    parsers: Mapping[str, ReceiptParser]
    take: Callable[[Sequence[ProviderReceipt]], None]
    refused: Callable[[str], None] = lambda _: None
    unreadable: Callable[[str], None] = lambda _: None


def callbacks_blueprint(services: CallbackServices) -> Blueprint:
    """The callbacks of every configured provider."""
    blueprint = Blueprint("callbacks", __name__)

    @blueprint.post("/callbacks/<provider>/")
    @blueprint.post("/callbacks/<provider>/<path:_rest>")
    def callback(provider: str, _rest: str = "") -> Response:
        parser = services.parsers.get(provider)
        if parser is None or len(request.path) > LONGEST_PATH:
            raise Problem(Code.NOT_FOUND)
        body = raw_body(request, CALLBACK_LIMIT)
        given = Callback(public_address(services.public_url), dict(request.headers), body)
        try:
            receipts = parser.parse(given)
        except CallbackRefused:
            services.metrics.signature_refused(provider, SignatureFault.SIGNATURE)
            services.refused(provider)
            raise Problem(Code.SIGNATURE_INVALID) from None
        except CallbackUnreadable:
            services.metrics.receipt_unreadable(provider)
            services.unreadable(provider)
            log.warning("callback_unreadable", provider=provider)
            return Response(status=204)
        services.take(receipts)
        return Response(status=204)

    return blueprint


def public_address(public_url: str) -> str:
    """The address that was called, as the provider knows it: never from a header's host."""
    query = request.query_string.decode("latin-1")
    return f"{public_url}{request.path}{'?' + query if query else ''}"
