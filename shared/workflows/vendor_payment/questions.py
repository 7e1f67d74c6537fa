"""What people are asked about a vendor payment, and what happens when they do not answer."""

from datetime import timedelta
from typing import Final

from shared.domain.approval import ApprovalRule
from shared.domain.wait import OnDeadline, Rung, WaitRule


def _seconds(**of_time: float) -> int:
    return int(timedelta(**of_time).total_seconds())


PAYMENT_APPROVAL: Final = ApprovalRule(
    role="payment_approver",
    quorum=2,
    valid_for_seconds=_seconds(days=7),
    because="two people other than the requester approve every payment to a vendor",
)
PAYMENT_APPROVAL_WAIT: Final = WaitRule(
    ladder=(
        Rung(after_seconds=_seconds(days=1), do=OnDeadline.REMIND, to="payment_approver"),
        Rung(after_seconds=_seconds(days=3), do=OnDeadline.ESCALATE, to="finance_lead"),
        Rung(after_seconds=_seconds(days=7), do=OnDeadline.EXPIRE, to="finance_lead"),
    )
)

# A bank settles in a day or two, and then there is nothing left to take back: this is asked with more haste.
UNDO_APPROVAL: Final = ApprovalRule(
    role="payment_approver",
    valid_for_seconds=_seconds(days=3),
    because="taking a payment back needs a payment approver",
)
UNDO_APPROVAL_WAIT: Final = WaitRule(
    ladder=(
        Rung(after_seconds=_seconds(hours=4), do=OnDeadline.REMIND, to="payment_approver"),
        Rung(after_seconds=_seconds(days=1), do=OnDeadline.ESCALATE, to="finance_lead"),
        Rung(after_seconds=_seconds(days=3), do=OnDeadline.EXPIRE, to="finance_lead"),
    )
)

# Nobody takes money back because a message was not released: the payment stands, and the task ends without the notice.
NOTICE_APPROVAL: Final = ApprovalRule(
    role="accounts_payable",
    valid_for_seconds=_seconds(days=7),
    because="what is sent to a vendor cannot be taken back",
)
NOTICE_APPROVAL_WAIT: Final = WaitRule(
    ladder=(
        Rung(after_seconds=_seconds(days=1), do=OnDeadline.REMIND, to="accounts_payable"),
        Rung(after_seconds=_seconds(days=2), do=OnDeadline.ESCALATE, to="finance_lead"),
        Rung(after_seconds=_seconds(days=3), do=OnDeadline.PROCEED, to="finance_lead"),
    )
)
