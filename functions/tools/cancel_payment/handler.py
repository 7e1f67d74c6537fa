"""Cancel a payment, which undoes it, until the bank has settled it. Keys are honoured and can be asked by.

Settings: ``PAYMENTS_URL``, ``PAYMENTS_SECRET_NAME``.
"""

from typing import Any, Final

from functions.tools.http_call import serve
from functions.tools.http_tool import HttpTool, Lookup
from functions.tools.payments_provider import CANNOT_END, UNUSABLE_BODY, AmountField, CurrencyField, KeyField, NameField
from functions.tools.provider import provider
from shared.domain.action import ToolOutcome
from shared.domain.records import Record


class CancellationArguments(Record):
    """The key under which the payment was made, and for whoever approves this, what it was."""

    payment_key: KeyField
    vendor: NameField
    account: NameField
    invoice: NameField
    amount_minor: AmountField
    currency: CurrencyField


TOOL: Final = HttpTool(
    name="cancel_payment",
    collection="payment-cancellations",
    arguments=CancellationArguments,
    lookup=Lookup.KEY,
    refusals=UNUSABLE_BODY | CANNOT_END,
    statuses={"recorded": ToolOutcome.DONE},
    facts=("recorded_at",),
    unsent=frozenset({"vendor", "account", "invoice", "amount_minor", "currency"}),
)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one call of the tool."""
    return serve(TOOL, event, provider=provider("PAYMENTS"))
