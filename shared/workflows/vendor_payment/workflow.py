"""The vendor payment workflow: read the vendor, judge the proposal, two approvals, reserve, pay, tell the vendor.

Where the money goes is read from the vendor master and from nowhere else: not from the invoice, not from memory, not
from a model. It is read again right before it leaves, and a vendor that has changed meanwhile is not paid.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final, cast

from shared.domain.action import ActionSpec
from shared.domain.proposal import Proposal
from shared.domain.status import Status
from shared.domain.workflow import (
    AskModel,
    Compensate,
    Finish,
    PerformAction,
    RequestApproval,
    Review,
    Stage,
    Step,
    TaskView,
    Workflow,
    attributes_from,
)
from shared.workflows.vendor_payment.models import ACCOUNT_PATTERN, PaymentRequest
from shared.workflows.vendor_payment.questions import (
    NOTICE_APPROVAL,
    NOTICE_APPROVAL_WAIT,
    PAYMENT_APPROVAL,
    PAYMENT_APPROVAL_WAIT,
)
from shared.workflows.vendor_payment.tools import CREATE_PAYMENT, NOTIFY_VENDOR, READ_VENDOR, RESERVE_BUDGET, TOOLS

_HERE: Final = Path(__file__).parent

STAGES: Final[Mapping[str, Stage]] = {
    "received": Stage(next=frozenset({"checking", "needs_review"})),
    "checking": Stage(
        next=frozenset({"awaiting_approval", "needs_review"}), tools=("create_payment",), prompt="vendor_payment"
    ),
    "awaiting_approval": Stage(next=frozenset({"checking", "reserving", "paying", "closed", "needs_review"})),
    "reserving": Stage(next=frozenset({"awaiting_approval", "paying", "closed", "needs_review"})),
    "paying": Stage(next=frozenset({"awaiting_approval", "notifying", "closed", "needs_review"})),
    "notifying": Stage(next=frozenset({"closed", "needs_review"})),
    "needs_review": Stage(
        next=frozenset({"checking", "awaiting_approval", "reserving", "paying", "notifying", "closed"})
    ),
    "closed": Stage(next=frozenset()),
}


def next_step(view: TaskView) -> Step:
    """What a vendor payment needs now."""
    if view.happened(CREATE_PAYMENT.fact):
        return _after_payment(view)
    if view.refused(CREATE_PAYMENT.fact):
        return Compensate(stage="closed", status=Status.FAILED, outcome="the bank refused the payment")
    if view.happened(RESERVE_BUDGET.fact):
        return _pay(view)
    if view.refused(RESERVE_BUDGET.fact):
        return Finish(stage="closed", status=Status.FAILED, outcome="the budget was not reserved and nothing was paid")
    if view.fact(READ_VENDOR.fact) is None:
        return _read_vendor(view, stage="checking")
    return _approve_and_reserve(view)


def judge(view: TaskView, proposal: Proposal) -> Step:
    """The only door from a proposal to the approvers: it has to be the payment of record, down to the account."""
    record = payment_of_record(view)
    if record is None:
        return Review(stage="needs_review", reason=trouble_with_vendor(view) or "there is no payment of record")
    proposed = CREATE_PAYMENT.normalise(proposal.input)
    if proposed != record:
        return Review(stage="needs_review", reason=f"blocked: proposed {_difference(proposed, record)}")
    return _request_payment_approval(record)


def trouble_with_vendor(view: TaskView) -> str | None:
    """Say why the vendor cannot be paid, going by the vendor master alone, or None."""
    vendor = view.fact(READ_VENDOR.fact)
    if vendor is None or not vendor.happened:
        return "the vendor master does not know this vendor"
    if vendor.values.get("verified") is not True:
        return "the vendor's account is not verified"
    account = vendor.values.get("account_reference")
    if not isinstance(account, str) or re.fullmatch(ACCOUNT_PATTERN, account) is None:
        return "the vendor master holds no usable account for this vendor"
    return None


def payment_of_record(view: TaskView) -> ActionSpec | None:
    """The one payment that may be made: the request's, to the master's account; None while there is no such account."""
    if trouble_with_vendor(view) is not None:
        return None
    request = cast("PaymentRequest", view.request)
    vendor = view.fact(READ_VENDOR.fact)
    return CREATE_PAYMENT.normalise(
        {
            "vendor": request.vendor_id,
            "account": vendor.values["account_reference"] if vendor else None,
            "invoice": request.invoice_reference,
            "amount_minor": request.amount_minor,
            "currency": request.currency,
        }
    )


def _read_vendor(view: TaskView, *, stage: str) -> Step:
    request = cast("PaymentRequest", view.request)
    return PerformAction(stage=stage, action=READ_VENDOR.normalise({"vendor": request.vendor_id}))


def _approve_and_reserve(view: TaskView) -> Step:
    payment = payment_of_record(view)
    if payment is None:
        return Review(stage="needs_review", reason=trouble_with_vendor(view) or "there is no payment of record")
    if view.approval_of(payment) is not None:
        request = cast("PaymentRequest", view.request)
        reservation = {
            "budget": "accounts-payable",
            "amount_minor": request.amount_minor,
            "currency": request.currency,
        }
        return PerformAction(stage="reserving", action=RESERVE_BUDGET.normalise(reservation))
    if view.rejected(payment):
        return Finish(stage="closed", status=Status.COMPLETED, outcome="the payment was rejected and not made")
    if view.asked(payment):
        # It was proposed and judged before; only people have to look again.
        return _request_payment_approval(payment)
    return AskModel(stage="checking", record=payment.arguments)


def _pay(view: TaskView) -> Step:
    """Pay what was approved if the vendor master still says the same; give the budget back if it does not."""
    if not view.is_fresh(READ_VENDOR):
        return _read_vendor(view, stage="paying")
    payment = payment_of_record(view)
    if payment is None:
        return Compensate(stage="closed", status=Status.FAILED, outcome=f"not paid: {trouble_with_vendor(view)}")
    approval = view.approval_of(payment)
    if approval is not None:
        return PerformAction(stage="paying", action=payment, approval=approval)
    if view.rejected(payment):
        return Compensate(stage="closed", status=Status.FAILED, outcome="the payment was rejected and not made")
    if view.asked(payment):
        return _request_payment_approval(payment)
    changed = "not paid: the vendor's account changed after the payment was approved"
    return Compensate(stage="closed", status=Status.FAILED, outcome=changed)


def _request_payment_approval(payment: ActionSpec) -> Step:
    return RequestApproval(stage="awaiting_approval", action=payment, rule=PAYMENT_APPROVAL, wait=PAYMENT_APPROVAL_WAIT)


def _after_payment(view: TaskView) -> Step:
    """Tell the vendor, if accounts payable wants it. Whatever comes of the notice, the payment stands."""
    request = cast("PaymentRequest", view.request)
    notice = NOTIFY_VENDOR.normalise(
        {"vendor": request.vendor_id, "template": "payment_created", "invoice": request.invoice_reference}
    )
    if view.happened(NOTIFY_VENDOR.fact):
        return _paid("the vendor was paid and told")
    if view.refused(NOTIFY_VENDOR.fact):
        return _paid("the vendor was paid; the notice was refused and not sent")
    approval = view.approval_of(notice)
    if approval is not None:
        return PerformAction(stage="notifying", action=notice, approval=approval)
    if view.rejected(notice):
        return _paid("the vendor was paid; the notice was rejected and not sent")
    if view.expired(notice):
        return _paid("the vendor was paid; nobody released the notice in time and it was not sent")
    return RequestApproval(stage="notifying", action=notice, rule=NOTICE_APPROVAL, wait=NOTICE_APPROVAL_WAIT)


def _paid(outcome: str) -> Step:
    return Finish(stage="closed", status=Status.COMPLETED, outcome=outcome)


def _difference(proposed: ActionSpec, record: ActionSpec) -> str:
    """Name what differs. Only amounts are repeated: a text could carry anything that a model was told to say."""
    return ", ".join(
        f"{name} {proposed.arguments[name]} is not the record's {value}"
        if isinstance(value, int)
        else f"another {name} than the record's"
        for name, value in record.arguments.items()
        if proposed.arguments[name] != value
    )


WORKFLOW: Final = Workflow(
    name="vendor_payment",
    version=1,
    title="Vendor payment",
    request=PaymentRequest,
    stages=STAGES,
    first_stage="received",
    tools=TOOLS,
    prompts={"vendor_payment": (_HERE / "prompts" / "vendor_payment.md").read_text(encoding="utf-8")},
    policies=(_HERE / "policies.cedar").read_text(encoding="utf-8"),
    # Two questions of a week each and a review of a month fit into it.
    task_deadline=timedelta(days=60),
    next_step=next_step,
    judge=judge,
    attributes=attributes_from("amount_minor", "currency"),
    attribute_types={"amount_minor": int, "currency": str},
    untrusted_field="invoice_text",
)
