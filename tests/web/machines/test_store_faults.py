"""What a real Postgres says in its errors stays out of answers and logs (P7)."""

from __future__ import annotations

import logging

import psycopg
import pytest

from notifier.domain.event import AdmissionResult, ResetEvent, Transport
from notifier.store.database import Database
from tests.web.machines.edge import Edge, event_document
from tests.web.machines.test_admission import problem

CANARIES = ("canary-5f1e", "ann@canary.test", "+447700900123")

FAULTS = [
    "INSERT INTO fault (email) VALUES (%(a)s), (%(a)s)",
    "INSERT INTO fault (short) VALUES (%(a)s)",
    "INSERT INTO fault (number) VALUES (%(a)s::text::int)",
    "INSERT INTO fault (small) VALUES (length(%(a)s))",
    "SELECT %(a)s FROM nowhere",
]


@pytest.mark.parametrize("statement", FAULTS)
@pytest.mark.parametrize("canary", CANARIES)
def test_p7_a_statement_that_fails_on_a_value_shows_the_value_nowhere(
    edge: Edge, database: Database, statement: str, canary: str
) -> None:
    said: list[str] = []

    def admit(event: ResetEvent, transport: Transport) -> AdmissionResult:
        with database.connection() as connection:
            connection.execute(
                "CREATE TEMP TABLE fault (email text UNIQUE, short varchar(3), number int,"
                " small int CHECK (small < 3))"
            )
            try:
                connection.execute(statement.encode(), {"a": canary})
            except psycopg.Error as error:
                said.append(f"{error}")
                logging.getLogger("psycopg").exception("failed on %r", canary)
                raise
            finally:
                connection.execute("DROP TABLE fault")
        raise AssertionError

    edge.behind.admit = admit  # type: ignore[method-assign]
    answer = edge.post(event_document())
    problem(answer, 500, "internal_error")
    assert len(said) == 1
    assert canary not in answer.text + str(answer.headers) + edge.log.getvalue()
    assert len(edge.log.getvalue().splitlines()) == 3


def test_the_store_being_gone_is_a_503_and_its_return_a_202(edge: Edge) -> None:
    nowhere = Database("postgresql://127.0.0.1:1/nothing", acquire_timeout_s=0.2)
    admitted = edge.behind.admit

    def admit(event: ResetEvent, transport: Transport) -> AdmissionResult:
        with nowhere.connection():
            raise AssertionError

    edge.behind.admit = admit  # type: ignore[method-assign]
    problem(edge.post(event_document()), 503, "not_admitted")
    nowhere.close()
    edge.behind.admit = admitted  # type: ignore[method-assign]
    assert edge.post(event_document()).status_code == 202
