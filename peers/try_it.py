"""The ready-made `curl`: signs one event with openssl in the shell and posts it.

A signature is good for 300 seconds only, so what is printed signs anew each time it is used.
The key is read from a file: neither the terminal nor the shell's history holds it.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from peers.events import EVENTS_PATH

TICKET = "TCK-2001"


def steps(base_url: str, key_file: Path) -> list[str]:
    """The shell commands, one a line; the key file holds the secret's bytes as hex digits."""
    body = (
        '\'{"event_id":"evt-\'$id\'","reset_request_id":"rr-\'$id\'","account_id":"acc-try-it",'
        f'"ticket_id":"{TICKET}","requested_at":"\'$now\'","expires_at":"\'$end\'",'
        '"template":{"id":"password-reset","revision":"1"},"policy":{"mode":"email_then_sms",'
        '"inputs":{"sms_consent":true,"region":"GB"}}}\''
    )
    return [
        "id=try-$(date +%s)-$RANDOM",
        "now=$(date -u +%FT%TZ)",
        "end=$(date -u -d '+10 minutes' +%FT%TZ)",
        f"body={body}",
        "ts=$(date +%s)",
        (
            'sig=$(printf %s "msg-$id.$ts.$body" | openssl dgst -sha256 -mac HMAC'
            f' -macopt hexkey:"$(cat {shlex.quote(str(key_file))})" -binary | base64)'
        ),
        (
            f"curl -sS {base_url}{EVENTS_PATH} -H 'content-type: application/json'"
            ' -H "webhook-id: msg-$id" -H "webhook-timestamp: $ts"'
            ' -H "webhook-signature: v1,$sig" --data-binary "$body"'
        ),
    ]


def one_line(base_url: str, key_file: Path) -> str:
    """The same for pasting into a terminal."""
    return "; ".join(steps(base_url, key_file))


def write_script(path: Path, base_url: str, key_file: Path) -> None:
    """The same as a script of its own, which also says where to look."""
    lines = [
        "#!/usr/bin/env bash",
        "# Posts one signed reset event to the app that `make run` started.",
        "set -euo pipefail",
        *steps(base_url, key_file),
        f"printf '\\n\\nNow find it in the browser: %s\\n' \"{base_url}/t/{TICKET}\"",
    ]
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o700)
