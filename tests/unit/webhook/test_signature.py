"""Signatures: which bytes, which secrets, which instants."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook

from shared.adapters.webhooks.standard import (
    AGE_SECONDS_MAX,
    AHEAD_SECONDS_MAX,
    SECRET_BYTES_MIN,
    SIGNATURES_MAX,
    Delivery,
    read_secret,
    sign,
)
from shared.ports.signing_secrets import SigningSecret

NOW = datetime(2026, 10, 9, 12, 0, tzinfo=UTC)
STAMP = str(int(NOW.timestamp()))
KEY = b"k" * 32
OTHER = b"o" * 32
BODY = b'{"a":  1.0,\n "b":"\\u20b9"}\n'


def signature(key: bytes = KEY, *, event_id: str = "msg_1", timestamp: str = STAMP, body: bytes = BODY) -> str:
    """Make one signature as a header holds it."""
    return f"v1,{base64.b64encode(sign(key, event_id=event_id, timestamp=timestamp, body=body)).decode()}"


def a_delivery(
    signatures: str | None = None, *, event_id: str = "msg_1", timestamp: str = STAMP, body: bytes = BODY
) -> Delivery:
    """Make a delivery that is signed with KEY unless it is told otherwise."""
    if signatures is None:
        signatures = signature(event_id=event_id, timestamp=timestamp, body=body)
    return Delivery(event_id=event_id, timestamp=timestamp, signatures=signatures, body=body)


def fits(delivery: Delivery, *secrets: SigningSecret, now: datetime = NOW) -> bool:
    """Check against these secrets, or against KEY."""
    return delivery.is_signed(secrets or (SigningSecret(key=KEY),), now=now)


def test_what_a_sender_s_library_signs_is_accepted() -> None:
    """The published library of the specification and we mean the same bytes."""
    secret = "whsec_" + base64.b64encode(KEY).decode()
    made = Webhook(secret).sign("msg_1", NOW, BODY.decode())

    assert read_secret(secret) == KEY
    assert fits(a_delivery(made))


def test_what_we_sign_is_accepted_by_the_library() -> None:
    """The other way round, against the machine's own clock, which is all that the library knows."""
    stamp = str(int(datetime.now(tz=UTC).timestamp()))
    headers = {"webhook-id": "msg_1", "webhook-timestamp": stamp, "webhook-signature": signature(timestamp=stamp)}

    assert Webhook(KEY).verify(BODY, headers, json_parse=False) is None


@pytest.mark.parametrize(
    "delivery",
    [
        a_delivery(signature(), body=BODY + b" "),
        a_delivery(signature(), body=b'{"a":1.0,"b":"\\u20b9"}'),
        a_delivery(signature(), body=BODY.replace(b"1.0", b"2.0")),
        a_delivery(signature(), event_id="msg_2"),
        a_delivery(signature(), timestamp=str(int(STAMP) + 1)),
        a_delivery(signature(OTHER)),
        a_delivery(""),
        a_delivery("v1,"),
        a_delivery("v1"),
        a_delivery("v1,not base64!"),
        a_delivery("v1,\u00e9\u00e9\u00e9\u00e9"),
        a_delivery(signature().removeprefix("v1,")),
        a_delivery(signature().replace("v1,", "v2,")),
        a_delivery(signature().replace("v1,", "V1,")),
        a_delivery(signature().replace("v1,", "v1a,")),
        a_delivery(signature().replace("v1,", "SHA256=")),
        a_delivery(signature()[:-4]),
        a_delivery(signature().lower()),
        a_delivery(" ".join([signature()] * (SIGNATURES_MAX + 1))),
    ],
)
def test_anything_but_a_signature_over_these_bytes_is_none(delivery: Delivery) -> None:
    """B14: over the raw bytes, id and time; one changed byte, a re-dumped body or a mangled header is refused."""
    assert not fits(delivery)


@pytest.mark.parametrize(
    "signatures",
    [
        f"v1,AAAA {signature()}",
        f"{signature(OTHER)} {signature()}",
        f"v1a,AAAA v1,!!! {signature()} v1",
    ],
)
def test_one_valid_signature_among_others_is_enough(signatures: str) -> None:
    """B74: a sender in rotation signs with both secrets; what cannot be read is passed over."""
    assert fits(a_delivery(signatures))


def test_bytes_that_are_no_text_can_be_signed() -> None:
    """What is verified is bytes: whether they are text is asked afterwards."""
    assert fits(a_delivery(body=b"\xff\xfe\x00"))


