"""One DynamoDB Local for the session, started only if a test asks for it; a tenant of its own for every test."""

import itertools
import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import boto3
import pytest

from local.dynamodb_local import DynamoDbLocal, running
from local.places import STATE
from tests.contract.faults import Faults
from tests.contract.stores import Stores, fake_stores, real_stores
from tests.contract.tables import create_tables
from tests.fakes.store import World

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient

_tenants = itertools.count(1)


@pytest.fixture(scope="session")
def database() -> Iterator[DynamoDbLocal]:
    """Named after this process, so that two runs at once leave each other alone."""
    name = f"contract-{os.getpid()}"
    try:
        with running(name) as local:
            create_tables(local.client())
            yield local
    finally:
        shutil.rmtree(STATE / name, ignore_errors=True)


@pytest.fixture(scope="session")
def dynamodb(database: DynamoDbLocal) -> "DynamoDBClient":
    """Make the healthy client."""
    return database.client()


@pytest.fixture
def streams(database: DynamoDbLocal) -> "DynamoDBStreamsClient":
    """Make a reader of the tables' streams."""
    return boto3.client(
        "dynamodbstreams",
        endpoint_url=database.endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


@pytest.fixture
def tenant() -> str:
    """A tenant that no other test uses: the tables are shared, the data is not."""
    return f"tenant-{next(_tenants)}"


@pytest.fixture(params=["fake", "real"])
def stores(request: pytest.FixtureRequest) -> Stores:
    """Make the fakes, then the real thing: every test that asks for this runs on both."""
    if request.param == "fake":
        return fake_stores(World())
    return real_stores(request.getfixturevalue("dynamodb"))


@pytest.fixture(scope="session")
def failing(database: DynamoDbLocal) -> Faults:
    """Make one client whose calls can be made to fail: making a client takes longer than a test does."""
    return Faults(database.client())


@pytest.fixture
def faults(failing: Faults) -> Faults:
    """Hand out the failing client as new."""
    failing.forget()
    return failing
