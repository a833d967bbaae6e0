"""What a log line may hold, whoever writes it."""

from __future__ import annotations

import io
import json
import logging
import logging.config
import os
import sys
import threading
import uuid
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from notifier import logs
from notifier.logs import configure_logs, dropped_fields, log, transition_event

CANARIES = [
    "ann.o'neill+tag@example.test",
    '"ann smith"@example.test',
    "+44 7700 900123",
    "+447700900123",
    "https://app.example.test/reset?t=5f1e",
    "whsec_c2VjcmV0",
    "Bearer abc.def",
]


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = (root.handlers[:], root.level, sys.excepthook, threading.excepthook)
    written = io.StringIO()
    configure_logs(written, as_json=True)
    structlog.contextvars.clear_contextvars()
    yield written
    root.handlers[:], root.level, sys.excepthook, threading.excepthook = before
    logging.captureWarnings(capture=False)
    logging.raiseExceptions = True


def only(stream: io.StringIO) -> dict[str, Any]:
    (line,) = stream.getvalue().splitlines()
    entry: dict[str, Any] = json.loads(line)
    return entry


def test_a_field_that_is_not_listed_is_dropped_and_counted(stream: io.StringIO) -> None:
    before = dropped_fields()
    log.info("tick", sweep="claim", address="ann@example.test", token="t")
    assert "address" not in only(stream)
    assert only(stream)["sweep"] == "claim"
    assert dropped_fields() == before + 2


def test_an_event_name_that_is_a_sentence_is_not_written(stream: io.StringIO) -> None:
    log.info("mail to ann went wrong")
    assert only(stream)["event"] == "unnamed"


@pytest.mark.parametrize("canary", CANARIES)
def test_p7_what_looks_like_a_secret_or_a_person_is_redacted_in_any_field(
    stream: io.StringIO, canary: str
) -> None:
    log.info("tick", reason=f"refused: {canary}", detail=canary)
    assert canary not in stream.getvalue()
    assert only(stream)["detail"] in {logs.REDACTED, f"Bearer {logs.REDACTED}"}


@pytest.mark.parametrize("written", ["evt-1", "provider_accepted", "A:b.c_d-e" * 14])
def test_ids_and_words_stay_as_they_are(stream: io.StringIO, written: str) -> None:
    log.info("tick", event_id=written)
    assert only(stream)["event_id"] == written


def test_values_have_plain_types_and_a_bound(stream: io.StringIO) -> None:
    known = uuid.uuid4()
    log.info(
        "tick",
        reason="x" * 1_000_000,
        notification_id=known,
        seconds=float("nan"),
        rows=10**5000,
        detail={"a": "canary"},
        age_s=1.5,
        phase=datetime(2026, 1, 1, tzinfo=UTC),
    )
    entry = only(stream)
    assert len(entry["reason"]) == logs.LONGEST
    assert (entry["notification_id"], entry["seconds"]) == (str(known), "nan")
    assert (entry["rows"], entry["detail"], entry["age_s"]) == ("<int>", "<dict>", 1.5)
    assert entry["phase"].startswith("2026-01-01T")


