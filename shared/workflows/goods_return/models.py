"""The goods return's typed data: the request, what the warehouse says, and what the refund came to."""

from typing import Annotated, Literal

from pydantic import Field

from shared.domain.identity import REFERENCE_PATTERN
from shared.domain.records import Record
from shared.workflows.refund.models import AmountMinor, Currency, OrderReference, RefundOutcome

__all__ = ["GoodsReceived", "RefundOutcome", "ReturnRequest"]


class ReturnRequest(Record):
    """What is asked for: the order's money, once its goods are back under this return's number."""

    return_reference: Annotated[
        str,
        Field(
            pattern=REFERENCE_PATTERN.replace(r"\Z", "$"),
            description="The return's own number, which the warehouse reports under",
        ),
    ]
    order_reference: OrderReference
    amount_minor: AmountMinor
    currency: Currency


class GoodsReceived(Record):
    """What the warehouse says about the goods."""

    condition: Annotated[Literal["as_sold", "damaged"], Field(description="In which condition the goods came back")]
