"""What programs are told of real notices has the form that `/openapi.json` describes."""

from __future__ import annotations

import json

from flask import Flask
from jsonschema import Draft202012Validator

from notifier.store.trail import COLUMNS
from notifier.web.machines.answers import json_answer
from notifier.web.machines.lookups import LookUps
from notifier.web.machines.schemas import SCHEMAS
from tests.database import Clock
from tests.db.conftest import MakeRig
from tests.db.ledger.test_trail import live_through_much
from tests.db.rig import BOTH


def test_statuses_and_trails_of_notices_with_much_behind_them_are_as_described(
    make_rig: MakeRig, clock: Clock
) -> None:
    rig = make_rig(channels=BOTH)
    live_through_much(rig, clock)
    look_ups = LookUps(rig.database)
    status, trail = (Draft202012Validator(SCHEMAS[name]) for name in ("Status", "Transitions"))
    rows = 0
    for event in rig.rows("SELECT event_id FROM admission"):
        told = look_ups.notice_status(event["event_id"])
        page = look_ups.transitions(event["event_id"], 0, 500)
        assert page is not None
        with Flask("answers").app_context():
            answers = [
                json.loads(json_answer(each).get_data(as_text=True))
                for each in (told, {"transitions": list(page.transitions), "next": page.next})
            ]
        status.validate(answers[0])
        trail.validate(answers[1])
        rows += len(page.transitions)

    assert rows == rig.count("transition") > 20


def test_each_row_of_a_trail_has_all_that_is_under_its_hash() -> None:
    described = SCHEMAS["Transitions"]["properties"]["transitions"]["items"]["properties"]
    assert set(described) == {*COLUMNS, "prev_hash", "hash"}
