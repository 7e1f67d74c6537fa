"""Order equipment: one order on every call. The supplier knows no keys, but can be asked by our reference.

Settings: ``OFFICE_URL``, ``OFFICE_SECRET_NAME``.
"""

from typing import Any, Final

from functions.tools.http_call import serve
from functions.tools.http_tool import HttpTool, Lookup
from functions.tools.office_services import UNUSABLE_BODY, DayField, NameField
from functions.tools.provider import provider
from shared.domain.action import ToolOutcome
from shared.domain.records import Record


class OrderArguments(Record):
    """What is put on whose desk, and by when."""

    employee: NameField
    keyboard: NameField
    screen: NameField
    deliver_to: NameField
    needed_on: DayField


TOOL: Final = HttpTool(
    name="order_equipment",
    collection="equipment-orders",
    arguments=OrderArguments,
    lookup=Lookup.REFERENCE,
    refusals=UNUSABLE_BODY,
    statuses={"ordered": ToolOutcome.DONE},
    facts=("recorded_at",),
)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one call of the tool."""
    return serve(TOOL, event, provider=provider("OFFICE"))
