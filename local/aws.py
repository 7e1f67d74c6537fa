"""A running local AWS, seen from outside: its address, its credentials, its clients."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import boto3
from botocore.config import Config

from local.environment import isolated
from local.servers import LOOPBACK

ACCOUNT: Final = "000000000000"
REGION: Final = "us-east-1"
# The emulator's root credentials. They open nothing but a server on loopback.
ACCESS_KEY_ID: Final = "test"
SECRET_ACCESS_KEY: Final = "test"  # noqa: S105 - see above


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAws:
    """One running emulator."""

    port: int

    @property
    def endpoint(self) -> str:
        """Base address of every service."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables with which a program that knows AWS talks to this emulator and to nothing else.

        The person's own profiles and credentials are out of its sight, so that a mistake here cannot reach an account.
        """
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            **isolated(),
            "CDK_DEFAULT_ACCOUNT": ACCOUNT,
            "CDK_DEFAULT_REGION": REGION,
        }

    def client(self, service: str) -> Any:  # noqa: ANN401 - annotate where it is called; boto3's types are per service
        """A client of one service, with the emulator's root credentials. One try only, bounded in time."""
        return _session().client(service, endpoint_url=self.endpoint, config=_CLIENT_CONFIG)  # type: ignore[call-overload]


# A local server that does not answer will not answer a second time either. Holding calls may last their full minute.
_CLIENT_CONFIG: Final = Config(
    retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=65, s3={"addressing_style": "path"}
)


@functools.cache
def _session() -> boto3.Session:
    return boto3.Session(aws_access_key_id=ACCESS_KEY_ID, aws_secret_access_key=SECRET_ACCESS_KEY, region_name=REGION)
