"""The product's counters and gauges, in a registry of their own.

Labels come from closed vocabularies only: never an id, a path, an address or a provider's
own words. A value outside its vocabulary is counted as `other`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from notifier.domain.link_faults import LinkFault
from notifier.domain.outcome import OutcomeKind
from notifier.domain.reasons import Reason
from notifier.domain.receipts import ReceiptStatus
from notifier.domain.states import Channel, DeliveryState
from notifier.logs import dropped_fields, fault_fields, log

OTHER: Final = "other"
UNREADABLE: Final = "unreadable"
"""Stands among the statuses of receipts for what should have become one."""


SIGN_IN_WAYS: Final = frozenset({"password", "link", "oidc"})
SIGN_IN_OUTCOMES: Final = frozenset({"done", "refused"})


class AdmissionCount(StrEnum):
    """What became of one post to the admission endpoint."""

    ADMITTED = "admitted"
    REPLAYED = "replayed"
    CONFLICT = "conflict"
    REFUSED = "refused"
    RATE_LIMITED = "rate_limited"
    NOT_ADMITTED = "not_admitted"


class SignatureFault(StrEnum):
    """Why a signed request was refused: a clock apart is not a forgery."""

    SIGNATURE = "signature"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class Reading:
    """One value read at scrape time, such as the age in seconds of the oldest due delivery.

    `label` is a value of a closed vocabulary (a channel, a sweep), None where there is none.
    """

    name: str
    meaning: str
    value: float
    label: tuple[str, str] | None = None


class Metrics:
    """All metrics of one process. `providers` are the names that may stand in labels."""

    def __init__(
        self,
        read_gauges: Callable[[], Iterable[Reading]] = tuple,
        providers: Iterable[str] = (),
    ) -> None:
        self.registry = CollectorRegistry()
        self._providers = frozenset(providers)
        self.admissions = self._counter("admissions", "Posts to admission by result", "result")
        self.signatures = self._counter(
            "signature_refusals", "Signed requests refused", "edge", "reason"
        )
        self.outcomes = self._counter(
            "outcomes", "Provider calls by outcome", "channel", "provider", "kind"
        )
        self.receipts = self._counter("receipts", "Receipts by status", "provider", "status")
        self.moves = self._counter("transitions", "Rows of the trail", "channel", "state", "reason")
        self.link_faults = self._counter(
            "link_faults", "Link requests without a usable answer", "channel", "purpose", "fault"
        )
        self.sign_ins = self._counter("sign_ins", "Sign-ins by people", "way", "outcome", "beside")
        self.requests = Histogram(
            "notifier_request_seconds",
            "Time to answer a request",
            ("endpoint", "status_class"),
            registry=self.registry,
        )
        self.registry.register(_AtScrape(read_gauges))

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"notifier_{name}", meaning, labels, registry=self.registry)

    def admission(self, result: AdmissionCount) -> None:
        """Count one post to admission."""
        self.admissions.labels(result).inc()

    def signature_refused(self, edge: str, fault: SignatureFault) -> None:
        """Count a refused signature at `edge`: `admission`, `cancel` or a provider's name."""
        known = self._providers | {"admission", "cancel"}
        self.signatures.labels(_within(edge, known), fault).inc()

    def outcome(self, channel: Channel, provider: str, kind: OutcomeKind) -> None:
        """Count what became of one call to a provider."""
        self.outcomes.labels(channel, _within(provider, self._providers), kind).inc()

    def receipt(self, provider: str, status: ReceiptStatus) -> None:
        """Count one receipt, whoever brought it."""
        self.receipts.labels(_within(provider, self._providers), status).inc()

    def receipt_unreadable(self, provider: str) -> None:
        """Count one genuine callback that told nothing."""
        self.receipts.labels(_within(provider, self._providers), UNREADABLE).inc()

    def transition(self, channel: Channel, state: DeliveryState, reason: Reason) -> None:
        """Count one row of the trail; `state` is the one after it."""
        self.moves.labels(channel, state, reason).inc()

    def link_fault(self, channel: Channel, purpose: str, fault: LinkFault) -> None:
        """Count one link request without a usable answer; `purpose` is `send` or `look_up`."""
        self.link_faults.labels(channel, purpose, fault).inc()

    def sign_in(self, way: str, outcome: str, beside: bool) -> None:
        """Count one sign-in. `beside`: by a local account although there is an issuer."""
        self.sign_ins.labels(
            _within(way, SIGN_IN_WAYS), _within(outcome, SIGN_IN_OUTCOMES), "01"[beside]
        ).inc()

    def request(self, endpoint: str | None, status: int, seconds: float) -> None:
        """Observe one answered request; `endpoint` is the route's name, never its path."""
        self.requests.labels(endpoint or "none", f"{status // 100}xx").observe(seconds)

    def text(self) -> bytes:
        """Everything, in the Prometheus text format."""
        return generate_latest(self.registry)


def _within(value: str, vocabulary: frozenset[str]) -> str:
    return value if value in vocabulary else OTHER


class _AtScrape(Collector):
    """Reads ages when they are asked for, so that they rise when everything else is dead."""

    def __init__(self, read_gauges: Callable[[], Iterable[Reading]]) -> None:
        self._read_gauges = read_gauges

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing: registering must not read the database."""
        yield from ()

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """One family per name, and whether the readings could be had at all."""
        readings = self._readings()
        yield GaugeMetricFamily(
            "notifier_readings_available",
            "1 when the gauges of this scrape could be read from the database",
            value=readings is not None,
        )
        yield CounterMetricFamily(
            "notifier_log_fields_dropped",
            "Log fields dropped because they are not allowed",
            value=dropped_fields(),
        )
        yield from _families(readings or ())

    def _readings(self) -> list[Reading] | None:
        try:
            return list(self._read_gauges())
        except Exception as error:  # noqa: BLE001 - a scrape must answer whatever the store does
            log.warning("readings_failed", **fault_fields(error))
            return None


def _families(readings: Iterable[Reading]) -> Iterator[GaugeMetricFamily]:
    families: dict[str, GaugeMetricFamily] = {}
    for reading in readings:
        labels = [reading.label[0]] if reading.label else []
        family = families.setdefault(
            reading.name,
            GaugeMetricFamily(f"notifier_{reading.name}", reading.meaning, labels=labels),
        )
        family.add_metric([reading.label[1]] if reading.label else [], reading.value)
    yield from families.values()
