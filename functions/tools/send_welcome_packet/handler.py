"""Send a welcome packet: one packet is posted on every call. The post knows no keys, but can be asked by our reference.

What is in the post cannot be called back. Settings: ``OFFICE_URL``, ``OFFICE_SECRET_NAME``.
"""

from typing import Any, Final

from functions.tools.http_call import serve
from functions.tools.http_tool import HttpTool, Lookup
from functions.tools.office_services import UNUSABLE_BODY, DayField, NameField
from functions.tools.provider import provider
from shared.domain.action import ToolOutcome
from shared.domain.records import Record


class PacketArguments(Record):
    """Who gets which packet, and the first working day that it names."""

    recipient: NameField
    template: NameField
    start_on: DayField


TOOL: Final = HttpTool(
    name="send_welcome_packet",
    collection="packets",
    arguments=PacketArguments,
    lookup=Lookup.REFERENCE,
    refusals=UNUSABLE_BODY,
    statuses={"posted": ToolOutcome.DONE},
    facts=("recorded_at",),
)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one call of the tool."""
    return serve(TOOL, event, provider=provider("OFFICE"))
