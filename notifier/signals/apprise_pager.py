"""Pages through Apprise: chat, mail, PagerDuty, webhooks and the rest of what it knows.

The library costs some 45 megabytes and three seconds when it first looks at an address, so it is
loaded by the first page. Its own log is shut: it quotes addresses, and they carry tokens.
"""

from __future__ import annotations

import logging
import re
import threading
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from notifier.ports.paging import Page, Urgency

if TYPE_CHECKING:
    from pydantic import SecretStr

CONNECT_S: Final = 5.0
ANSWER_S: Final = 8.0
NOT_UNDERSTOOD: Final = "not an Apprise address; a web hook is json://host"
"""What is said of an address that would page nobody."""

_WITH_HOST: Final = frozenset(
    {"json", "jsons", "xml", "xmls", "form", "forms", "http", "https", "mailto", "mailtos"}
)
"""Kinds whose host is one; others write a token in its place."""
_KIND: Final = re.compile(r"([a-z][a-z0-9+-]{0,15})://", re.IGNORECASE)
_HOST: Final = re.compile(r"(?:[^@/?#]*@)?([a-z0-9.-]+(?::\d{1,5})?)(?:[/?#][^@]*)?", re.IGNORECASE)
_loading = threading.Lock()


class AppriseReceiver:
    """One Apprise address."""

    def __init__(self, url: SecretStr, name: str | None = None) -> None:
        self._url = url
        self._name = name or name_of(url.get_secret_value())

    def __repr__(self) -> str:
        return f"AppriseReceiver({self._name})"

    @property
    def name(self) -> str:
        """What people call it: its kind, and its host where that holds no secret."""
        return self._name

    def take(self, page: Page) -> str | None:
        """Send it; the word for the trouble is `not_an_address`, `not_taken` or an error's type."""
        try:
            return self._take(page)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything; its text may quote
            return type(error).__name__

    def is_understood(self) -> bool:
        """Whether Apprise knows what to do with the address; nobody is asked."""
        return bool(self._receiver(_load()))

    def _receiver(self, apprise: Any) -> Any:
        asset = apprise.AppriseAsset(http_redirects=False, app_id="reset-notice")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return apprise.Apprise.instantiate(
                self._url.get_secret_value(), asset=asset, suppress_exceptions=True
            )

    def _take(self, page: Page) -> str | None:
        apprise = _load()
        receiver = self._receiver(apprise)
        if not receiver:
            return "not_an_address"
        receiver.socket_connect_timeout = min(receiver.socket_connect_timeout, CONNECT_S)
        receiver.socket_read_timeout = min(receiver.socket_read_timeout, ANSWER_S)
        kind = apprise.NotifyType
        taken = receiver.notify(
            body=page.text,
            title=page.title,
            notify_type=kind.FAILURE if page.urgency is Urgency.TROUBLE else kind.SUCCESS,
            body_format=apprise.NotifyFormat.TEXT,
        )
        return None if taken else "not_taken"


def receivers_of(urls: Iterable[SecretStr]) -> Sequence[AppriseReceiver]:
    """The receivers of the configured addresses; one that stands twice is told once."""
    return tuple(_named(dict.fromkeys(urls)))


def name_of(url: str) -> str:
    """An address as it may be shown: `jsons://hooks.example.com`, `slack`."""
    found = _KIND.match(url)
    if found is None:
        return "unknown"
    kind = found[1].lower()
    host = _HOST.fullmatch(url, found.end())
    return f"{kind}://{host[1].lower()}" if kind in _WITH_HOST and host else kind


def _named(urls: Iterable[SecretStr]) -> Iterator[AppriseReceiver]:
    """Each by a name of its own; several of one name are numbered in their order."""
    seen: Counter[str] = Counter()
    for url in urls:
        name = name_of(url.get_secret_value())
        seen[name] += 1
        yield AppriseReceiver(url, name if seen[name] == 1 else f"{name} ({seen[name]})")


def _load() -> Any:
    with _loading, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import apprise  # noqa: PLC0415 - see the module's docstring

        own = logging.getLogger("apprise")
        own.handlers[:] = [logging.NullHandler()]
        own.propagate = False
        own.setLevel(logging.CRITICAL + 1)
        return apprise
