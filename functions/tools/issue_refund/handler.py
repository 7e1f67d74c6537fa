"""Refund an order: one request to the payments provider, which honours idempotency keys and can be asked by them.

A refund cannot be undone. Settings: ``PAYMENTS_URL``, ``PAYMENTS_SECRET_NAME``.
"""

from http import HTTPStatus
from typing import Annotated, Any, Final

from pydantic import Field, StringConstraints

from functions.tools.http_call import serve
from functions.tools.http_tool import HttpTool, Lookup, Refusal
from functions.tools.provider import provider
from shared.domain.action import ToolOutcome
from shared.domain.records import Record

# The provider's own limit, in minor units: what lies above is refused there too.
AMOUNT_MINOR_MAX: Final = 10_000_000_000


class RefundArguments(Record):
    """Which order, and how much of its price in minor units goes back."""

    order_reference: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    amount_minor: Annotated[int, Field(ge=1, le=AMOUNT_MINOR_MAX)]
    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]


TOOL: Final = HttpTool(
    name="issue_refund",
    collection="refunds",
    arguments=RefundArguments,
    lookup=Lookup.KEY,
    # The provider judges a body only when it has no record of the key: these say that the key stands for nothing.
    refusals=frozenset(
        {
            Refusal(status=HTTPStatus.BAD_REQUEST, code="invalid_body"),
            Refusal(status=HTTPStatus.BAD_REQUEST, code="invalid_json"),
        }
    ),
    statuses={"recorded": ToolOutcome.DONE},
    facts=("amount_minor", "currency", "recorded_at"),
)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one call of the tool."""
    return serve(TOOL, event, provider=provider("PAYMENTS"))
