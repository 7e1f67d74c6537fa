"""Taking in a request before anything trusts it: size, encoding and media type."""

import base64
import binascii
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from shared.domain.errors import InvalidRequest, RequestTooLarge
from shared.runtime.api import HttpError

# The longest outside words that a request may carry (64,000 bytes) double when every character comes escaped; the rest
# is room for the typed fields. Counted in bytes, before a byte of it is parsed.
BODY_BYTES_MAX: Final = 160_000
_METHODS_WITH_BODY: Final = frozenset({"POST", "PATCH"})
_MEDIA_TYPE: Final = "application/json"


def take_in(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event with its body as plain text.

    Raises:
        RequestTooLarge: the body has too many bytes.
        InvalidRequest: the body is not the encoded UTF-8 text that it claims to be.
        HttpError: the body is not announced as JSON.
    """
    headers = _single_headers(event)
    body = _text(event)
    taken = {**event, "headers": headers, "body": body, "isBase64Encoded": False}
    if _method(event) in _METHODS_WITH_BODY:
        _require_json(headers.get("content-type", ""))
        if not body:
            msg = "a JSON object is expected as the body"
            raise InvalidRequest(msg)
    return taken


def _single_headers(event: Mapping[str, Any]) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in (event.get("headers") or {}).items()}


def _method(event: Mapping[str, Any]) -> str:
    return str(event.get("requestContext", {}).get("http", {}).get("method", "")).upper()


def _text(event: Mapping[str, Any]) -> str | None:
    body = event.get("body")
    if body is None:
        return None
    raw = str(body).encode(errors="surrogatepass")
    if not event.get("isBase64Encoded"):
        _require_small(len(raw))
        return str(body)
    # Four characters carry three bytes.
    _require_small(len(raw) * 3 // 4 - raw[-2:].count(b"="))
    try:
        return base64.b64decode(raw, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        msg = "the body is not UTF-8 text"
        raise InvalidRequest(msg) from error


def _require_small(size: int) -> None:
    if size > BODY_BYTES_MAX:
        msg = f"the body has {size} bytes, {BODY_BYTES_MAX} are allowed"
        raise RequestTooLarge(msg)


def _require_json(content_type: str) -> None:
    media_type, _, parameters = content_type.lower().partition(";")
    charset = parameters.strip().replace('"', "")
    if media_type.strip() != _MEDIA_TYPE or charset not in {"", "charset=utf-8"}:
        msg = f"the body has to be {_MEDIA_TYPE} in UTF-8"
        raise HttpError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", msg)
