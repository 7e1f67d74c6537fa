"""Release budget: end a reservation, which undoes it. The provider honours idempotency keys and can be asked by them.

Settings: ``PAYMENTS_URL``, ``PAYMENTS_SECRET_NAME``.
"""

from typing import Any, Final

from functions.tools.http_call import serve
from functions.tools.http_tool import HttpTool, Lookup
from functions.tools.payments_provider import CANNOT_END, UNUSABLE_BODY, KeyField
from functions.tools.provider import provider
from shared.domain.action import ToolOutcome
from shared.domain.records import Record


class ReleaseArguments(Record):
    """The key under which the reservation was made."""

    reservation_key: KeyField


TOOL: Final = HttpTool(
    name="release_budget",
    collection="budget-releases",
    arguments=ReleaseArguments,
    lookup=Lookup.KEY,
    refusals=UNUSABLE_BODY | CANNOT_END,
    statuses={"recorded": ToolOutcome.DONE},
    facts=("recorded_at",),
)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one call of the tool."""
    return serve(TOOL, event, provider=provider("PAYMENTS"))
