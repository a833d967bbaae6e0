"""The bare admission statement, run by pgbench: what the database alone would admit.

The script is the product's own statement with the values of a real event. Ids come from a
variable that counts, so that every run of it inserts; everything else is a parameter, so that
the server plans what it plans for the product.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from notifier.assembly.application import compose
from notifier.domain.event import Transport
from notifier.domain.event_document import parse_event
from notifier.flow.wording import event_rules
from notifier.settings import load_settings
from notifier.store.database import SESSION_LIMITS
from notifier.store.ledger.admission import ADMIT
from peers.events import build_event
from tests.bench.ground import Ground

CLIENTS = 16
COUNTED = "lpad(:n::text, 32, '0')::uuid"
"""Rises with time, as the product's own ids do."""
IDS = {"event_id", "idempotency_key", "reset_request_id", "account_id", "transport_id"}
FINGERPRINTS = {"email_fingerprint", "sms_fingerprint"}
TYPES = {bool: "boolean", int: "integer", datetime: "timestamptz", timedelta: "interval"}
PARAMETER = re.compile(r"%\((\w+)\)s")
QUOTED_COLON = re.compile(r"'[^']*:[A-Z][^']*'")
"""A quoted text that pgbench would take for the name of a variable."""
RATE = re.compile(r"tps = ([\d.]+)")


def per_second(ground: Ground, each: int) -> float:
    """Admissions a second by the database alone, for 16 clients that make `each` of them."""
    script, variables = pgbench_script(event_values(ground))
    path = ground.folder / "admit.sql"
    path.write_text(script)
    first = int(time.time() * 1000) * 1000
    defined = [f"-D{name}={value}" for name, value in variables.items()]
    limits = SESSION_LIMITS | {"search_path": "notifier"}
    options = " ".join(f"-c {name}={value}" for name, value in limits.items())
    command = [str(ground.bin_dir / "pgbench"), "-n", "-M", "prepared", f"-f{path}", f"-Dn={first}"]
    command += [f"-c{CLIENTS}", "-j1", f"-t{each}", *defined, ground.url]
    done = subprocess.run(
        command,
        env=os.environ | {"PGOPTIONS": options},
        capture_output=True,
        text=True,
        check=False,
    )
    said = RATE.search(done.stdout)
    assert done.returncode == 0, done.stderr
    assert said, done.stdout
    return float(said[1])


def event_values(ground: Ground) -> dict[str, Any]:
    """The parameters of the statement for an event like those that the load posts."""
    parts = compose(load_settings(ground.settings()), ground.url)
    try:
        shelf = parts.shelf
        event = parse_event(build_event(life_s=86_000.0), datetime.now(UTC), event_rules(shelf))
        return parts.admission._values(event, Transport("msg", "key", "request"), bytes(32))
    finally:
        parts.web.close()
        parts.work.close()


def pgbench_script(values: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The script, and the variables that it needs beside `n`."""
    variables: dict[str, str] = {}
    spelt = {name: _spelt(name, value, variables) for name, value in values.items()}
    quoted = QUOTED_COLON.sub(lambda found: _spelt("format", found[0][1:-1], variables), ADMIT)
    statement = PARAMETER.sub(lambda found: spelt[found[1]], quoted).strip()
    return f"\\set n :n + 100 + :client_id - (:n % 100)\n{statement};\n", variables


def _spelt(name: str, value: object, variables: dict[str, str]) -> str:
    if name in IDS:
        return ":n::text"
    if isinstance(value, UUID):
        return COUNTED
    if value is None:
        return "NULL"
    if name in FINGERPRINTS:
        return "sha256(:n::text::bytea)"
    kind = next((kind for each, kind in TYPES.items() if isinstance(value, each)), "text")
    if isinstance(value, bytes):
        kind, value = "bytea", "\\x" + value.hex()
    if isinstance(value, timedelta):
        value = f"{value.total_seconds()} s"
    variables[name] = str(value)
    return f":{name}::{kind}"
