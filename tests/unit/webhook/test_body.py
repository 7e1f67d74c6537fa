"""What a verified sender says: one meaning, the promised fields, flat."""

import json

import pytest

from functions.webhook.body import read_event
from functions.webhook.incoming import Incoming, take_in
from shared.domain.answer import SignedEvent
from shared.domain.errors import InvalidRequest
from shared.runtime.strict_json import read_json, whole_number
from tests.fakes.signed_event import gateway_event

HEADERS = {"webhook-id": "msg_1", "webhook-timestamp": "1791547200", "webhook-signature": "v1,AAAA"}


def incoming(body: bytes, content_type: str = "application/json") -> Incoming:
    """Take in a delivery; its signature is not asked for here."""
    return take_in(gateway_event(body, HEADERS | {"content-type": content_type}, encoded=True))


def test_a_whole_event_is_read() -> None:
    """Every field, with spacing, order and escapes of the sender's own choice."""
    body = (
        b'{ "request_version":2,"answer": {"b":  "\\u20b9", "a" : 1.0, "c":null, "d":false},\n'
        b'"correlation_id":"R-88"}\n'
    )

    assert read_event(incoming(body)) == SignedEvent(
        source="partner",
        event_id="msg_1",
        correlation_id="R-88",
        request_version=2,
        answer={"a": 1, "b": "\u20b9", "c": None, "d": False},
    )


def test_the_same_meaning_has_the_same_digest() -> None:
    """R2: two deliveries that say the same in other bytes are recognised as the same."""
    one = read_event(incoming(b'{"correlation_id":"R-88","answer":{"a":1,"b":true}}'))
    two = read_event(incoming(b'{"answer":{"b" :true,"a":1.0}, "correlation_id":"R-88"}'))

    assert one.digest == two.digest


def test_true_is_not_one() -> None:
    """Types are kept apart in what is digested."""
    one, two = (
        read_event(incoming(json.dumps({"correlation_id": "R", "answer": {"a": a}}).encode())) for a in (1, True)
    )
    assert one.digest != two.digest


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"7",
        b'"text"',
        b"{",
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b"{}",
        b'{"correlation_id":"R-88"}',
        b'{"answer":{}}',
        b'{"correlation_id":"R-88","answer":{},"answer":{}}',
        b'{"correlation_id":"R-88","answer":{"amount":1,"amount":2}}',
        b'{"correlation_id":"R-88","correlation_id":"R-89","answer":{}}',
        b'{"correlation_id":"R-88","answer":{},"tenant":"globex"}',
        b'{"correlation_id":"R-88","answer":{},"event_id":"msg_2"}',
        b'{"correlation_id":"","answer":{}}',
        b'{"correlation_id":"R#88","answer":{}}',
        b'{"correlation_id":"R-88\\n","answer":{}}',
        b'{"correlation_id":88,"answer":{}}',
        b'{"correlation_id":"R-88","answer":[]}',
        b'{"correlation_id":"R-88","answer":null}',
        b'{"correlation_id":"R-88","answer":{"":1}}',
        b'{"correlation_id":"R-88","answer":{"a":{}}}',
        b'{"correlation_id":"R-88","answer":{"a":[1]}}',
        b'{"correlation_id":"R-88","answer":{"a":1.5}}',
        b'{"correlation_id":"R-88","answer":{"a":1e400}}',
        b'{"correlation_id":"R-88","answer":{"a":1e99999999999999999999}}',
        b'{"correlation_id":"R-88","answer":{"a":NaN}}',
        b'{"correlation_id":"R-88","answer":{"a":9007199254740993}}',
        b'{"correlation_id":"R-88","answer":{"a":"\\ud800"}}',
        b'{"correlation_id":"R-88","answer":{},"request_version":0}',
        b'{"correlation_id":"R-88","answer":{},"request_version":"1"}',
        b'{"correlation_id":"R-88","answer":{},"request_version":true}',
        b'{"correlation_id":"R-88","answer":{},"request_version":4294967296}',
        b'{"correlation_id":"R-88","answer":{' + b",".join(b'"f%d":1' % n for n in range(101)) + b"}}",
        b'{"correlation_id":"R-88","answer":{"' + b"a" * 101 + b'":1}}',
        b'{"correlation_id":"R-88","answer":' * 200,
        b"[" * 60_000,
    ],
)
def test_anything_else_is_refused(body: bytes) -> None:
    """B14: repeated names, unknown fields, inexact numbers, nesting, broken text: 400, and never more than that."""
    with pytest.raises(InvalidRequest):
        read_event(incoming(body))


@pytest.mark.parametrize("content_type", ["", "application/json", "application/json; charset=UTF-8", "text/plain"])
def test_the_media_type_is_not_what_counts(content_type: str) -> None:
    """Senders announce JSON in many ways, or not at all."""
    assert read_event(incoming(b'{"correlation_id":"R-88","answer":{}}', content_type)).correlation_id == "R-88"


@pytest.mark.parametrize("charset", ["utf-16", '"UTF-16"', "latin1", ""])
def test_another_encoding_is_refused(charset: str) -> None:
    """B45: its sender means other characters than we would read."""
    with pytest.raises(InvalidRequest):
        read_event(incoming(b'{"correlation_id":"R-88","answer":{}}', f"application/json; Charset={charset}"))


@pytest.mark.parametrize(
    ("text", "number"), [("1.0", 1), ("-0.0", 0), ("4.5e1", 45), ("10e-1", 1), ("9e15", 9 * 10**15)]
)
def test_a_whole_number_is_whole_however_it_is_written(text: str, number: int) -> None:
    """B14: some languages write 1 as 1.0; the number is exact all the same."""
    assert read_json(f'{{"n":{text}}}', fraction=whole_number) == {"n": number}


def test_a_number_says_the_same_however_it_is_written_and_nothing_else_does() -> None:
    """B14: 1.0 is the number 1, exactly and as an integer (so JSON Schema says too); true, "1" and 2 are not."""

    def says(one: bytes) -> SignedEvent:
        return read_event(incoming(b'{"correlation_id":"R-88","request_version":1,"answer":{"n":%s}}' % one))

    written = [says(one) for one in (b"1", b"1.0", b"10e-1")]
    others = [says(other) for other in (b"true", b'"1"', b"2", b"null")]

    assert [type(event.answer["n"]) for event in written] == [int] * 3
    assert len({event.digest for event in written}) == 1
    assert len({event.digest for event in (*written, *others)}) == 5
    assert read_event(incoming(b'{"correlation_id":"R-88","request_version":1.0,"answer":{}}')).request_version == 1
    for wrong in (b"1.5", b"true", b'"1"'):
        with pytest.raises(InvalidRequest):
            read_event(incoming(b'{"correlation_id":"R-88","request_version":%s,"answer":{}}' % wrong))
