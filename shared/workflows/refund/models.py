"""The refund's typed data: the request, and the tool's arguments."""

from typing import Annotated, Literal

from pydantic import Field

from shared.domain.records import Record

# 1,000,000.00 in a currency with two decimals. A larger refund is a contract matter, not a task.
AMOUNT_MINOR_MAX = 100_000_000

AmountMinor = Annotated[int, Field(gt=0, le=AMOUNT_MINOR_MAX, description="Amount in minor units: 45000 is 450.00")]
Currency = Annotated[Literal["EUR", "USD", "GBP", "INR"], Field(description="The currency, by its ISO 4217 code")]
OrderReference = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{2,39}$", description="The order to refund")]


class RefundRequest(Record):
    """What is asked for."""

    amount_minor: AmountMinor
    currency: Currency
    order_reference: OrderReference


class RefundArguments(Record):
    """What the payments provider is told."""

    amount_minor: AmountMinor
    currency: Currency
    order_reference: OrderReference


class RefundOutcome(Record):
    """What a refund came to, for a task that started it."""

    issued: bool
    # The provider's own reference of the payment.
    reference: Annotated[str, Field(max_length=100)] | None
