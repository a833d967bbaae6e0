"""The request that we make of the auth service, as webhooks of `/openapi.json`.

Both go to the address that NOTIFIER_LINK_URL names. Asked for a link, the answer holds one;
asked for the destination alone, it need not.
"""

from __future__ import annotations

from typing import Final

from notifier.domain.link_faults import LINK_FAULT_WORDS
from notifier.domain.states import Channel
from notifier.web.machines.openapi_parts import SIGNING, Part, content, header, json_body, ref
from notifier.web.machines.schema_words import sentence_of
from notifier.web.machines.schemas import ID, STRING, TIME, Schema, closed, or_null, text, words

_PLAIN: Final = r"[A-Za-z0-9\-._~:/?#\[\]!$&'()*+,;=%]"
_LINK: Final = text(rf"https://[A-Za-z0-9\-.]+(:[0-9]{{1,4}})?([/?#]({_PLAIN}|@)*)?") | {
    "format": "uri",
    "maxLength": 2048,
}
_TIME: Final = TIME | {"maxLength": 40}


def _open(members: dict[str, Schema], *, required: list[str]) -> Schema:
    """An object of the auth service's: further members are not looked at."""
    described = {
        name: {**schema, "description": sentence_of("link", name)}
        for name, schema in members.items()
    }
    return {"type": "object", "properties": described, "required": required}


def _request(purpose: str) -> Schema:
    return closed(
        {
            "reset_request_id": ID,
            "event_id": ID,
            "channel": words(Channel),
            "purpose": {"const": purpose},
        },
        of="link",
    )


def _reason(*known: str) -> Schema:
    return _open({"reason": words(known)}, required=["reason"])


LINK_SCHEMAS: Final[dict[str, Schema]] = {
    "LinkRequest": _request("send"),
    "DestinationRequest": _request("look_up"),
    "LinkGrant": _open(
        {"reset_url": _LINK, "destination": STRING, "expires_at": or_null(_TIME), "name": {}},
        required=["reset_url", "destination"],
    ),
    "DestinationGrant": _open({"destination": STRING}, required=["destination"]),
    "LinkWithheld": _reason("no_destination", "not_permitted"),
    "LinkGone": _reason("used", "superseded", "revoked", "expired"),
}
"""By the name under which the webhooks refer to them."""

_AGAIN: Final = (
    "Anything else, or no answer within 3 s: asked again after 1, 2, 5, then every 10 s until the "
    "stop time. The trail's detail says what it was: " + ", ".join(sorted(LINK_FAULT_WORDS)) + "."
)


def link_webhooks() -> Part:
    """The two webhooks, by name."""
    return {
        "link": {"post": _asked("askForLink", "Asks for the link, just before a send", "Link")},
        "destination": {
            "post": _asked(
                "askForDestination",
                "Asks for the destination alone, to find a message again; sends nothing",
                "Destination",
            )
        },
    }


def _asked(name: str, summary: str, kind: str) -> Part:
    json = "application/json"
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [header(*each, required=True) for each in SIGNING],
        "requestBody": {"required": True, "content": json_body(f"{kind}Request")},
        "security": [{"signature": []}],
        "responses": {
            "200": content("The link lives", json, ref(f"{kind}Grant")),
            "404": content("Nobody to send to on this channel", json, ref("LinkWithheld")),
            "410": content("The reset request is over", json, ref("LinkGone")),
            "default": {"description": _AGAIN},
        },
    }
