"""Asks the auth service a question that can change nothing: for `flask doctor`.

It is a signed look-up for the nil UUID (RFC 9562), an id that nobody is given: no link is asked
for, no request is used, nobody's destination is told. So the address, the line, our signature
and the form of an answer are tried as they are in earnest; what a known id gets is not.
"""

from __future__ import annotations

from contextlib import closing
from typing import Final
from uuid import UUID

from notifier.domain.call_limits import LINK_LIMIT_S
from notifier.domain.destinations import check_destination
from notifier.domain.link_faults import LINK_FAULT_WORDS, LinkFault
from notifier.domain.states import Channel
from notifier.links.auth_service import AuthService
from notifier.ports.links import LinkRequest, LinkSource, LinkUnavailable
from notifier.settings import Settings

NOBODY: Final = str(UUID(int=0))
QUESTION: Final = LinkRequest(NOBODY, NOBODY, Channel.EMAIL, "look_up")

_ABOUT_THE_ID: Final = frozenset(
    {LinkFault.HTTP_400, LinkFault.HTTP_404, LinkFault.HTTP_409, LinkFault.HTTP_410,
     LinkFault.HTTP_422}
)  # fmt: skip
"""What a service that works may say of an id that it does not know."""

_UNSIGNED: Final = frozenset({LinkFault.HTTP_401, LinkFault.HTTP_403})


def probe(source: LinkSource) -> tuple[bool, str]:
    """Whether link requests are answered, and in a few words how; names the settings at fault."""
    match source.ask(QUESTION, LINK_LIMIT_S):
        case LinkUnavailable(fault=fault, status=status) if fault in _ABOUT_THE_ID:
            return True, f"answers; {status} to an id that does not exist, as a wrong path may too"
        case LinkUnavailable(fault=fault):
            names = "NOTIFIER_LINK_URL"
            if fault in _UNSIGNED:
                names += " or NOTIFIER_LINK_SECRET"
            return False, f"{names}: {LINK_FAULT_WORDS[fault]} ({fault})"
        case _:
            return True, "answers, and takes our signature"


def probe_auth_service(settings: Settings) -> tuple[bool, str]:
    """The same, of the service that the settings name."""
    secret = settings.link_secret.key
    with closing(AuthService(settings.link_url, secret, check_destination)) as source:
        return probe(source)
