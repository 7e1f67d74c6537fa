"""Read a vendor: one record of the vendor master, which says where the vendor is paid and whether anybody verified it.

Settings: ``PAYMENTS_URL``, ``PAYMENTS_SECRET_NAME``.
"""

from typing import Any, Final

from functions.tools.http_call import serve
from functions.tools.http_tool import HttpTool, Lookup
from functions.tools.payments_provider import NameField
from functions.tools.provider import provider
from shared.domain.action import ToolOutcome
from shared.domain.records import Record


class VendorArguments(Record):
    """Which vendor."""

    vendor: NameField


TOOL: Final = HttpTool(
    name="read_vendor",
    collection="vendors",
    arguments=VendorArguments,
    # A read is repeated, never asked about.
    lookup=Lookup.NOTHING,
    refusals=frozenset(),
    statuses={"listed": ToolOutcome.DONE},
    facts=("account_reference", "verified"),
    reads="vendor",
)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one call of the tool."""
    return serve(TOOL, event, provider=provider("PAYMENTS"))
