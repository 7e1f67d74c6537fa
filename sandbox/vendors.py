"""The vendor master: who is paid where, and whether somebody verified it. Fixed, and only ever read by callers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """One vendor.

    Args:
        account_reference: where the vendor is paid.
        verified: whether the account was confirmed with the vendor by another way than it came in.
    """

    vendor: str
    account_reference: str
    verified: bool

    def view(self) -> dict[str, object]:
        """Show the vendor as an answer does."""
        return {"id": f"vn_{self.vendor}", **asdict(self), "status": "listed"}


_ALL: Final = (
    Vendor(vendor="V-204", account_reference="ACC-204-1881", verified=True),
    Vendor(vendor="V-305", account_reference="ACC-305-2672", verified=True),
    # Came in by letter; nobody has called back yet.
    Vendor(vendor="V-410", account_reference="ACC-410-9034", verified=False),
)

VENDORS: Final[Mapping[str, Vendor]] = {vendor.vendor: vendor for vendor in _ALL}
