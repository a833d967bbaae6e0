"""What may stand in a log line: named fields from one list, bounded, escaped, redacted.

An entry is one physical line of JSON (or of `key=value` on a terminal). A field that is not
in `FIELDS` is dropped and counted. An exception is reduced to its types, its place in our code
and its SQLSTATE: the text of database and HTTP errors quotes values.
"""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import threading
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, TextIO
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

FIELDS: Final = frozenset(
    """
    event level timestamp logger where template exc_type sqlstate request_id endpoint method
    http_status duration_ms notification_id event_id reset_request_id channel prior_state
    next_state receipt_id remaining_s reason provider attempt outcome phase code detail key_id
    sweep rows seconds age_s backlog owner epoch scope part version revision setting signal pid
    port head_count checkpoint digest signature count
    """.split()  # noqa: SIM905 - a list of names reads better without quotes
)
"""Every name that an entry may carry. None of them is for text from a person or a provider."""

TRANSITION_FIELDS: Final = frozenset(
    """
    event level timestamp notification_id reset_request_id channel prior_state next_state
    receipt_id remaining_s reason
    """.split()  # noqa: SIM905 - a list of names reads better without quotes
)

LONGEST: Final = 256
"""Characters of one value; what is longer is cut."""

_LONGEST_CHAIN = 5
_OURS = "notifier"
_WORD = re.compile(r"[A-Za-z_]{1,40}")

REDACTED: Final = "[redacted]"
_NAME = re.compile(r"[a-z][a-z0-9_.]{0,63}")
_SENSITIVE = re.compile(
    r"[a-z][a-z0-9+.-]{1,20}://\S+"
    r"|(?:\"[^\"@]{1,64}\"|[^\s@<>\",;]{1,128})@[^\s@<>\",;]+"
    r"|\+\d[\d ().-]{5,}\d"
    r"|(?:whsec_|Bearer |Basic )\S+",
    re.IGNORECASE,
)

# Of what is sensitive only a signing secret can be spelt with these; most values are ids and
# words, and looking through each for everything took half of the time of an entry.
_WORDLIKE = re.compile(rf"[A-Za-z0-9._-]{{1,{LONGEST}}}")

log: FilteringBoundLogger = structlog.get_logger()


class _Sink:
    """Where entries go and in which form; `None` is standard error as it is when written."""

    def __init__(self) -> None:
        self.stream: TextIO | None = None
        self.as_json = True
        self.dropped = 0
        self.lock = threading.Lock()

    def write(self, entry: Mapping[str, object]) -> None:
        line = json.dumps(entry) if self.as_json else _for_terminal(entry)
        # A reader that went away or a full disk costs the entry, and no request or orderly end.
        with self.lock, suppress(OSError):
            stream = self.stream or sys.stderr
            stream.write(line + "\n")
            stream.flush()


_sink = _Sink()


def configure_logs(stream: TextIO | None = None, *, as_json: bool | None = None) -> None:
    """Send our own entries and those of every library to `stream` (default: standard error).

    `as_json` None means JSON unless the stream is a terminal. Also takes over what Python
    prints of itself: warnings and exceptions that nobody caught.
    """
    _sink.stream = stream
    _sink.as_json = not (stream or sys.stderr).isatty() if as_json is None else as_json
    logging.raiseExceptions = False  # the library would print the arguments of a bad call
    logging.captureWarnings(capture=True)
    root = logging.getLogger()
    root.handlers[:] = [LibraryEntries()]
    root.setLevel(logging.WARNING)
    logging.getLogger(_OURS).setLevel(logging.INFO)
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread


def log_unraisable() -> None:
    """Log what Python can only print, such as an error in a finaliser, by type and place.

    Apart from `configure_logs`, because a test run has its own use for this hook.
    """
    sys.unraisablehook = _unraisable


def server_log_config() -> dict[str, Any]:
    """Make the HTTP server's `log_dictconfig`: its own loggers, through `LibraryEntries`."""
    bridge = {"()": f"{__name__}.LibraryEntries"}
    ours = {"handlers": ["console"], "level": "INFO", "propagate": False}
    return {
        "handlers": {"console": bridge, "access": bridge},
        "loggers": {"_granian": ours, "granian.access": ours | {"level": "ERROR"}},
    }


def dropped_fields() -> int:
    """How many fields were dropped since the start because they are not in `FIELDS`."""
    return _sink.dropped


def transition_event(  # noqa: PLR0913 - the eight facts of a transition, by name
    *,
    notification_id: str,
    reset_request_id: str,
    channel: str | None,
    prior_state: str | None,
    next_state: str | None,
    receipt_id: str | None,
    remaining_s: float,
    reason: str,
) -> None:
    """The log's copy of one row of the trail, written after its transaction has committed."""
    log.info(
        "transition",
        notification_id=notification_id,
        reset_request_id=reset_request_id,
        channel=channel,
        prior_state=prior_state,
        next_state=next_state,
        receipt_id=receipt_id,
        remaining_s=round(remaining_s, 3),
        reason=reason,
    )


