"""Pages on a fresh database for each test."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from flask import Flask

from notifier.accounts.permissions import Role
from tests import people_pages, people_seed
from tests.people_pages import Browser

if TYPE_CHECKING:
    from notifier.store.database import Database

SignIn = Callable[[Role], Browser]


@pytest.fixture
def app(database: Database) -> Flask:
    return people_pages.build_app(database)


@pytest.fixture
def sign_in(app: Flask, database: Database) -> SignIn:
    return lambda role: people_pages.signed_in(app, database, role)


@pytest.fixture
def support(sign_in: SignIn) -> Browser:
    return sign_in(Role.SUPPORT)


@pytest.fixture
def on_call(sign_in: SignIn) -> Browser:
    return sign_in(Role.ON_CALL)


@pytest.fixture
def notices(database: Database) -> dict[str, UUID]:
    """One notice of every fate, by name."""
    with database.connection() as connection:
        return people_seed.seed(connection)
