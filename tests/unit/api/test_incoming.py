"""Requests before anything trusts them."""

import base64
import json
from typing import Any

import pytest

from functions.api.incoming import BODY_BYTES_MAX, take_in
from shared.domain.errors import InvalidRequest, RequestTooLarge
from shared.runtime.api import HttpError
from shared.runtime.strict_json import read_json


def an_event(body: str | None, *, encoded: bool = False, **headers: str) -> dict[str, Any]:
    """Make a POST as the gateway hands it over."""
    return {
        "headers": {"content-type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}},
        "requestContext": {"http": {"method": "POST"}},
        "body": body,
        "isBase64Encoded": encoded,
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a": 1,}',
        "{'a': 1}",
        '{"a": 1} {"a": 1}',
        '{"a": 1, "a": 1}',
        '{"b": {"a": 1, "a": 2}}',
        '{"a": 1.0}',
        '{"a": 1e3}',
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": -Infinity}',
        '{"a": 9007199254740992}',
        '{"a": -9007199254740992}',
        '{"a": ' + "9" * 5_000 + "}",
        '{"a": "\\ud800"}',
        '{"\\udfff": 1}',
        "[" * 100_000,
        '{"a":' * 20_000,
        '{"a": "line\nbreak"}',
    ],
)
def test_json_with_more_than_one_meaning_is_refused(text: str) -> None:
    """Repeated names, floats, NaN, inexact integers, broken text and endless nesting never reach a model."""
    with pytest.raises(InvalidRequest):
        read_json(text)


def test_json_with_one_meaning_is_read() -> None:
    """What is left is plain: whole numbers stay whole, text stays as it was written."""
    text = '{"a": 9007199254740991, "b": "zo\\u00eb \\ud83d\\ude00", "c": [null, true, -5]}'

    assert read_json(text) == {"a": 2**53 - 1, "b": "zoë 😀", "c": [None, True, -5]}


@pytest.mark.parametrize("encoded", [False, True])
def test_size_is_counted_in_bytes_before_anything_is_read(encoded: bool) -> None:
    """B59: the limit holds for characters of several bytes and for encoded bodies; the largest allowed body passes."""
    fits = "€" * (BODY_BYTES_MAX // 3)
    fits += "x" * (BODY_BYTES_MAX - len(fits.encode()))

    def wrap(text: str) -> str:
        return base64.b64encode(text.encode()).decode() if encoded else text

    assert take_in(an_event(wrap(fits), encoded=encoded))["body"] == fits
    with pytest.raises(RequestTooLarge):
        take_in(an_event(wrap(fits + "x"), encoded=encoded))


def test_an_encoded_body_is_decoded() -> None:
    """B45: a gateway may deliver any body in base64."""
    body = base64.b64encode(json.dumps({"note": "zoë"}, ensure_ascii=False).encode()).decode()

    taken = take_in(an_event(body, encoded=True))

    assert read_json(taken["body"]) == {"note": "zoë"}
    assert taken["isBase64Encoded"] is False


@pytest.mark.parametrize("body", ["not base64!", "abc", base64.b64encode(b"\xff\xfe").decode(), "e30=\n"])
def test_an_encoded_body_that_is_no_text_is_refused(body: str) -> None:
    """B45: what cannot be decoded is a bad request, never a crash."""
    with pytest.raises(InvalidRequest):
        take_in(an_event(body, encoded=True))


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "Application/JSON", "application/json; charset=utf-8", 'application/json;charset="UTF-8"'],
)
def test_json_may_be_announced_in_every_usual_way(content_type: str) -> None:
    """Case and the one charset that JSON has are accepted."""
    assert take_in(an_event("{}", content_type=content_type))["body"] == "{}"


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "application/jsonp",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
        "application/json, text/html",
    ],
)
def test_anything_else_is_no_json(content_type: str) -> None:
    """A form that a browser sends on its own is never taken for a request."""
    with pytest.raises(HttpError) as refused:
        take_in(an_event("{}", content_type=content_type))

    assert refused.value.status == 415


def test_headers_are_read_whatever_their_case_and_may_be_absent() -> None:
    """B80: names are compared without case; an event without a header map is no crash."""
    event = an_event("{}")
    event["headers"] = {"Content-Type": "application/json", "IDEMPOTENCY-KEY": "k"}

    assert take_in(event)["headers"]["idempotency-key"] == "k"
    with pytest.raises(HttpError):
        take_in({**event, "headers": None})
