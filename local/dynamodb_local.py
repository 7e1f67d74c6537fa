"""DynamoDB Local: AWS's own DynamoDB for one machine, for what must hold under real conditions and transactions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from local.environment import plain_environment
from local.places import ROOT, VENV_BIN, Place, installed
from local.servers import LOOPBACK, Server, free_port

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

HOME: Final = ROOT / ".build" / "dynamodb-local"

# The Java machine is up within 3 s on an idle machine with two cores.
_READY_SECONDS_MAX: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbLocal:
    """A running one."""

    port: int

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://{LOOPBACK}:{self.port}"

    def client(self) -> DynamoDBClient:
        """A client of its own, without retries, so that a test sees every answer."""
        return boto3.Session(
            aws_access_key_id="test",
            aws_secret_access_key="test",  # noqa: S106 - it accepts any
            region_name="us-east-1",
        ).client(
            "dynamodb",
            endpoint_url=self.endpoint,
            config=Config(
                retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=30, max_pool_connections=64
            ),
        )


@contextlib.contextmanager
def running(name: str = "dynamodb-local") -> Iterator[DynamoDbLocal]:
    """An empty DynamoDB in memory for as long as the block lasts. What an earlier run left is ended first.

    Args:
        name: names the state folder below ``.local``; two blocks of one name exclude each other.

    Raises:
        LocalProblem: set-up has not fetched it, or it does not start.
    """
    server = Server(place=Place(name=name), name="dynamodb")
    server.stop()
    port = free_port()
    installed(HOME / "DynamoDBLocal.jar")
    started = server.start(
        [installed(VENV_BIN / "python"), "-m", "local.dynamodb_process", HOME, str(port)],
        port=port,
        environment=plain_environment(),
        healthy=lambda at: _answers(DynamoDbLocal(port=at)),
        seconds_max=_READY_SECONDS_MAX,
        folder=ROOT,
    )
    try:
        yield DynamoDbLocal(port=started.port)
    finally:
        server.stop()


def _answers(database: DynamoDbLocal) -> bool:
    try:
        database.client().list_tables(Limit=1)
    except (BotoCoreError, ClientError):
        return False
    return True
