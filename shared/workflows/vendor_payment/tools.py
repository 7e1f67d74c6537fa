"""What a vendor payment can do outside: effect classes, undos, and which effect rests on which."""

from datetime import timedelta
from typing import Final

from shared.domain.action import Action, Arguments, EffectClass
from shared.domain.workflow import Tool, UndoApproval
from shared.workflows.vendor_payment.models import (
    CancellationArguments,
    NoticeArguments,
    PaymentArguments,
    ReleaseArguments,
    ReservationArguments,
    VendorArguments,
)
from shared.workflows.vendor_payment.questions import UNDO_APPROVAL, UNDO_APPROVAL_WAIT

# The provider promises to remember keys for thirty days; after that it is asked before anything is sent.
KEY_WINDOW: Final = timedelta(days=30)


def _release_of(reservation: Action, _reference: str | None) -> Arguments:
    return {"reservation_key": reservation.operation}


def _cancellation_of(payment: Action, _reference: str | None) -> Arguments:
    return {"payment_key": payment.operation, **payment.spec.arguments}


# Approvals take days, and accounts are changed by fraud too: a record this old is read again before money leaves.
VENDOR_RECORD_FRESH: Final = timedelta(minutes=15)

READ_VENDOR: Final = Tool(
    name="read_vendor",
    description="Read a vendor from the vendor master.",
    arguments=VendorArguments,
    effect=EffectClass.READ,
    fact="vendor_read",
    # Where the money goes, and whether anybody has made sure of it. A vendor may change its name as it likes.
    material=("account_reference", "verified"),
    fresh_for=VENDOR_RECORD_FRESH,
    no_undo_because="reading changes nothing",
)

RESERVE_BUDGET: Final = Tool(
    name="reserve_budget",
    description="Set budget aside for a payment.",
    arguments=ReservationArguments,
    effect=EffectClass.KEYED_WRITE,
    fact="budget_reserved",
    can_look_up=True,
    key_window=KEY_WINDOW,
    undo="release_budget",
    undo_arguments=_release_of,
    # Money that is on its way stays covered: a reservation ends only when no payment stands on it.
    kept_for=("create_payment",),
)

RELEASE_BUDGET: Final = Tool(
    name="release_budget",
    description="Give reserved budget back.",
    arguments=ReleaseArguments,
    effect=EffectClass.KEYED_WRITE,
    fact="budget_released",
    can_look_up=True,
    key_window=KEY_WINDOW,
    no_undo_because="budget that was given back may be somebody else's by now",
)

CREATE_PAYMENT: Final = Tool(
    name="create_payment",
    description="Pay one invoice of a vendor to the vendor's account in the vendor master.",
    arguments=PaymentArguments,
    effect=EffectClass.KEYED_WRITE,
    fact="payment_created",
    rests_on=(READ_VENDOR.name,),
    can_look_up=True,
    key_window=KEY_WINDOW,
    undo="cancel_payment",
    undo_arguments=_cancellation_of,
    # A payment that two people approved is not taken back by one clerk.
    undo_approval=UndoApproval(rule=UNDO_APPROVAL, wait=UNDO_APPROVAL_WAIT),
)

CANCEL_PAYMENT: Final = Tool(
    name="cancel_payment",
    description="Take a payment back that the bank has not settled.",
    arguments=CancellationArguments,
    effect=EffectClass.KEYED_WRITE,
    fact="payment_canceled",
    can_look_up=True,
    key_window=KEY_WINDOW,
    no_undo_because="a canceled payment can only be made anew",
)

NOTIFY_VENDOR: Final = Tool(
    name="notify_vendor",
    description="Tell a vendor that an invoice is paid.",
    arguments=NoticeArguments,
    effect=EffectClass.IRREVERSIBLE_WRITE,
    fact="vendor_notified",
    no_undo_because="what a vendor has read stays read",
)

TOOLS: Final = {
    tool.name: tool
    for tool in (READ_VENDOR, RESERVE_BUDGET, RELEASE_BUDGET, CREATE_PAYMENT, CANCEL_PAYMENT, NOTIFY_VENDOR)
}
