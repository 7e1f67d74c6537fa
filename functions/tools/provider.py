"""Wire a tool to its provider: one host and one secret, named by two environment variables."""

import os
import time
from functools import cache
from typing import Final

import boto3
from botocore.config import Config

from functions.tools.http_call import Provider
from shared.adapters.http.endpoint import Endpoint
from shared.adapters.secretsmanager.live_secret import LiveSecret

# A tool's function ends after 12 s. The secret takes at most 3 of them and the exchange 8: the tool always gets to
# say what it knows, instead of being cut off.
EXCHANGE_SECONDS: Final = 8.0
SECRET_CONNECT_SECONDS: Final = 1
SECRET_READ_SECONDS: Final = 2


@cache
def provider(prefix: str) -> Provider:
    """Wire the provider whose settings are ``<prefix>_URL`` and ``<prefix>_SECRET_NAME``, once per process.

    Raises:
        KeyError: a setting is missing.
        ValueError: the URL is no endpoint that may be spoken to.
    """
    once = Config(
        connect_timeout=SECRET_CONNECT_SECONDS,
        read_timeout=SECRET_READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": 1},
    )
    return Provider(
        endpoint=Endpoint(base_url=os.environ[f"{prefix}_URL"], exchange_seconds=EXCHANGE_SECONDS),
        secret=LiveSecret(
            boto3.client("secretsmanager", config=once), os.environ[f"{prefix}_SECRET_NAME"], clock=time.monotonic
        ),
    )