def test_every_secret_that_counts_is_tried() -> None:
    """B74: old and new both count until the old one's grace ends, to the instant."""
    old = SigningSecret(key=KEY, accept_until=NOW + timedelta(hours=24))
    new = SigningSecret(key=OTHER)
    by_old, by_new = a_delivery(), a_delivery(signature(OTHER))

    assert fits(by_old, old, new)
    assert fits(by_new, old, new)
    assert fits(by_old, new, old, now=NOW + timedelta(hours=24) - timedelta(milliseconds=1))
    assert not fits(by_old, new, old, now=NOW + timedelta(hours=24))
    assert fits(by_new, new, old, now=NOW + timedelta(hours=24))


@pytest.mark.parametrize("length", [0, 1, SECRET_BYTES_MIN - 1])
def test_a_weak_secret_verifies_nothing(length: int) -> None:
    """B74: the empty secret above all; what is signed with it is refused."""
    weak = b"k" * length

    assert not fits(a_delivery(signature(weak)), SigningSecret(key=weak))
    assert fits(a_delivery(signature(b"k" * SECRET_BYTES_MIN)), SigningSecret(key=b"k" * SECRET_BYTES_MIN))


def test_no_secret_verifies_nothing() -> None:
    """A source that nobody knows."""
    assert not a_delivery().is_signed((), now=NOW)


@pytest.mark.parametrize(
    ("seconds", "current"),
    [
        (0, True),
        (-299, True),
        (-AGE_SECONDS_MAX, True),
        (-301, False),
        (AHEAD_SECONDS_MAX, True),
        (AHEAD_SECONDS_MAX + 1, False),
        (299, False),
    ],
)
def test_a_signature_lives_for_minutes_and_only_backwards(seconds: int, current: bool) -> None:
    """B51: five minutes back; ahead only what clocks differ, or a captured event would live twice as long."""
    delivery = a_delivery(timestamp=str(int(STAMP) + seconds))

    assert delivery.is_current(now=NOW) is current


def test_the_life_of_a_signature_is_bounded() -> None:
    """B51: the longest time in which one and the same delivery can be accepted."""
    delivery = a_delivery(timestamp=str(int(STAMP) + AHEAD_SECONDS_MAX))
    lives = [s for s in range(-1, 2 * AGE_SECONDS_MAX) if delivery.is_current(now=NOW + timedelta(seconds=s))]

    assert max(lives) == AGE_SECONDS_MAX + AHEAD_SECONDS_MAX


@pytest.mark.parametrize(
    "timestamp",
    [
        "",
        "0",
        "-1791547200",
        "+1791547200",
        "1791547200.0",
        "1791547200.",
        "1.791547200e9",
        " 1791547200",
        "1791547200 ",
        "1791547200\n",
        "01791547200",
        "1791547200000",
        "179154720",
        "1_791_547_200",
        "\u0661\u0667\u0669\u0661\u0665\u0664\u0667\u0662\u0660\u0660",
        "\uff11791547200",
        "2026-10-09T12:00:00Z",
        "nan",
        "inf",
        "0x6ac8f800",
        "1791547200,1791547200",
    ],
)
def test_a_timestamp_is_digits_and_nothing_else(timestamp: str) -> None:
    """B51: what a number parser would be kind about is refused."""
    assert not Delivery(event_id="msg_1", timestamp=timestamp, signatures="", body=b"").well_formed


@pytest.mark.parametrize("event_id", ["", " ", "a b", "a.b", "a,b", "a\n", "\u00e9", "a" * 201])
def test_an_id_is_one_word(event_id: str) -> None:
    """A dot could move the border between id, time and body; a comma comes from a header that was sent twice."""
    assert not Delivery(event_id=event_id, timestamp=STAMP, signatures="", body=b"").well_formed


@pytest.mark.parametrize("event_id", ["msg_2Lml8", "0b0c-4f:7/+=~", "a" * 200])
def test_an_id_of_any_usual_form_is_taken(event_id: str) -> None:
    """Identifiers, digests and references of partners."""
    assert a_delivery(event_id=event_id).well_formed


@pytest.mark.parametrize("text", ["", "whsec_!", "wh", "sec_AAAA", "whsec_\u00e9"])
def test_a_secret_of_another_form_is_refused(text: str) -> None:
    """A secret that was pasted wrongly is not taken for another one."""
    with pytest.raises(ValueError, match=r"."):
        read_secret(text)


def test_a_secret_may_come_without_padding() -> None:
    """Some senders show it so."""
    key = b"k" * 25
    assert read_secret("whsec_" + base64.b64encode(key).decode().rstrip("=")) == key
