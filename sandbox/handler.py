"""The provider behind an HTTP API (payload format 2.0): one function answers every route.

Deployment contract:

* table: partition key ``collection`` (S), sort key ``record`` (S); its name in ``SANDBOX_TABLE``;
* secret: its ``SecretString`` is the API key as it stands; its name or ARN in ``SANDBOX_SECRET_NAME``;
* grants: ``GetItem``, ``PutItem``, ``UpdateItem``, ``DeleteItem``, ``Query`` on the table (a transaction needs no
  right of its own) and ``secretsmanager:GetSecretValue`` on the secret;
* timeout: 30 seconds, because an answer can be held for 25;
* routes: ``$default``.
"""

from __future__ import annotations

import base64
import os
import time
import uuid
from datetime import UTC, datetime
from functools import cache
from typing import Any

import boto3
from botocore.config import Config

from sandbox.credentials import Credentials
from sandbox.faults import Faults
from sandbox.ledger import Ledger
from sandbox.provider import Provider, Request


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one request of the HTTP API."""
    response = _provider().answer(_request(event))
    return {
        "statusCode": int(response.status),
        "headers": {"Content-Type": response.content_type, "Cache-Control": "no-store"},
        "body": response.body,
    }


@cache
def _provider() -> Provider:
    # Within the 30 seconds of the function there is room for one hold and for nothing that hangs.
    config = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3})
    dynamodb = boto3.client("dynamodb", config=config)
    table = os.environ["SANDBOX_TABLE"]
    return Provider(
        ledger=Ledger(dynamodb, table),
        faults=Faults(dynamodb, table),
        credentials=Credentials(
            boto3.client("secretsmanager", config=config), os.environ["SANDBOX_SECRET_NAME"], clock=time.monotonic
        ),
        now=lambda: datetime.now(UTC),
        new_id=lambda prefix: f"{prefix}_{uuid.uuid4().hex[:24]}",
        sleep=time.sleep,
    )


def _request(event: dict[str, Any]) -> Request:
    http = event["requestContext"]["http"]
    body = event.get("body") or ""
    return Request(
        method=http["method"],
        # The gateway has decoded the path; keys have no '/' or '%', so that cannot matter to them.
        path=tuple(part for part in event["rawPath"].split("/") if part),
        query=event.get("queryStringParameters") or {},
        headers={name.lower(): value for name, value in (event.get("headers") or {}).items()},
        body=base64.b64decode(body) if event.get("isBase64Encoded") else body.encode(),
    )
