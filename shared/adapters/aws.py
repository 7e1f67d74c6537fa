"""Clients of the cloud: one per service and process, made when first asked for, each with its limits in one table.

A client's worst case has to end before its function is ended, or a crash takes the place of an error.
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from botocore.config import Config

if TYPE_CHECKING:
    from botocore.session import Session
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_kms import KMSClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_scheduler import EventBridgeSchedulerClient
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_stepfunctions import SFNClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a client waits for a connection and for an answer, and how often it asks in all."""

    connect_seconds: float = 1
    read_seconds: float
    attempts: int = 1

    @property
    def seconds_max(self) -> float:
        """The longest that one call can take, pauses between attempts left out."""
        return self.attempts * (self.connect_seconds + self.read_seconds)

    def config(self) -> Config:
        """Return them as botocore wants them."""
        return Config(
            connect_timeout=self.connect_seconds,
            read_timeout=self.read_seconds,
            retries={"total_max_attempts": self.attempts, "mode": "standard"},
            # An idle connection is kept open through a warm function's pauses instead of failing the next call.
            tcp_keepalive=True,
        )


LIMITS: Final = {
    # DynamoDB answers in milliseconds. Its calls are repeated by the stores, which know their own lost replies.
    "dynamodb": Limits(read_seconds=2),
    # Making and checking a MAC changes nothing, so the client itself may ask again.
    "kms": Limits(read_seconds=2, attempts=3),
    # Objects of a few kilobytes; a second version of the same object does no harm.
    "s3": Limits(read_seconds=3, attempts=3),
    # `propose` lives for 60 s. One attempt: a hidden second one would be a second bill that nobody counted (B58).
    "bedrock-runtime": Limits(connect_seconds=2, read_seconds=50),
    # Longer than a tool lives (12 s), shorter than `perform` does (20 s). One attempt: a second one is a second effect.
    "lambda": Limits(read_seconds=15),
    # Starting by name and answering a token are harmless twice. `open_wait` lives for 10 s and does more than this.
    "stepfunctions": Limits(read_seconds=2, attempts=2),
    # A subscriber can tell a repeat. `deliver` lives for 30 s and makes several calls.
    "events": Limits(read_seconds=3, attempts=2),
    # Setting a timer by its name is harmless twice.
    "scheduler": Limits(read_seconds=3, attempts=2),
    # Reading changes nothing. A sender waits, and comes again after a 503.
    "secretsmanager": Limits(read_seconds=2, attempts=2),
}


@cache
def dynamodb() -> "DynamoDBClient":
    """Return the client of the record tables."""
    client: DynamoDBClient = _client("dynamodb")
    return client


@cache
def kms() -> "KMSClient":
    """Return the client of the key service."""
    client: KMSClient = _client("kms")
    return client


@cache
def s3() -> "S3Client":
    """Return the client of the buckets."""
    client: S3Client = _client("s3")
    return client


@cache
def bedrock() -> "BedrockRuntimeClient":
    """Return the client of the models."""
    client: BedrockRuntimeClient = _client("bedrock-runtime")
    return client


@cache
def lambda_() -> "LambdaClient":
    """Return the client that calls tools."""
    client: LambdaClient = _client("lambda")
    return client


@cache
def stepfunctions() -> "SFNClient":
    """Return the client of the state machines."""
    client: SFNClient = _client("stepfunctions")
    return client


@cache
def eventbridge() -> "EventBridgeClient":
    """Return the client of the event bus."""
    client: EventBridgeClient = _client("events")
    return client


@cache
def scheduler() -> "EventBridgeSchedulerClient":
    """Return the client of the timers."""
    client: EventBridgeSchedulerClient = _client("scheduler")
    return client


@cache
def secretsmanager() -> "SecretsManagerClient":
    """Return the client of the secret store."""
    client: SecretsManagerClient = _client("secretsmanager")
    return client


@cache
def _session() -> "Session":
    # botocore alone: boto3 would add a third to the import time and nothing that is used here.
    from botocore.session import Session  # noqa: PLC0415 - paid for by the functions that make a client

    return Session()


def _client(service: str) -> Any:  # noqa: ANN401 - the callers name the type
    return _session().create_client(service, config=LIMITS[service].config())
