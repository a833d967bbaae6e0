"""`docs/reference/settings.md`, made from the settings as the code has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic.fields import FieldInfo

from notifier.setting_values import SCOPES, Bind
from notifier.setting_words import DEFAULTS, MEANINGS
from notifier.settings import NEEDED_BY_OIDC, NEEDED_BY_PROVIDER, PREFIX, Settings

HEAD: Final = """\
# Settings

All settings are variables of the environment, read once at the start. One that is empty or only
spaces counts as not set. Each error at the start names the variable and what it wants, never its
value; all errors are told at once. `flask doctor` then tries what they lead to, and sends nothing.
[What it cannot start without](../how-to/operate.md) is a short list.

*Written by `python -m tests.guards.documents`; a test compares it with the settings.*
"""
TOKENS: Final = f"""\

## A token for a program

`GET /v1/reset-events/…`, `/v1/tickets/…` and, where the product is not bound to loopback,
`/metrics` ask for a bearer token. Only its SHA-256 is in the settings. The scopes are
{", ".join(f"`{each}`" for each in sorted(SCOPES))}.

```sh
flask tokens new help-desk --scope status --scope tickets
curl -H "Authorization: Bearer $TOKEN" "$URL/v1/tickets/TCK-1"
```

The command prints a token, once, and its entry for `{PREFIX}API_TOKENS`; it keeps neither. A
token made elsewhere does as well, if it is random; its entry is the name, the scopes and the
hash, with colons between:

```sh
TOKEN=$(openssl rand -hex 32)
echo "help-desk:status+tickets:$(printf %s "$TOKEN" | sha256sum | cut -d ' ' -f 1)"
```

Several entries are separated by commas. The name stands on the trail where the token linked a
ticket. To change a token, add the new one under another name, restart, let the program switch,
then drop the old one.

## The secrets

```sh
echo "whsec_$(openssl rand -base64 32)"   # {PREFIX}INGEST_SECRETS, {PREFIX}LINK_SECRET
openssl rand -hex 32   # {PREFIX}SECRET_KEY, {PREFIX}FINGERPRINT_KEY, {PREFIX}CHECKPOINT_KEY
```
"""


def rows() -> Iterator[tuple[str, ...]]:
    """One setting each: its variable, what it is for, its form, its default, when it must be."""
    for name, field in Settings.model_fields.items():
        yield (
            f"`{PREFIX}{name.upper()}`",
            MEANINGS[name],
            field.description or "",
            default_of(name, field),
            "; ".join(needed_when(name, field)),
        )


def default_of(name: str, field: FieldInfo) -> str:
    """What goes where it is not set; nothing where it must be."""
    if field.is_required():
        return ""
    if name in DEFAULTS:
        return DEFAULTS[name]
    match field.default:
        case None | () | "":
            return "none"
        case Bind(host=host, port=port):
            return f"`{host}:{port}`"
        case Path() as path:
            return f"`./{path}`"
        case value:
            return f"`{value}`"


def needed_when(name: str, field: FieldInfo) -> Iterator[str]:
    """When the product does not start without it."""
    if field.is_required():
        yield "always"
    providers = [each for each, names in NEEDED_BY_PROVIDER.items() if name.upper() in names]
    if providers:
        yield f"with {', '.join(f'`{each}`' for each in providers)}"
    if name.upper() in NEEDED_BY_OIDC:
        yield f"with `{PREFIX}OIDC_ISSUER`"
    if name == "oidc_issuer":
        yield f"with any other `{PREFIX}OIDC_…`"
