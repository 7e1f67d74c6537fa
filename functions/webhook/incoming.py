"""Taking in a delivery before anything trusts it: its size, its headers by one rule, its bytes as they were sent."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from shared.adapters.webhooks.standard import Delivery
from shared.domain.errors import InvalidRequest, NotAuthenticated, RequestTooLarge

# An answer is a handful of flat fields. Counted before a byte of it is decoded or signed.
BODY_BYTES_MAX: Final = 64_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A delivery, with the address it came to and the media type it was announced as. All of it is a stranger's."""

    tenant: str
    source: str
    content_type: str
    delivery: Delivery


def take_in(event: Mapping[str, Any]) -> Incoming:
    """Read an event of the gateway, in payload format 1.0 or 2.0.

    Raises:
        RequestTooLarge: the body has too many bytes.
        NotAuthenticated: one of the three headers is missing, or was sent twice with two meanings (B80).
        InvalidRequest: the body is not encoded the way it claims to be (B45).
    """
    body = event.get("body")
    raw = body.encode(errors="surrogatepass") if isinstance(body, str) else b""
    is_encoded = bool(event.get("isBase64Encoded"))
    # Four characters carry three bytes.
    size = len(raw) * 3 // 4 - raw[-2:].count(b"=") if is_encoded else len(raw)
    if size > BODY_BYTES_MAX:
        msg = f"the body has {size} bytes, {BODY_BYTES_MAX} are allowed"
        raise RequestTooLarge(msg)
    headers = {
        name: _only(event, name) for name in ("webhook-id", "webhook-timestamp", "webhook-signature", "content-type")
    }
    path = event.get("pathParameters")
    place = path if isinstance(path, Mapping) else {}
    return Incoming(
        tenant=str(place.get("tenant", "")),
        source=str(place.get("source", "")),
        content_type=headers["content-type"],
        delivery=Delivery(
            event_id=headers["webhook-id"],
            timestamp=headers["webhook-timestamp"],
            signatures=headers["webhook-signature"],
            body=_decoded(raw) if is_encoded else raw,
        ),
    )


def _only(event: Mapping[str, Any], name: str) -> str:
    """The one value of a header, whatever the case of its name and wherever the gateway put it; empty if there is none.

    Raises:
        NotAuthenticated: it has more than one value. Which of them a sender meant is not for us to choose.
    """
    values = {text for text in _values(event, name) if text}
    if len(values) > 1:
        msg = f"{name} was sent with several values"
        raise NotAuthenticated(msg)
    return next(iter(values), "")


def _values(event: Mapping[str, Any], name: str) -> Iterator[str]:
    for place in ("headers", "multiValueHeaders"):
        headers = event.get(place)
        if not isinstance(headers, Mapping):
            continue
        for key, value in headers.items():
            if str(key).strip().lower() == name:
                for each in value if isinstance(value, list) else [value]:
                    yield "" if each is None else str(each).strip(" \t")


def _decoded(raw: bytes) -> bytes:
    try:
        return base64.b64decode(raw, validate=True)
    except binascii.Error as error:
        msg = "the body is not encoded the way it claims to be"
        raise InvalidRequest(msg) from error