def fault_fields(error: BaseException) -> dict[str, str]:
    """What may be said of an exception: its types, outermost first, its place, its SQLSTATE."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain and len(chain) < _LONGEST_CHAIN:
        chain.append(link)
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    fields = {"exc_type": " < ".join(type(one).__name__ for one in chain)}
    states = [s for one in chain if isinstance(s := getattr(one, "sqlstate", None), str)]
    if states:
        fields["sqlstate"] = states[0]
    if error.__traceback__ is not None:
        fields["where"] = _place(error.__traceback__)
    return fields


def _place(trace: TracebackType) -> str:
    """Module and line of the innermost frame of ours, else of the innermost frame."""
    place = ours = ""
    step: TracebackType | None = trace
    while step is not None:
        module = str(step.tb_frame.f_globals.get("__name__", "?"))
        place = f"{module}:{step.tb_lineno}"
        ours = place if module.startswith(_OURS) else ours
        step = step.tb_next
    return ours or place


class LibraryEntries(logging.Handler):
    """Turns the entries of libraries into ours.

    Only the constant part of a library's message is kept, and only where arguments show that
    it is constant: a finished sentence may hold anything. Our own modules write constant
    sentences (the linter sees to it), so theirs are kept, with arguments that are numbers or
    plain words such as a sweep's name.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write the entry; never raises."""
        fields: dict[str, object] = {
            "event": "library_entry",
            "level": record.levelname.lower(),
            "logger": record.name,
            "where": f"{record.module}:{record.lineno}",
        }
        if record.name.partition(".")[0] == _OURS:
            fields["template"] = _own_message(record)
        elif record.args and isinstance(record.msg, str):
            fields["template"] = record.msg
        if record.exc_info and record.exc_info[1] is not None:
            fields |= fault_fields(record.exc_info[1])
        _sink.write(_shape(None, "", fields))


def _own_message(record: logging.LogRecord) -> str:
    given = record.args if isinstance(record.args, tuple) else ()
    try:
        return str(record.msg) % tuple(map(_plain_argument, given)) if given else str(record.msg)
    except (TypeError, ValueError):
        return str(record.msg)


def _plain_argument(argument: object) -> object:
    is_word = isinstance(argument, str) and _WORD.fullmatch(argument)
    return argument if is_word or isinstance(argument, int | float) else REDACTED


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    log.critical("uncaught_exception", **fault_fields(error))


def _uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None:
        log.critical("uncaught_exception", **fault_fields(args.exc_value))


def _unraisable(args: sys.UnraisableHookArgs) -> None:
    if args.exc_value is not None:
        log.error("unraisable_exception", **fault_fields(args.exc_value))


def _reduce_exception(_logger: object, _name: str, entry: MutableMapping[str, Any]) -> Any:
    given = entry.pop("exc_info", None)
    error = given if isinstance(given, BaseException) else sys.exc_info()[1] if given else None
    return {**entry, **fault_fields(error)} if error is not None else entry


def _shape(_logger: object, _name: str, entry: MutableMapping[str, Any]) -> dict[str, Any]:
    name = str(entry.get("event", ""))
    allowed = TRANSITION_FIELDS if name == "transition" else FIELDS
    shaped: dict[str, Any] = {
        "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "event": name if _NAME.fullmatch(name) else "unnamed",
    }
    for key, value in entry.items():
        if key in allowed and key not in shaped:
            shaped[key] = _plain(value)
        elif key not in FIELDS:
            _sink.dropped += 1
    return shaped


def _plain(value: object) -> str | int | float | bool | None:
    match value:
        case None | bool():
            return value
        case int():
            return value if abs(value) < 2**63 else "<int>"
        case float():
            return value if math.isfinite(value) else str(value)
    return _plain_text(value)


def _plain_text(value: object) -> str:
    match value:
        case str() if _WORDLIKE.fullmatch(value) and "whsec_" not in value.lower():
            return str(value)
        case str():
            return _bounded(_SENSITIVE.sub(REDACTED, str(value)[: 4 * LONGEST]))
        case datetime():
            return value.isoformat()
        case UUID():
            return str(value)
    return f"<{type(value).__name__}>"


def _bounded(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _for_terminal(entry: Mapping[str, object]) -> str:
    rest = " ".join(
        f"{key}={json.dumps(value)}"
        for key, value in entry.items()
        if key not in {"timestamp", "event", "level"}
    )
    moment = str(entry["timestamp"])[11:23]
    return f"{moment} {entry.get('level', ''):<8} {entry['event']} {rest}".rstrip()


class _Lines:
    """The end of structlog's chain: it hands over finished entries."""

    def msg(self, **entry: object) -> None:
        _sink.write(entry)

    debug = info = warning = error = critical = exception = log = msg


structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        _reduce_exception,
        _shape,
    ],
    wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    logger_factory=_Lines,
    cache_logger_on_first_use=True,
)
