"""Create a payment: money for one invoice to one account. Keys are honoured and can be asked by, so none is paid twice.

Settings: ``PAYMENTS_URL``, ``PAYMENTS_SECRET_NAME``.
"""

from typing import Any, Final

from functions.tools.http_call import serve
from functions.tools.http_tool import HttpTool, Lookup
from functions.tools.payments_provider import UNUSABLE_BODY, AmountField, CurrencyField, NameField
from functions.tools.provider import provider
from shared.domain.action import ToolOutcome
from shared.domain.records import Record


class PaymentArguments(Record):
    """Who is paid, where, for what, and how much in minor units."""

    vendor: NameField
    account: NameField
    invoice: NameField
    amount_minor: AmountField
    currency: CurrencyField


TOOL: Final = HttpTool(
    name="create_payment",
    collection="payments",
    arguments=PaymentArguments,
    lookup=Lookup.KEY,
    refusals=UNUSABLE_BODY,
    # A payment that the bank has settled meanwhile was made; one that somebody has canceled is for a person.
    statuses={"created": ToolOutcome.DONE, "settled": ToolOutcome.DONE},
    facts=("recorded_at",),
)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one call of the tool."""
    return serve(TOOL, event, provider=provider("PAYMENTS"))
