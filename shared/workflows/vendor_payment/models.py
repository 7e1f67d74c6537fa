"""The vendor payment's typed data: the request, and what each tool is told."""

from typing import Annotated, Final, Literal

from pydantic import Field

from shared.domain.records import Record

# 500,000.00 in a currency with two decimals. What lies above is the treasury's business, not a task's.
AMOUNT_MINOR_MAX: Final = 50_000_000
ACCOUNT_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

AmountMinor = Annotated[int, Field(gt=0, le=AMOUNT_MINOR_MAX, description="Amount in minor units: 45000 is 450.00")]
Currency = Annotated[Literal["EUR", "USD", "GBP", "INR"], Field(description="The currency, by its ISO 4217 code")]
Vendor = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="The vendor's number")]
Invoice = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="The invoice to pay")]
Account = Annotated[str, Field(pattern=ACCOUNT_PATTERN, description="The account of the vendor master")]
Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:~-]{0,199}$", description="The key it was made under")]


class PaymentRequest(Record):
    """What is asked for. Where the money goes is not: that is the vendor master's to say."""

    vendor_id: Vendor
    invoice_reference: Invoice
    amount_minor: AmountMinor
    currency: Currency


class VendorArguments(Record):
    """Which vendor is read."""

    vendor: Vendor


class ReservationArguments(Record):
    """How much of which budget is set aside."""

    budget: Literal["accounts-payable"]
    amount_minor: AmountMinor
    currency: Currency


class ReleaseArguments(Record):
    """Which reservation ends."""

    reservation_key: Key


class PaymentArguments(Record):
    """What the bank is told."""

    vendor: Vendor
    account: Account
    invoice: Invoice
    amount_minor: AmountMinor
    currency: Currency


class CancellationArguments(PaymentArguments):
    """Which payment is taken back; the bank is told the key, whoever approves it sees the rest."""

    payment_key: Key


class NoticeArguments(Record):
    """What the vendor is told."""

    vendor: Vendor
    template: Literal["payment_created"]
    invoice: Invoice
