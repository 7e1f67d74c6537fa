"""Everything the provider can do, in one table: add a row, and it has its endpoint, its checks and its memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sandbox.fields import AMOUNT, CURRENCY, DAY, KEY, NAME, Field


class Recognises(StrEnum):
    """By what the provider knows again something that it was asked before."""

    KEY = "key"
    """Honours ``Idempotency-Key``: the same key never acts twice, and can be asked for."""

    REFERENCE = "reference"
    """Ignores keys and acts on every call, but can be asked what it holds under the caller's own reference."""

    NOTHING = "nothing"
    """Acts on every call and cannot be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """An undo, or another step after which a record counts no more as it was.

    Args:
        collection: where the record to end is kept.
        field: the field of the body that names the key under which it was made.
        allowed: the statuses in which it can still be ended.
        becomes: its status afterwards.
    """

    collection: str
    field: str
    allowed: frozenset[str]
    becomes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind of thing that can be asked of the provider.

    Args:
        prefix: how the ids given out begin.
        status: the status of a new record.
    """

    collection: str
    prefix: str
    recognises: Recognises
    fields: Mapping[str, Field]
    status: str
    ends: Ending | None = None


_MONEY: Final[Mapping[str, Field]] = {"amount_minor": AMOUNT, "currency": CURRENCY}

_ALL: Final = (
    Resource(
        collection="refunds",
        prefix="rf",
        recognises=Recognises.KEY,
        fields={"order_reference": NAME, **_MONEY},
        status="recorded",
    ),
    Resource(
        collection="budget-reservations",
        prefix="br",
        recognises=Recognises.KEY,
        fields={"budget": NAME, **_MONEY},
        status="reserved",
    ),
    Resource(
        collection="budget-releases",
        prefix="bx",
        recognises=Recognises.KEY,
        fields={"reservation_key": KEY},
        status="recorded",
        ends=Ending(
            collection="budget-reservations",
            field="reservation_key",
            allowed=frozenset({"reserved"}),
            becomes="released",
        ),
    ),
    Resource(
        collection="payments",
        prefix="pm",
        recognises=Recognises.KEY,
        fields={"vendor": NAME, "account": NAME, "invoice": NAME, **_MONEY},
        status="created",
    ),
    Resource(
        collection="payment-cancellations",
        prefix="px",
        recognises=Recognises.KEY,
        fields={"payment_key": KEY},
        status="recorded",
        ends=Ending(collection="payments", field="payment_key", allowed=frozenset({"created"}), becomes="canceled"),
    ),
    # The bank's own step, not a caller's: after it a payment can no longer be canceled.
    Resource(
        collection="payment-settlements",
        prefix="ps",
        recognises=Recognises.KEY,
        fields={"payment_key": KEY},
        status="recorded",
        ends=Ending(collection="payments", field="payment_key", allowed=frozenset({"created"}), becomes="settled"),
    ),
    Resource(
        collection="transfers",
        prefix="tr",
        recognises=Recognises.REFERENCE,
        fields={"reference": KEY, "payee": NAME, **_MONEY},
        status="recorded",
    ),
    Resource(
        collection="equipment-orders",
        prefix="eq",
        recognises=Recognises.REFERENCE,
        fields={
            "reference": KEY,
            "employee": NAME,
            "keyboard": NAME,
            "screen": NAME,
            "deliver_to": NAME,
            "needed_on": DAY,
        },
        status="ordered",
    ),
    # A letter with enclosures and a tracking number: it cannot be called back, but the post knows where it is.
    Resource(
        collection="packets",
        prefix="pk",
        recognises=Recognises.REFERENCE,
        fields={"reference": KEY, "recipient": NAME, "template": NAME, "start_on": DAY},
        status="posted",
    ),
    Resource(
        collection="letters",
        prefix="lt",
        recognises=Recognises.NOTHING,
        fields={"recipient": NAME, "template": NAME},
        status="posted",
    ),
    Resource(
        collection="notices",
        prefix="nt",
        recognises=Recognises.NOTHING,
        fields={"vendor": NAME, "template": NAME, "invoice": NAME},
        status="sent",
    ),
)

RESOURCES: Final[Mapping[str, Resource]] = {resource.collection: resource for resource in _ALL}
