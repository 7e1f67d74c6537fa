"""A sender of signed events: makes what the gateway hands over for one, in both payload formats."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.adapters.webhooks.standard import sign

SECRET = b"a signing secret of a test, long enough"
OTHER_SECRET = b"another signing secret of a test, as long"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Somebody who signs with a secret."""

    tenant: str = "acme"
    source: str = "partner"
    secret: bytes = SECRET

    def headers(self, body: bytes, *, event_id: str, at: datetime | int | str) -> dict[str, str]:
        """Sign a body and make the three headers."""
        timestamp = str(int(at.timestamp())) if isinstance(at, datetime) else str(at)
        signature = base64.b64encode(sign(self.secret, event_id=event_id, timestamp=timestamp, body=body)).decode()
        return {"webhook-id": event_id, "webhook-timestamp": timestamp, "webhook-signature": f"v1,{signature}"}

    def event(
        self,
        body: bytes | Mapping[str, object],
        *,
        at: datetime | int | str,
        event_id: str = "msg_1",
        version: str = "2.0",
        encoded: bool = False,
        content_type: str | None = "application/json",
        **changed: str | None,
    ) -> dict[str, Any]:
        """Make the gateway's event for a delivery. `changed` replaces or drops headers after signing."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = self.headers(raw, event_id=event_id, at=at) | ({"content-type": content_type} if content_type else {})
        headers |= {name.replace("_", "-"): value for name, value in changed.items() if value is not None}
        for name in [name for name, value in changed.items() if value is None]:
            headers.pop(name.replace("_", "-"), None)
        return gateway_event(raw, headers, tenant=self.tenant, source=self.source, version=version, encoded=encoded)


def gateway_event(
    raw: bytes | None,
    headers: Mapping[str, str] | None,
    *,
    tenant: str = "acme",
    source: str = "partner",
    version: str = "2.0",
    encoded: bool = False,
) -> dict[str, Any]:
    """Make an event as an HTTP API does in payload format 1.0 or 2.0."""
    text = None if raw is None else base64.b64encode(raw).decode() if encoded else raw.decode(errors="surrogateescape")
    path = f"/webhooks/{tenant}/{source}"
    event: dict[str, Any] = {
        "version": version,
        "headers": None if headers is None else dict(headers),
        "pathParameters": {"tenant": tenant, "source": source},
        "body": text,
        "isBase64Encoded": encoded,
    }
    if version == "2.0":
        return event | {
            "routeKey": "POST /webhooks/{tenant}/{source}",
            "rawPath": path,
            "requestContext": {"requestId": "request-1", "http": {"method": "POST", "path": path}},
        }
    multi = None if headers is None else {name.title(): [value] for name, value in headers.items()}
    return event | {
        "resource": "/webhooks/{tenant}/{source}",
        "path": path,
        "httpMethod": "POST",
        "headers": None if headers is None else {name.title(): value for name, value in headers.items()},
        "multiValueHeaders": multi,
        "requestContext": {"requestId": "request-1", "httpMethod": "POST", "path": path},
    }
