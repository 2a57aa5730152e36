"""Fixtures: deployments, in which the tests of this folder start and kill servers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults.deployment import Deployment, a_deployment
from tests.support.servers.forked_servers import Forker
from tests.support.stores import empty_store


@pytest.fixture
async def deployment(forker: Forker, tmp_path: Path) -> AsyncIterator[Deployment]:
    """A deployment on SQLite."""
    async with a_deployment(forker, tmp_path) as deployment:
        yield deployment


@pytest.fixture
async def postgres_deployment(
    forker: Forker, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Deployment]:
    """A deployment on PostgreSQL."""
    with empty_store("postgres", request, tmp_path) as url:
        async with a_deployment(forker, tmp_path, url) as deployment:
            yield deployment


@pytest.fixture(params=["deployment", "postgres_deployment"], ids=["sqlite", "postgres"])
def either_deployment(request: pytest.FixtureRequest) -> Deployment:
    """A deployment on each database: the test runs twice."""
    deployment: Deployment = request.getfixturevalue(request.param)
    return deployment
