"""The provider on moto, asked through its real handler with the events of an HTTP API."""

import base64
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl

import boto3
import pytest
from moto import mock_aws

from sandbox import handler as entry
from sandbox.provider import Provider

TABLE = "holdfast-test-sandbox-ledger"
SECRET = "holdfast-test-sandbox-key"
API_KEY = "a-key-for-tests"
wire = entry._provider.__wrapped__


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    body: Any
    content_type: str


@dataclass(slots=True)
class Bank:
    """A caller of the provider.

    ``holds`` is how long answers were held, in seconds; ``while_held`` is called during each.
    """

    dynamodb: Any
    secrets: Any
    holds: list[float] = field(default_factory=list)
    while_held: Callable[[], object] = lambda: None
    provider: Provider = field(init=False)

    def serve(self, provider: Provider) -> None:
        """Let this provider answer from now on."""
        self.provider = replace(provider, sleep=self._hold)

    def _hold(self, seconds: float) -> None:
        self.holds.append(seconds)
        self.while_held()

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        as_base64: bool = False,
    ) -> Answer:
        raw = body if isinstance(body, str) else json.dumps(body)
        path, _, query = path.partition("?")
        event: dict[str, Any] = {
            "version": "2.0",
            "rawPath": path,
            "rawQueryString": query,
            "headers": {"authorization": f"Bearer {API_KEY}", "content-type": "application/json"},
            "requestContext": {"http": {"method": method, "path": path}},
            "isBase64Encoded": as_base64,
        }
        if key is not None:
            event["headers"]["idempotency-key"] = key
        event["headers"].update(headers or {})
        if query:
            event["queryStringParameters"] = dict(parse_qsl(query))
        if body is not None:
            event["body"] = base64.b64encode(raw.encode()).decode() if as_base64 else raw
        reply = entry.handler(event, object())
        return Answer(
            status=reply["statusCode"], body=json.loads(reply["body"]), content_type=reply["headers"]["Content-Type"]
        )

    def ledger(self, collection: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.ask("GET", f"/{collection}").body["items"]
        return items

    def rows(self) -> int:
        """Count every item of the table, whatever it is."""
        return int(self.dynamodb.scan(TableName=TABLE, Select="COUNT")["Count"])


class OneCallAtATime:
    """A client whose calls are atomic, as DynamoDB's are; moto checks a condition and writes in two steps."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lock = threading.Lock()
        self.exceptions = client.exceptions

    def get_paginator(self, operation: str) -> Any:
        return self._client.get_paginator(operation)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._client, name)

        def locked(**arguments: Any) -> Any:
            with self._lock:
                return call(**arguments)

        return locked


def create_table(dynamodb: Any) -> None:
    """Create the table as the sandbox stack does."""
    dynamodb.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": "collection", "AttributeType": "S"},
            {"AttributeName": "record", "AttributeType": "S"},
        ],
        KeySchema=[
            {"AttributeName": "collection", "KeyType": "HASH"},
            {"AttributeName": "record", "KeyType": "RANGE"},
        ],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """The provider's part of the cloud; making clients is what takes the time, so a module shares them."""

    dynamodb: Any
    secrets: Any
    provider: Provider


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    """Stand the secret up and wire the provider as its own handler does."""
    with pytest.MonkeyPatch.context() as environment, mock_aws():
        environment.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        environment.setenv("SANDBOX_TABLE", TABLE)
        environment.setenv("SANDBOX_SECRET_NAME", SECRET)
        secrets = boto3.client("secretsmanager")
        secrets.create_secret(Name=SECRET, SecretString=API_KEY)
        yield Cloud(dynamodb=boto3.client("dynamodb"), secrets=secrets, provider=wire())


@pytest.fixture
def bank(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bank]:
    """Stand an empty provider up."""
    create_table(cloud.dynamodb)
    bank = Bank(cloud.dynamodb, cloud.secrets)
    bank.serve(cloud.provider)
    monkeypatch.setattr(entry, "_provider", lambda: bank.provider)
    yield bank
    cloud.dynamodb.delete_table(TableName=TABLE)
