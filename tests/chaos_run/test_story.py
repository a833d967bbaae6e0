"""What is told of a lost event, before its rows are gone with the run."""

from __future__ import annotations

from types import SimpleNamespace

from notifier.domain.outcome import Accepted
from tests.chaos_run.product import Product, Rows
from tests.chaos_run.run import _with_stories
from tests.db.rig import Rig


def test_a_lost_event_is_told_with_its_trail_and_what_was_sent_meanwhile(
    rig: Rig, database_url: str
) -> None:
    claim = rig.start_new()
    rig.record(claim, Accepted("id-1"))
    product = Product(SimpleNamespace(), SimpleNamespace(), Rows(database_url))  # type: ignore[arg-type]

    try:
        told = _with_stories([f"{claim.event_id}: no row"], product)
    finally:
        product.rows.close()

    first, *trail, last = told
    assert first == f"{claim.event_id}: no row"
    assert any("attempted -> accepted: provider_accepted" in line for line in trail)
    assert "1 attempts by 1 owners" in last
