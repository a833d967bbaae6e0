"""What a program does with an API token, through the product as it is composed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from notifier.accounts.permissions import Role
from peers.events import EVENTS_PATH, body_of, build_event, signed_headers
from tests.people_pages import signed_in
from tests.web.test_clock_unknown import product, secrets

if TYPE_CHECKING:
    from flask import Flask

    from notifier.store.database import Database
    from peers.run_settings import Secrets

__all__ = ["product", "secrets"]


def test_a_ticket_that_a_program_linked_is_not_by_the_person_of_its_name(
    product: Flask, secrets: Secrets, database: Database
) -> None:
    ask, body = product.test_client(), body_of(build_event())
    admitted = ask.post(EVENTS_PATH, data=body, headers=signed_headers(secrets.ingest, body))
    notice = admitted.get_json()["notification_id"]
    person = signed_in(product, database, Role.SUPPORT, "local")
    token = {"Authorization": f"Bearer {secrets.api_token}"}

    assert ask.put(f"/v1/tickets/HD-1/notices/{notice}", headers=token).status_code == 200
    assert person.post(f"/n/{notice}/tickets", ticket_id="HD-2").status_code == 303

    with database.connection() as connection:
        links = connection.execute("SELECT ticket_id, linked_by FROM ticket_link ORDER BY 1")
        steps = connection.execute(
            "SELECT actor, evidence ->> 'ticket' AS ticket, evidence ->> 'by' AS by"
            " FROM transition WHERE reason = 'ticket_linked' ORDER BY seq"
        )
        assert [tuple(row.values()) for row in links] == [
            ("HD-1", "token:local"), ("HD-2", "local"),
        ]  # fmt: skip
        assert [tuple(row.values()) for row in steps] == [
            ("operator:token:local", "HD-1", "token:local"), ("operator:local", "HD-2", "local"),
        ]  # fmt: skip
    page = person.get(f"/n/{notice}?source=operator").text
    assert "by operator:token:local" in page
    assert "by operator:local" in page
    assert "by token:local" in page
