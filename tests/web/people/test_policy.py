"""The policy page: judged as a whole, seen before it is kept, and never over somebody's head."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from notifier.accounts.permissions import Role
from notifier.domain.policy import Policy, default_policy, parse_policy
from notifier.domain.policy_drafts import flat
from notifier.flow import policies
from notifier.flow.policies import PolicyShelf
from notifier.web.people import policy as policy_page
from notifier.web.people import policy_form, policy_words
from tests import people_seed
from tests.people_fates import ACCEPTED, Script
from tests.people_pages import Browser, audit_rows

if TYPE_CHECKING:
    from uuid import UUID

    from werkzeug.test import TestResponse

    from notifier.store.database import Database
    from tests.web.people.conftest import SignIn

MORE_ATTEMPTS = """
    INSERT INTO attempt
    SELECT more.* FROM attempt AS a CROSS JOIN generate_series(2, 41) AS n
     CROSS JOIN jsonb_populate_record(a, jsonb_build_object(
         'number', n, 'key', a.key || n, 'reference', a.reference || n)) AS more
"""
_FIELD = re.compile(
    r'<input(?=[^>]* name="(?P<name>[^"]+)")(?=[^>]* value="(?P<value>[^"]*)")[^>]*>'
)
_SELECT = re.compile(r'<select[^>]* name="([^"]+)"[^>]*>(.*?)</select>', re.DOTALL)
_CHOSEN = re.compile(r'<option selected value="([^"]+)"')


@pytest.fixture(autouse=True)
def first_revision(database: Database) -> PolicyShelf:
    shelf = PolicyShelf(database)
    shelf.begin(default_policy(), "start")
    return shelf


def fields(page: str) -> dict[str, str]:
    """What a browser would send of the page's main form."""
    form = page[page.index('name="revision"') - 60 :]
    form = form[: form.index("</form>")]
    found = {each["name"]: each["value"] for each in _FIELD.finditer(form)}
    chosen = {}
    for name, options in _SELECT.findall(form):
        picked = _CHOSEN.search(options)
        chosen[name] = picked[1] if picked else ""
    return {**found, **chosen}


def check(browser: Browser, **different: str) -> TestResponse:
    """Fill the form in and ask what it would change."""
    return browser.post("/policy", **(fields(browser.get("/policy").text) | names(different)))


def keep(browser: Browser, seen: TestResponse, reason: str = "slow carrier") -> TestResponse:
    return browser.post("/policy/revisions", **(fields(seen.text) | {"reason": reason}))


def names(different: dict[str, str]) -> dict[str, str]:
    """`safety_margin_s__sms` for what the form calls `safety_margin_s/sms`."""
    return {name.replace("__", "/"): text for name, text in different.items()}


def stored(database: Database) -> list[dict[str, Any]]:
    with database.connection() as connection:
        return connection.execute(
            "SELECT revision, document, author, reason FROM policy_revision ORDER BY revision"
        ).fetchall()


def test_every_value_of_a_policy_has_words_and_a_field(on_call: Browser) -> None:
    every = set(flat(default_policy().to_document()))
    assert set(policy_words.WORDS) == every
    assert every <= set(fields(on_call.get("/policy").text))


def test_the_form_as_it_stands_is_the_policy_in_force(on_call: Browser) -> None:
    typed = fields(on_call.get("/policy").text)
    typed.pop("revision")
    assert Policy.from_document(policy_form.document_of(typed)) == default_policy()


def test_a_change_is_shown_with_what_follows_and_kept_with_its_reason(
    on_call: Browser, database: Database
) -> None:
    seen = check(on_call, observation_window__cap_s="200", retry_backoff_s="20, 60")
    assert seen.status_code == 200
    assert "2 values change" in seen.text
    assert "<del>300</del>" in seen.text
    assert "<ins>20, 60</ins>" in seen.text
    assert "<del>300</del> <ins>200</ins>" in seen.text, "the fallback time of ten minutes"
    assert "The same 100 notices under both" in seen.text
    assert len(stored(database)) == 1, "nothing is kept before there is a reason"
    answer = keep(on_call, seen)
    assert (answer.status_code, answer.location) == (303, "/policy/revisions/2")
    kept = stored(database)[1]
    assert (kept["author"], kept["reason"]) == (on_call.name, "slow carrier")
    assert Policy.from_document(kept["document"]) == Policy.from_document(
        {"observation_window": {"cap_s": 200}, "retry_backoff_s": [20, 60]}
    )


