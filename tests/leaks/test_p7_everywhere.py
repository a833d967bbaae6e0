"""Every path with canaries, then every byte that is left of it (P7)."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from notifier.store.embedded import EmbeddedServer, ensure_running
from peers.events import Event
from tests.leaks import admissions, faults, hostile, visits
from tests.leaks.search import Haystack, files, find, told
from tests.leaks.stage import Stage, Watch, connect, dump, stage
from tests.leaks.wire import Wire


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the database's own user may pass through."""
    with tempfile.TemporaryDirectory(prefix="notifier-leaks-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


def test_p7_no_secret_and_no_address_is_anywhere_after_every_path(folder: Path) -> None:
    with stage(folder) as played:
        server = ensure_running(folder / "data")
        try:
            played.database_url = server.url
            with Watch(played, server.superuser_url) as watch:
                wires = play(played, server)
            at_rest(played, server)
        finally:
            server.stop()
        haystacks = [wire.told() for wire in wires] + watch.haystacks()
        haystacks += [*played.leftovers(), *files(folder / "data")]
        assert any("pg_wal" in each.name for each in haystacks)
        found = find(played.canaries.needles(), haystacks)
        cookies = [wire.kept() for wire in wires]
        found += find(played.canaries.needles(sessions=False), cookies)
        assert not found, told(found)
        each_line_is_an_entry(played)


def play(played: Stage, server: EmbeddedServer) -> list[Wire]:
    """Everything that can happen to a canary; who was answered what."""
    played.start()
    machine = Wire("a machine", played.port)
    with connect(server.url) as connection:
        connection.execute(faults.QUOTE_ALL)
        events = list(
            (hostile.events_with_odd_peers(played) | admissions.sound_events(played)).values()
        )
        for event in events:
            assert played.post(event).status == 202
        admissions.refuse_documents(played)
        admissions.refuse_requests(played, machine)
        states = faults.settle(connection, events)
        events.append(open_badly(played, connection))
        faults.fail_admissions(played, connection)
        events += faults.fail_workers(played, connection, machine)
        states |= faults.settle(connection, events)
        hostile.refuse_sign_in(played)
        commands = [played.flask("doctor"), played.flask("halts"), played.flask("users", "list")]
        wires = look(played, connection, events)
        admissions.read_everything(played, machine, events)
        ended = [command() for command in commands]
        assert ended == [1, 0, 0], played.said[-3:]
    prove_use(played, states)
    assert played.app is not None
    played.app.close()
    return [machine, *wires]


def open_badly(played: Stage, connection: faults.Connection) -> Event:
    """A message that finds a refusal in each phase before anybody is named, then leaves."""
    hostile.opening_refusals(played)
    event = played.event("opening")
    assert played.post(event).status == 202
    assert faults.settle(connection, [event]) == {event["event_id"]: "accepted"}
    return event


def look(played: Stage, connection: faults.Connection, events: list[Event]) -> list[Wire]:
    """Each role looks at everything, and the support agent also at what breaks."""
    rows = connection.execute(
        "SELECT notice_id FROM notice WHERE event_id = ANY(%s)",
        [[event["event_id"] for event in events]],
    )
    ids = [str(row["notice_id"]) for row in rows]
    wires = visits.signed_in(played)
    for wire in wires:
        visits.look_around(wire, events, ids[:30] if wire is wires[0] else ids[:6])
        visits.search(played, wire)
    visits.break_pages(played, connection, wires[0], ids[0])
    return wires


def prove_use(played: Stage, states: dict[str, str]) -> None:
    """The canaries were really sent, asked for and refused: the search is not about nothing."""
    canaries = played.canaries
    mails = played.inbox.messages()
    sent_to = {recipient for mail in mails for recipient in mail["recipients"]}
    assert canaries.address() in sent_to
    assert canaries.address("hang-after-dot") in sent_to
    assert any("@xn--" in each for each in sent_to)
    to_canaries = [mail for mail in mails if canaries.token in mail["text"]]
    assert len(to_canaries) > 20
    assert all(canaries.name in mail["text"] for mail in to_canaries)
    assert {"accepted", "unknown", "failed", "suppressed", "canceled"} <= set(states.values()), (
        states
    )


def at_rest(played: Stage, server: EmbeddedServer) -> None:
    """Bring everything into files: dirty pages, and the dump that an operator might keep."""
    with connect(server.superuser_url) as connection:
        connection.execute("CHECKPOINT")
        shown = connection.execute("SHOW log_parameter_max_length_on_error").fetchone()
        assert shown == {"log_parameter_max_length_on_error": "0"}
    played.said.append(dump(server.bin_dir, server.url))
    environment = Path(f"/proc/{server.pid}/environ").read_bytes()
    played.said.append(Haystack("the database's environment", environment))


def each_line_is_an_entry(played: Stage) -> None:
    """Nothing from outside began a line of its own in the log (B113)."""
    logs = [path.read_text() for path in (played.folder / "logs").iterdir()]
    lines = [line for log in logs for line in log.split("\n") if line]
    assert len(lines) > 100
    for line in lines:
        assert line.startswith("pid ") or json.loads(line)["event"], line
