"""The edge for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.machines import edge as edges


@pytest.fixture
def edge() -> Iterator[edges.Edge]:
    with edges.edge() as made:
        yield made
