"""Signing in: passwords, one-time links, sessions that end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from argon2 import PasswordHasher
from flask import Flask

from notifier.accounts import passwords, people, rate_limits, sign_in_links
from notifier.accounts.permissions import Role
from tests.database import Clock
from tests.people_pages import FRAGMENT, PASSWORD, Browser, build_app, csrf_token, signed_in

if TYPE_CHECKING:
    from flask.testing import FlaskClient
    from werkzeug.test import TestResponse

    from notifier.store.database import Database


def account(database: Database, name: str = "ada") -> None:
    with database.connection() as connection:
        people.add(connection, name, Role.SUPPORT, PASSWORD)


def enter(client: FlaskClient, name: str, password: str, where: str = "/") -> TestResponse:
    token = csrf_token(client.get("/login").text)
    fields = {"csrf_token": token, "username": name, "password": password, "next": where}
    return client.post("/login", data=fields)


def test_the_right_password_leads_to_where_one_wanted_to_go(app: Flask, database: Database) -> None:
    account(database)
    client = app.test_client()
    assert client.get("/pending?stage=unknown").location == "/login?next=/pending?stage%3Dunknown"
    answer = enter(client, "ada", PASSWORD, "/pending?stage=unknown")
    assert (answer.status_code, answer.location) == (303, "/pending?stage=unknown")
    assert client.get("/pending").status_code == 200


def test_a_wrong_password_an_unknown_name_and_a_disabled_one_look_the_same(
    app: Flask, database: Database
) -> None:
    account(database)
    account(database, "gone")
    with database.connection() as connection:
        people.disable(connection, "gone")
    said = set()
    for name, password in (("ada", "wrong password"), ("nobody", PASSWORD), ("gone", PASSWORD)):
        answer = enter(app.test_client(), name, password)
        assert answer.status_code == 422
        said.add(answer.text.split('role="alert"')[1].split("</p>")[0])
        assert password not in answer.text
    assert len(said) == 1


def test_a_stale_sign_in_form_is_offered_again_with_the_name_kept(
    app: Flask, database: Database
) -> None:
    account(database)
    client = app.test_client()
    answer = client.post("/login", data={"username": "ada", "password": PASSWORD})
    assert answer.status_code == 403
    assert 'value="ada"' in answer.text
    assert "gone stale" in answer.text


def wrong_passwords(app: Flask, times: int, address: str) -> list[int]:
    """What each wrong password for ada is answered, tried from an address."""
    client = app.test_client()
    client.environ_base["REMOTE_ADDR"] = address
    token = csrf_token(client.get("/login").text)
    fields = {"csrf_token": token, "username": "ada", "password": "x"}
    return [client.post("/login", data=fields).status_code for _ in range(times)]


def test_after_ten_wrong_passwords_a_name_has_to_wait_there_and_success_costs_nothing(
    app: Flask, database: Database, clock: Clock
) -> None:
    account(database)
    clock.freeze()
    assert set(wrong_passwords(app, rate_limits.SIGN_IN_BY_PAIR.hits, "127.0.0.1")) == {422}
    answer = enter(app.test_client(), "ada", PASSWORD)
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 300
    clock.advance(300)
    for _ in range(3):
        assert enter(app.test_client(), "ada", PASSWORD).status_code == 303
    with database.connection() as connection:
        rows = connection.execute(
            "SELECT hits FROM rate_window WHERE name LIKE 'sign_in_%' AND window_at ="
            " (SELECT max(window_at) FROM rate_window)"
        ).fetchall()
    assert [row["hits"] for row in rows] == [0, 0, 0]


def test_whoever_guesses_at_a_name_locks_nobody_out_but_himself(
    app: Flask, database: Database, clock: Clock
) -> None:
    account(database)
    clock.freeze()
    assert wrong_passwords(app, 12, "198.51.100.7") == [422] * 10 + [429] * 2
    assert wrong_passwords(app, 12, "2001:db8::7") == [422] * 10 + [429] * 2
    assert wrong_passwords(app, 2, "2001:db8::8888") == [429] * 2

    assert enter(app.test_client(), "ada", PASSWORD).status_code == 303


def test_many_networks_together_run_into_the_wide_cap_of_the_name(
    app: Flask, database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = replace(rate_limits.SIGN_IN_BY_NAME, hits=25)
    monkeypatch.setattr(rate_limits, "SIGN_IN_BY_NAME", wide)
    account(database)
    clock.freeze()
    for number in range(2):
        assert set(wrong_passwords(app, 10, f"198.51.100.{number}")) == {422}
    # What an address's own limit refused did not count against the name.
    assert wrong_passwords(app, 3, "198.51.100.1") == [429] * 3
    assert wrong_passwords(app, 7, "198.51.100.9") == [422] * 5 + [429] * 2


def test_one_network_that_tries_many_names_has_to_wait(
    app: Flask, database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = replace(rate_limits.SIGN_IN_BY_ADDRESS, hits=4)
    monkeypatch.setattr(rate_limits, "SIGN_IN_BY_ADDRESS", few)
    clock.freeze()
    answers = [enter(app.test_client(), f"name-{n}", PASSWORD).status_code for n in range(6)]
    assert answers == [422] * 4 + [429] * 2


class CountingHasher:
    """Argon2, and how often it was set to work."""

    def __init__(self) -> None:
        self.verified = 0
        self._hasher = PasswordHasher()

    def verify(self, stored: str, password: str) -> bool:
        self.verified += 1
        return self._hasher.verify(stored, password)


@pytest.mark.parametrize("name", ["ada", "nobody", "gone", "no name at all"])
def test_a_name_that_nobody_has_costs_the_work_of_a_wrong_password(
    database: Database, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    account(database)
    account(database, "gone")
    counting = CountingHasher()
    monkeypatch.setattr(passwords, "_hasher", counting)
    with database.connection() as connection:
        people.disable(connection, "gone")
        assert people.who_signs_in(connection, name, "wrong password") is None
    assert counting.verified == 1


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("unknown", "nobody"),
        ("", "nobody"),
        (None, "nobody"),
    ],
)
def test_an_address_stands_for_its_network(address: str | None, network: str) -> None:
    assert rate_limits.network_of(address) == network


def test_p7_neither_name_nor_password_stands_in_the_table_of_limits(
    app: Flask, database: Database
) -> None:
    enter(app.test_client(), "my-password-typed-as-name", "x")
    with database.connection() as connection:
        rows = connection.execute("SELECT name FROM rate_window").fetchall()
    assert rows
    assert not [row for row in rows if "my-password" in row["name"]]


def test_a_session_ends_after_half_an_hour_without_a_page(support: Browser, clock: Clock) -> None:
    clock.advance(29 * 60)
    assert support.get("/").status_code == 200
    clock.advance(29 * 60)
    assert support.get("/").status_code == 200
    clock.advance(31 * 60)
    assert support.get("/").status_code == 303


def test_polls_alone_do_not_keep_a_session_alive(support: Browser, clock: Clock) -> None:
    for _ in range(5):
        clock.advance(6 * 60 - 1)
        assert support.poll("/pending").status_code == 200
    clock.advance(60)
    assert support.poll("/pending").status_code == 401


def test_a_session_ends_after_ten_hours_however_busy(support: Browser, clock: Clock) -> None:
    for _ in range(24):
        clock.advance(24 * 60)
        assert support.get("/").status_code == 200
    clock.advance(25 * 60)
    assert support.get("/").status_code == 303


def test_a_disabled_account_is_out_with_its_next_request(
    support: Browser, database: Database
) -> None:
    with database.connection() as connection:
        people.disable(connection, support.name)
    assert support.get("/").status_code == 303
    assert support.poll("/pending").status_code == 401


def test_a_changed_role_counts_from_the_next_request(support: Browser, database: Database) -> None:
    assert "support" in support.get("/").text
    with database.connection() as connection:
        connection.execute("UPDATE person SET role = 'auditor'")
    assert 'class="role">auditor<' in support.get("/").text


def test_signing_out_ends_the_session_for_every_copy_of_the_cookie(
    app: Flask, support: Browser
) -> None:
    thief = app.test_client()
    with support.client.session_transaction() as mine, thief.session_transaction() as theirs:
        theirs.update(mine)
    assert thief.get("/").status_code == 200
    assert support.post("/logout").location == "/login?why=out"
    assert thief.get("/").status_code == 303


def test_signing_in_makes_a_fresh_session_and_ends_the_one_before(
    app: Flask, database: Database
) -> None:
    account(database)
    browser = signed_in(app, database, Role.SUPPORT)
    with browser.client.session_transaction() as cookie:
        before = cookie["session"]
    client = app.test_client()
    with client.session_transaction() as cookie:
        cookie["session"] = before
    browser.post("/logout")
    enter(client, "ada", PASSWORD)
    with client.session_transaction() as cookie:
        assert cookie["session"] != before
        assert set(cookie) == {"session"}


def test_signing_in_ends_the_session_that_the_browser_still_had(
    app: Flask, database: Database
) -> None:
    account(database)
    browser = signed_in(app, database, Role.SUPPORT)
    with browser.client.session_transaction() as cookie:
        before = cookie["session"]

    assert browser.post("/login", username="ada", password=PASSWORD).status_code == 303

    assert browser.get("/").status_code == 200
    planted = app.test_client()
    with planted.session_transaction() as cookie:
        cookie["session"] = before
    assert planted.get("/").status_code == 303


def test_an_older_signing_key_still_verifies_and_a_removed_one_signs_out_politely(
    database: Database,
) -> None:
    browser = signed_in(build_app(database, keys=("old" * 12,)), database, Role.SUPPORT)
    held = browser.client.get_cookie("notifier-loopback")
    assert held is not None
    for keys, status in ((("new" * 12, "old" * 12), 200), (("new" * 12,), 303)):
        client = build_app(database, keys=keys).test_client()
        client.set_cookie("notifier-loopback", held.value)
        assert client.get("/pending").status_code == status


def test_p7_the_cookie_holds_only_a_random_token_and_the_table_only_its_digest(
    support: Browser, database: Database
) -> None:
    with support.client.session_transaction() as cookie:
        assert set(cookie) == {"session"}
        token = cookie["session"]
    with database.connection() as connection:
        row = connection.execute("SELECT token_digest FROM session").fetchone()
    assert row is not None
    assert token.encode() not in row["token_digest"]


def test_over_https_the_cookie_is_bound_to_the_host(database: Database) -> None:
    app = build_app(database, secure=True)
    answer = app.test_client().get("/login", base_url="https://notices.example")
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("__Host-notifier=")
    for part in ("Secure", "HttpOnly", "Path=/", "SameSite=Lax"):
        assert part in cookie
    assert "Domain" not in cookie
    assert answer.headers["Strict-Transport-Security"].startswith("max-age=")


def one_time_link(database: Database, name: str = "new") -> str:
    with database.connection() as connection:
        person = people.add(connection, name, Role.ON_CALL, None)
        return f"/login/link/{sign_in_links.create(connection, person.person_id)}"


def test_a_one_time_link_survives_being_looked_at_and_lets_in_once(
    app: Flask, database: Database
) -> None:
    path = one_time_link(database)
    for _ in range(3):
        assert "Welcome, new" in app.test_client().get(path).text
    client, late = app.test_client(), app.test_client()
    token, too_late = (csrf_token(each.get(path).text) for each in (client, late))
    answer = client.post(path, data={"csrf_token": token, "password": PASSWORD})
    assert (answer.status_code, answer.location) == (303, "/")
    assert client.get("/").status_code == 200
    again = late.post(path, data={"csrf_token": too_late, "password": "another long password"})
    assert again.status_code == 404
    assert app.test_client().get(path).status_code == 404
    assert enter(app.test_client(), "new", PASSWORD).status_code == 303


def test_a_link_without_a_password_signs_in_and_sets_none(app: Flask, database: Database) -> None:
    path = one_time_link(database)
    client = app.test_client()
    token = csrf_token(client.get(path).text)
    assert client.post(path, data={"csrf_token": token, "password": ""}).status_code == 303
    assert enter(app.test_client(), "new", "").status_code == 422


def test_a_new_password_ends_the_persons_other_sessions_and_nobody_elses(
    app: Flask, database: Database
) -> None:
    thief = signed_in(app, database, Role.ON_CALL, "new")
    bystander = signed_in(app, database, Role.SUPPORT)
    with database.connection() as connection:
        token = sign_in_links.create(connection, people.named(connection, "new").person_id)
    path = f"/login/link/{token}"
    owner = app.test_client()
    form = csrf_token(owner.get(path).text)
    assert thief.get("/").status_code == 200

    answer = owner.post(path, data={"csrf_token": form, "password": PASSWORD})

    assert (answer.status_code, owner.get("/").status_code) == (303, 200)
    assert thief.get("/").status_code == 303
    assert thief.poll("/pending").status_code == 401
    assert bystander.get("/").status_code == 200


def test_whoever_sets_a_password_gets_a_fresh_token(app: Flask, database: Database) -> None:
    owner = signed_in(app, database, Role.ON_CALL, "new")
    with owner.client.session_transaction() as cookie:
        before = cookie["session"]
    with database.connection() as connection:
        token = sign_in_links.create(connection, people.named(connection, "new").person_id)

    assert owner.post(f"/login/link/{token}", password=PASSWORD).status_code == 303

    assert owner.get("/").status_code == 200
    copy = app.test_client()
    with copy.session_transaction() as cookie:
        cookie["session"] = before
    assert copy.get("/").status_code == 303


def test_a_hash_that_is_made_anew_at_a_sign_in_ends_no_session(
    app: Flask, database: Database
) -> None:
    account(database)
    weak = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    with database.connection() as connection:
        connection.execute("UPDATE person SET password_hash = %s", [weak])
    first, second = app.test_client(), app.test_client()
    assert enter(first, "ada", PASSWORD).status_code == 303
    with database.connection() as connection:
        connection.execute("UPDATE person SET password_hash = %s", [weak])
    assert enter(second, "ada", PASSWORD).status_code == 303
    assert (first.get("/").status_code, second.get("/").status_code) == (200, 200)
    with database.connection() as connection:
        row = connection.execute("SELECT password_hash FROM person").fetchone()
    assert row is not None
    assert not passwords.is_outdated(row["password_hash"])


def test_a_short_password_does_not_spend_the_link(app: Flask, database: Database) -> None:
    path = one_time_link(database)
    client = app.test_client()
    token = csrf_token(client.get(path).text)
    answer = client.post(path, data={"csrf_token": token, "password": "short"})
    assert answer.status_code == 422
    assert "at least 12" in answer.text
    assert "Welcome" in client.get(path).text


def test_a_link_is_too_old_after_a_day(app: Flask, database: Database, clock: Clock) -> None:
    path = one_time_link(database)
    client = app.test_client()
    token = csrf_token(client.get(path).text)
    clock.advance(24 * 3600 + 1)
    assert client.post(path, data={"csrf_token": token, "password": PASSWORD}).status_code == 404
    assert client.get(path).status_code == 404


def test_restored_history_gets_the_whole_page(support: Browser) -> None:
    for headers in (
        FRAGMENT | {"HX-History-Restore-Request": "true"},
        {"HX-Request": "true", "HX-Request-Type": "full"},
        {"HX-History-Restore-Request": "true", "HX-Request-Type": "full"},
    ):
        assert support.client.get("/pending", headers=headers).text.startswith("<!doctype html>")
    assert "<!doctype" not in support.poll("/pending").text
