"""Reserve budget: set money aside for a payment. The provider honours idempotency keys and can be asked by them.

Settings: ``PAYMENTS_URL``, ``PAYMENTS_SECRET_NAME``.
"""

from typing import Any, Final

from functions.tools.http_call import serve
from functions.tools.http_tool import HttpTool, Lookup
from functions.tools.payments_provider import UNUSABLE_BODY, AmountField, CurrencyField, NameField
from functions.tools.provider import provider
from shared.domain.action import ToolOutcome
from shared.domain.records import Record


class ReservationArguments(Record):
    """Which budget, and how much of it in minor units."""

    budget: NameField
    amount_minor: AmountField
    currency: CurrencyField


TOOL: Final = HttpTool(
    name="reserve_budget",
    collection="budget-reservations",
    arguments=ReservationArguments,
    lookup=Lookup.KEY,
    refusals=UNUSABLE_BODY,
    # One that somebody else has released says nothing that we could go on from.
    statuses={"reserved": ToolOutcome.DONE},
    facts=("recorded_at",),
)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one call of the tool."""
    return serve(TOOL, event, provider=provider("PAYMENTS"))
