"""An auth service that gives no links is no failing channel: nothing counts it as one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from notifier.domain.link_faults import LinkFault
from notifier.flow import put_back
from notifier.store.reads.failures import Wanted, load_matrix
from notifier.store.reads.signals import PAUSING
from tests.db.rig import Rig
from tests.signals.conftest import Collect

HOUR = timedelta(hours=1)


@pytest.mark.parametrize("fault", [LinkFault.HTTP_401, LinkFault.NO_ANSWER_IN_TIME])
def test_a_link_fault_is_counted_as_no_failure_and_as_no_outcome(
    rig: Rig, collect: Collect, fault: LinkFault
) -> None:
    for _ in range(3):
        rig.admit()
        put_back.hand_back_for_link(rig.desk, rig.claim_one(), fault)
    collect()

    rows = rig.rows("SELECT DISTINCT signal FROM rollup_count")
    assert {row["signal"] for row in rows} == {"created"}
    with rig.database.connection() as connection:
        assert load_matrix(connection, Wanted(HOUR)).cells == ()


def test_no_link_fault_pauses_a_provider() -> None:
    assert not {str(each) for each in PAUSING} & {str(each) for each in LinkFault}
