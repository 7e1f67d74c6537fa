"""Notify a vendor: one message, sent on every call. The provider knows no keys and cannot be asked what became of it.

Settings: ``PAYMENTS_URL``, ``PAYMENTS_SECRET_NAME``.
"""

from typing import Any, Final

from functions.tools.http_call import serve
from functions.tools.http_tool import HttpTool, Lookup
from functions.tools.payments_provider import UNUSABLE_BODY, NameField
from functions.tools.provider import provider
from shared.domain.action import ToolOutcome
from shared.domain.records import Record


class NoticeArguments(Record):
    """Who is told, with which text, about which invoice."""

    vendor: NameField
    template: NameField
    invoice: NameField


TOOL: Final = HttpTool(
    name="notify_vendor",
    collection="notices",
    arguments=NoticeArguments,
    lookup=Lookup.NOTHING,
    refusals=UNUSABLE_BODY,
    statuses={"sent": ToolOutcome.DONE},
    facts=("recorded_at",),
)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one call of the tool."""
    return serve(TOOL, event, provider=provider("PAYMENTS"))