@given(text=st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("as_json", [True, False])
def test_an_entry_is_one_physical_line_of_printable_ascii(
    stream: io.StringIO, text: str, as_json: bool
) -> None:
    configure_logs(stream, as_json=as_json)
    stream.seek(0)
    stream.truncate()
    log.info(text or "tick", reason=text, event_id=f"{text}\r\n{{fake}}\x85\u2028\x1b[31m")
    (line,) = stream.getvalue().splitlines()
    assert line.isascii()
    assert line.isprintable()


def provoked() -> psycopg.Error:
    error = psycopg.errors.UniqueViolation("Key (mask)=(canary) already exists.")
    error.__cause__ = ValueError("canary")
    return error


def test_p7_an_exception_is_reduced_to_types_place_and_sqlstate(stream: io.StringIO) -> None:
    try:
        raise provoked()
    except psycopg.Error:
        log.exception("failed")
    entry = only(stream)
    assert "canary" not in stream.getvalue()
    assert entry["exc_type"] == "UniqueViolation < ValueError"
    assert entry["where"].startswith("tests.unit.test_logs:")
    assert entry["sqlstate"] == "23505"


@pytest.mark.parametrize(
    "name", ["werkzeug", "apscheduler.executors", "sqlalchemy.pool", "psycopg"]
)
def test_p7_libraries_keep_the_constant_part_of_a_message_alone(
    stream: io.StringIO, name: str
) -> None:
    logger = logging.getLogger(name)
    try:
        raise provoked()
    except psycopg.Error:
        logger.exception("job %s failed", "canary")
    entry = only(stream)
    assert (entry["logger"], entry["template"]) == (name, "job %s failed")
    assert entry["exc_type"] == "UniqueViolation < ValueError"
    logger.error("finished sentence with canary")
    logger.error("broken %d", "canary")
    logger.error(ValueError("canary"))
    assert "canary" not in stream.getvalue()
    assert len(stream.getvalue().splitlines()) == 4


def test_our_own_sentences_keep_plain_words_and_numbers(stream: io.StringIO) -> None:
    ours = logging.getLogger("notifier.sweeps.runner")
    ours.info("sweep %s failed: %s, term %d", "claim", "OperationalError", 7)
    ours.error("could not start to lead")
    ours.error("mail to %s: %d", "ann@example.test", "5f1e")
    templates = [json.loads(line)["template"] for line in stream.getvalue().splitlines()]
    assert templates == [
        "sweep claim failed: OperationalError, term 7",
        "could not start to lead",
        "mail to %s: %d",
    ]
    logging.getLogger("notifierx").error("canary")
    assert "canary" not in stream.getvalue()


def test_p7_warnings_and_uncaught_exceptions_take_the_same_way(
    stream: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=False)
        logging.captureWarnings(capture=True)
        warnings.warn("canary", stacklevel=1)

    def fail() -> None:
        raise provoked()

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    sys.excepthook(psycopg.Error, provoked(), None)
    assert len(stream.getvalue().splitlines()) == 3
    out, err = capfd.readouterr()
    assert "canary" not in stream.getvalue() + out + err


def test_a_transition_is_one_entry_of_eight_facts_and_no_more(stream: io.StringIO) -> None:
    structlog.contextvars.bind_contextvars(request_id="req", event_id="evt")
    before = dropped_fields()
    transition_event(
        notification_id="n",
        reset_request_id="r",
        channel="email",
        prior_state="queued",
        next_state="claimed",
        receipt_id=None,
        remaining_s=12.34567,
        reason="claimed",
    )
    entry = only(stream)
    assert entry.pop("timestamp")
    assert entry == {
        "event": "transition",
        "level": "info",
        "notification_id": "n",
        "reset_request_id": "r",
        "channel": "email",
        "prior_state": "queued",
        "next_state": "claimed",
        "receipt_id": None,
        "remaining_s": 12.346,
        "reason": "claimed",
    }
    assert dropped_fields() == before


def test_the_http_servers_own_loggers_take_the_same_way(stream: io.StringIO) -> None:
    config = logs.server_log_config() | {"version": 1, "disable_existing_loggers": False}
    logging.config.dictConfig(config)
    server = logging.getLogger("_granian")
    server.info("Listening at: %s", "canary")
    server.handlers.clear()
    assert only(stream)["template"] == "Listening at: %s"


def test_threads_do_not_cut_into_each_others_lines(stream: io.StringIO) -> None:
    def write() -> None:
        for _ in range(200):
            log.info("tick", reason="x" * 200)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([json.loads(line) for line in stream.getvalue().splitlines()]) == 1600


def test_a_log_that_nobody_reads_any_more_stops_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    unread = os.fdopen(writing, "w", buffering=1)
    configure_logs(unread)

    for _ in range(5_000):  # more than any buffer of it takes
        log.info("request", http_status=200)

    with pytest.raises(BrokenPipeError):
        unread.close()