@pytest.mark.parametrize(("life_s", "words"), [(50, "50 s"), (600, "10 min"), (700, "11.7 min")])
def test_what_follows_for_a_life_names_it_as_people_say_it(
    on_call: Browser, monkeypatch: pytest.MonkeyPatch, life_s: float, words: str
) -> None:
    monkeypatch.setattr(policy_page, "learnt_life_s", lambda _connection: life_s)
    page = check(on_call, observation_window__cap_s="200").text
    assert f'<th scope="row">{words}' in page
    assert f"with a life of {words}." in page


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [("lease_s", "thirty", "valid number"), ("regions/sms", "GB, Atlantis", "two-letter")],
)
def test_what_does_not_fit_is_said_beside_the_field_and_on_top_and_stays_typed(
    on_call: Browser, database: Database, field: str, text: str, said: str
) -> None:
    answer = check(on_call, **{field: text, "poll_every_s": "31"})
    assert answer.status_code == 422
    top, _, form = answer.text.partition("</h1>")
    assert f'href="#{field}"' in top
    assert said in top
    assert said in form
    assert 'aria-invalid="true"' in form
    typed = fields(answer.text)
    assert (typed[field], typed["poll_every_s"]) == (text, "31")
    assert len(stored(database)) == 1


def test_values_that_clash_are_refused_as_a_whole(on_call: Browser) -> None:
    answer = check(on_call, fallback_reserve__floor_s="60", fallback_reserve__cap_s="60")
    assert answer.status_code == 422
    assert "leaves no room for a text" in answer.text


def test_markup_that_is_typed_stays_text(on_call: Browser) -> None:
    answer = check(on_call, lease_s='"><script>x</script>')
    assert "<script>x" not in answer.text
    assert "&lt;script&gt;x" in answer.text


@pytest.mark.parametrize("reason", ["   ", "x" * 501, "ask jana.moe@mail.example", "x07700900123"])
def test_a_change_without_a_reason_is_not_kept_and_not_lost(
    on_call: Browser, database: Database, reason: str
) -> None:
    answer = keep(on_call, check(on_call, lease_s="40"), reason)
    assert answer.status_code == 422
    assert "write 1 to 500 letters" in answer.text
    assert fields(answer.text)["lease_s"] == "40"
    assert len(stored(database)) == 1


def test_what_the_page_of_changes_let_through_is_judged_again(
    on_call: Browser, database: Database
) -> None:
    seen = fields(check(on_call, lease_s="40").text) | {"lease_s": "1", "reason": "trick"}
    assert on_call.post("/policy/revisions", **seen).status_code == 422
    assert len(stored(database)) == 1


def test_a_form_that_changes_nothing_is_told_so(on_call: Browser) -> None:
    answer = check(on_call)
    assert answer.status_code == 422
    assert "Nothing differs" in answer.text


def test_the_form_can_be_gone_back_to_with_all_that_was_typed(on_call: Browser) -> None:
    seen = fields(check(on_call, lease_s="40").text) | {"act": "edit"}
    again = on_call.post("/policy", **seen)
    assert again.status_code == 200
    assert fields(again.text)["lease_s"] == "40"


def newer(database: Database, **document: Any) -> None:
    """Somebody else keeps a revision."""
    draft = Policy.from_document(document)
    policies.keep(database, draft, base=len(stored(database)), author="ada", reason="was quicker")


@pytest.mark.parametrize("step", ["check", "keep"])
def test_a_form_from_before_a_newer_revision_is_refused_and_shows_the_newer_one(
    on_call: Browser, database: Database, step: str
) -> None:
    seen = check(on_call, lease_s="40", poll_every_s="50")
    newer(database, poll_every_s=55, settle_s=70)
    late = fields(seen.text)
    path = "/policy" if step == "check" else "/policy/revisions"
    answer = on_call.post(path, **(late | {"reason": "late"}))
    assert answer.status_code == 409
    assert "Revision 2 was kept meanwhile" in answer.text
    assert "was quicker" in answer.text
    assert "<ins>70</ins>" in answer.text
    assert len(stored(database)) == 2
    typed = fields(answer.text)
    assert typed["revision"] == "2", "so that it can be sent again, knowingly"
    assert (typed["lease_s"], typed["settle_s"]) == ("40", "70"), "nobody's change is lost"
    assert typed["poll_every_s"] == "50"
    both = policy_words.WORDS["poll_every_s"].label
    assert f"<strong>{both}</strong>, which both of you changed" in answer.text


def test_the_same_form_sent_twice_is_one_revision(on_call: Browser, database: Database) -> None:
    seen = check(on_call, lease_s="40")
    assert [keep(on_call, seen).status_code for _ in range(2)] == [303, 303]
    assert len(stored(database)) == 2


