"""The notice's state is the same function in SQL and in Python, over every input there is."""

from __future__ import annotations

from itertools import product

from notifier.domain.notice_state import notice_state_flat
from notifier.domain.states import DeliveryState
from tests.db.rig import Rig

ALL = """
    SELECT notice_state(email, email_final, sms, sms_final, is_fallback, canceled) AS state
      FROM unnest(%s::text[], %s::boolean[], %s::text[], %s::boolean[], %s::boolean[],
                  %s::boolean[])
           WITH ORDINALITY AS t (email, email_final, sms, sms_final, is_fallback, canceled, n)
     ORDER BY n
"""


def test_p12_the_notices_state_is_one_function_in_both_places(rig: Rig) -> None:
    flags = (False, True)
    states = tuple(DeliveryState)
    rows = list(product(states, flags, states, flags, flags, flags))

    found = rig.rows(ALL, *(list(column) for column in zip(*rows, strict=True)))

    assert len(found) == 11 * 2 * 11 * 2 * 2 * 2
    assert [row["state"] for row in found] == [notice_state_flat(*row)[0] for row in rows]
