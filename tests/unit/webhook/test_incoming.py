"""Deliveries before anything trusts them: one rule for headers, the bytes as they were sent."""

import base64
from typing import Any

import pytest

from functions.webhook.incoming import BODY_BYTES_MAX, take_in
from shared.domain.errors import InvalidRequest, NotAuthenticated, RequestTooLarge
from tests.fakes.signed_event import gateway_event

HEADERS = {"webhook-id": "msg_1", "webhook-timestamp": "1791547200", "webhook-signature": "v1,AAAA"}
BODY = b'{"a":  1, "b": "\xe2\x82\xb9"}\n'


def read(event: dict[str, Any]) -> tuple[str, str, str, bytes]:
    """Take an event in and name what came out."""
    delivery = take_in(event).delivery
    return delivery.event_id, delivery.timestamp, delivery.signatures, delivery.body


EXPECTED = ("msg_1", "1791547200", "v1,AAAA", BODY)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("encoded", [False, True])
def test_both_payload_formats_and_both_encodings_give_the_same_bytes(version: str, encoded: bool) -> None:
    """B45, B80: what was signed is what is verified, however the gateway hands it over."""
    assert read(gateway_event(BODY, HEADERS, version=version, encoded=encoded)) == EXPECTED


@pytest.mark.parametrize("spelling", ["webhook-id", "Webhook-Id", "WEBHOOK-ID", "wEbHoOk-iD"])
@pytest.mark.parametrize("value", ["msg_1", " msg_1", "msg_1\t", "  msg_1  "])
def test_a_header_is_read_in_any_case_and_without_its_blanks(spelling: str, value: str) -> None:
    """B80: one reading rule for every spelling."""
    headers = {name: text for name, text in HEADERS.items() if name != "webhook-id"} | {spelling: value}
    assert read(gateway_event(BODY, headers)) == EXPECTED


def test_headers_may_come_in_the_list_form_alone() -> None:
    """B80: a balancer with multi-value headers sends no plain ones."""
    event = gateway_event(BODY, None) | {"multiValueHeaders": {name.upper(): [v] for name, v in HEADERS.items()}}
    assert read(event) == EXPECTED


def test_the_same_value_twice_is_one_value() -> None:
    """Payload format 1.0 names every header in two places."""
    event = gateway_event(BODY, HEADERS, version="1.0")
    event["multiValueHeaders"]["webhook-id"] = ["msg_1", "msg_1"]
    assert read(event) == EXPECTED


@pytest.mark.parametrize(
    "change",
    [
        {"headers": {**HEADERS, "Webhook-Id": "msg_2"}},
        {"multiValueHeaders": {"webhook-id": ["msg_1", "msg_2"]}},
        {"multiValueHeaders": {"webhook-id": ["msg_2"]}},
        {"multiValueHeaders": {"Webhook-Signature": ["v1,BBBB"]}},
        {"multiValueHeaders": {"webhook-timestamp": ["1791547201", "1791547200"]}},
    ],
)
def test_a_header_with_two_meanings_is_refused(change: dict[str, Any]) -> None:
    """B80: parser and verifier could each believe another one."""
    with pytest.raises(NotAuthenticated):
        take_in(gateway_event(BODY, HEADERS) | change)


@pytest.mark.parametrize("headers", [None, {}, {"webhook-id": None}])
def test_without_headers_nobody_is_speaking(headers: dict[str, Any] | None) -> None:
    """B80: no map at all is an empty one; what is missing has no form that could be verified."""
    delivery = take_in(gateway_event(BODY, None) | {"headers": headers}).delivery
    assert not delivery.well_formed


@pytest.mark.parametrize("text", ["%%%", "AAA", "{}", "A===", BODY.decode(), "AA AA"])
def test_a_body_that_is_not_encoded_as_it_claims_is_refused(text: str) -> None:
    """B45: the flag says base64 and the body is none."""
    with pytest.raises(InvalidRequest):
        take_in(gateway_event(BODY, HEADERS) | {"body": text, "isBase64Encoded": True})


def test_encoded_text_without_the_flag_is_taken_as_it_is() -> None:
    """B45: nothing is guessed; the signature will not fit."""
    text = base64.b64encode(BODY).decode()
    assert read(gateway_event(BODY, HEADERS) | {"body": text})[3] == text.encode()


@pytest.mark.parametrize("body", [None, 7, {"a": 1}])
def test_no_body_is_an_empty_one(body: object) -> None:
    """B45: the gateway sends null for none."""
    assert read(gateway_event(BODY, HEADERS) | {"body": body})[3] == b""


@pytest.mark.parametrize("encoded", [False, True])
def test_size_is_counted_in_bytes_and_first(encoded: bool) -> None:
    """Nothing of a large body is decoded, and no header of it is looked at."""
    fitting = gateway_event(b"x" * BODY_BYTES_MAX, HEADERS, encoded=encoded)
    assert len(read(fitting)[3]) == BODY_BYTES_MAX
    with pytest.raises(RequestTooLarge):
        take_in(gateway_event(b"x" * (BODY_BYTES_MAX + 1), None, encoded=encoded))
    with pytest.raises(RequestTooLarge):
        take_in(gateway_event("\u20b9".encode() * (BODY_BYTES_MAX // 3 + 1), None, encoded=encoded))


@pytest.mark.parametrize("place", [None, {}, [], "x", {"tenant": None}])
def test_an_address_without_parts_is_nobodys(place: object) -> None:
    """What the gateway did not match has no tenant and no source."""
    incoming = take_in(gateway_event(BODY, HEADERS) | {"pathParameters": place})
    assert incoming.source == ""
