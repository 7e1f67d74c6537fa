"""Taking in a request before anything trusts it: size, encoding, media type, and JSON with one meaning only."""

import base64
import binascii
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NoReturn

from shared.domain.canonical import INTEGER_MAX
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


def read_json(text: str) -> Any:  # noqa: ANN401 - validated by the route's model next
    """Parse JSON strictly: no repeated names, no floats, no NaN, no integer that loses digits, no broken text.

    Raises:
        InvalidRequest: the text is not such JSON.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_float=_refuse_float,
            parse_constant=_refuse_float,
            parse_int=_integer,
        )
        # Text that cannot be encoded could be neither digested nor stored; escapes can smuggle it in.
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        msg = "the body holds text that is not valid Unicode"
        raise InvalidRequest(msg) from error
    except (ValueError, RecursionError) as error:
        msg = "the body is not JSON"
        raise InvalidRequest(msg) from error
    return value


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


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        msg = "the body names a field twice"
        raise InvalidRequest(msg)
    return result


def _refuse_float(_text: str) -> NoReturn:
    msg = "numbers in the body have to be whole; amounts are in minor units"
    raise InvalidRequest(msg)


def _integer(text: str) -> int:
    # Far shorter than what Python refuses to convert, far longer than what is exact.
    if len(text) > len(str(INTEGER_MAX)) + 1 or abs(int(text)) > INTEGER_MAX:
        msg = "a number in the body is too large to be exact"
        raise InvalidRequest(msg)
    return int(text)