def test_who_may_not_change_the_policy_reads_all_of_it(sign_in: SignIn) -> None:
    for role in (Role.SUPPORT, Role.AUDITOR):
        page = sign_in(role).get("/policy")
        assert page.status_code == 200
        assert "See what changes" not in page.text
        assert "Work taken back, at least" in page.text


def test_every_step_of_keeping_is_written_down(on_call: Browser, database: Database) -> None:
    seen = check(on_call, lease_s="40")
    keep(on_call, seen, "")
    keep(on_call, seen)
    newer(database)
    keep(on_call, seen, "late")
    acts = [each for each in audit_rows(database) if each["action"] == "act"]
    assert [(each["object_ref"], each["outcome"], each["reason"]) for each in acts] == [
        ("2", "asked", None), ("2", "not_done", None),
        ("2", "asked", "slow carrier"), ("2", "done", "slow carrier"),
        ("2", "asked", "late"), ("2", "stale", "late"),
    ]  # fmt: skip


def test_history_tells_who_when_why_and_what(on_call: Browser, database: Database) -> None:
    newer(database, lease_s=45)
    page = on_call.get("/policy").text
    assert "was quicker" in page
    assert "Lease of claimed work: 30 → 45" in page
    rows = on_call.get("/policy?format=json").json
    assert rows is not None
    assert [(each["revision"], each["author"], each["changed"]) for each in rows["rows"]] == [
        (2, "ada", "lease_s"), (1, "start", ""),
    ]  # fmt: skip


def test_a_long_history_is_walked_without_losing_one(on_call: Browser, database: Database) -> None:
    for each in range(30):
        newer(database, lease_s=31 + each)
    first = on_call.get("/policy").text
    assert 'href="/policy/revisions/31"' in first
    assert 'href="/policy?before=7#history"' in first
    older = on_call.get("/policy?before=7").text
    seen = {int(each) for each in re.findall(r'href="/policy/revisions/(\d+)"', first + older)}
    assert seen == set(range(1, 32))


def test_a_revision_names_the_open_notices_that_follow_it(
    on_call: Browser, database: Database, notices: dict[str, UUID]
) -> None:
    newer(database, lease_s=45)
    with database.connection() as connection:
        row = connection.execute(
            "SELECT count(*) AS n FROM notice WHERE state IN ('email_pending', 'text_pending')"
        ).fetchone()
    assert row is not None
    assert f"{row['n']} open notices" in on_call.get("/policy/revisions/1").text
    assert "0 open notices" in on_call.get("/policy/revisions/2").text
    assert on_call.get("/policy/revisions/3").status_code == 404
    assert notices


def test_the_file_of_a_revision_is_what_the_setting_takes(
    support: Browser, database: Database
) -> None:
    newer(database, lease_s=45, regions={"sms": ["DE", "GB"]}, alert={"chance": 1e-9})
    answer = support.get("/policy/revisions/2/policy.toml")
    assert answer.headers["Content-Type"] == "application/toml"
    assert "attachment" in answer.headers["Content-Disposition"]
    assert parse_policy(answer.data) == PolicyShelf(database).current()[1]
    assert tomllib.loads(answer.text)["lease_s"] == 45


def test_a_form_without_a_revision_of_ours_is_refused(on_call: Browser) -> None:
    assert on_call.post("/policy", revision="1; drop").status_code == 422


def test_too_few_measurements_propose_nothing_and_say_so(
    on_call: Browser, notices: dict[str, UUID]
) -> None:
    page = on_call.get("/policy").text
    assert "Measured lately" in page
    assert "needs at least 299" in page
    assert notices


def test_the_page_says_of_which_attempts_it_measured_and_how_old_they_are(
    on_call: Browser, database: Database
) -> None:
    with database.connection() as connection:
        people_seed.seed_many(connection, 30, Script("first", "email_pending", ACCEPTED))
    told = measured(on_call)
    age = r"the oldest \d+ \w+ ago, the newest \d+ \w+ ago"
    assert re.search(rf"Measured in 30 email attempts \({age}\)\.", told)
    assert "newest 1,000 attempts of the past 7 days are read and no more" in told
    assert "There were more" not in told

    with database.connection() as connection:
        connection.execute(MORE_ATTEMPTS)
    told = measured(on_call)
    assert "Measured in 1,000 email attempts" in told
    assert "There were more: what is older is left out" in told


def measured(browser: Browser) -> str:
    """The part of the page that tells what was measured, without its tags."""
    part = browser.get("/policy").text.split("Measured lately")[1].split("<h2")[0]
    return " ".join(re.sub(r"<[^>]+>", "", part).split())
