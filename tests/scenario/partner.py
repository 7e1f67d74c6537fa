"""An outside system in front of the deployed API: let in by a secret, and able to sign."""

import base64
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from local.http_client import Answer, HttpClient
from local.instance import Instance
from tests.fakes.signed_event import Sender

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Partner:
    """A source of events of one tenant, with the secret that it signs with."""

    deployed: Instance
    source: str
    key: bytes

    @property
    def secret_name(self) -> str:
        """Where its secrets are kept."""
        return f"holdfast-local-webhook/acme/{self.source}"

    def store(self, *keys: bytes) -> None:
        """Put these secrets into the store, as an operator does."""
        client: SecretsManagerClient = self.deployed.aws.client("secretsmanager")
        listed = [{"secret": "whsec_" + base64.b64encode(key).decode(), "accept_until": None} for key in keys]
        client.put_secret_value(SecretId=self.secret_name, SecretString=json.dumps({"secrets": listed}))

    def send(self, body: object, event_id: str | None = None, *, path: str | None = None, **changed: str) -> Answer:
        """Sign and send an event; `changed` replaces headers after signing."""
        raw = json.dumps(body).encode()
        sender = Sender(source=self.source, secret=self.key)
        signed = sender.headers(raw, event_id=event_id or f"msg_{secrets.token_hex(8)}", at=int(time.time()))
        headers = {"content-type": "application/json", **signed}
        headers |= {name.replace("_", "-"): value for name, value in changed.items()}
        client = HttpClient(base=self.deployed.api_address)
        return client.request("POST", path or f"/webhooks/acme/{self.source}", raw=raw, headers=headers)


@contextmanager
def let_in(deployed: Instance, source: str) -> Iterator[Partner]:
    """Let a source in by adding its secret; nothing is deployed for it."""
    client: SecretsManagerClient = deployed.aws.client("secretsmanager")
    partner = Partner(deployed=deployed, source=source, key=secrets.token_bytes(32))
    client.create_secret(Name=partner.secret_name, SecretString="{}")
    try:
        partner.store(partner.key)
        yield partner
    finally:
        client.delete_secret(SecretId=partner.secret_name, ForceDeleteWithoutRecovery=True)
