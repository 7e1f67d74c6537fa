"""The refund workflow: received, approved above a limit, proposed by a model, judged against the record, paid once."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final, cast

from shared.domain.action import ActionSpec, EffectClass
from shared.domain.approval import ApprovalRule
from shared.domain.proposal import Proposal
from shared.domain.status import Status
from shared.domain.wait import OnDeadline, Rung, WaitRule
from shared.domain.workflow import (
    AskModel,
    Finish,
    PerformAction,
    RequestApproval,
    Review,
    Stage,
    Step,
    TaskView,
    Tool,
    Workflow,
    attributes_from,
)
from shared.workflows.refund.models import RefundArguments, RefundOutcome, RefundRequest

_HERE: Final = Path(__file__).parent
# 100.00: what a clerk may give back without asking. The same in every currency on purpose: it is a tier of care.
APPROVAL_LIMIT_MINOR: Final = 10_000

APPROVAL: Final = ApprovalRule(
    role="refund_approver",
    valid_for_seconds=int(timedelta(days=7).total_seconds()),
    because="a refund above 100.00 needs a manager",
)
APPROVAL_WAIT: Final = WaitRule(
    ladder=(
        Rung(after_seconds=int(timedelta(days=1).total_seconds()), do=OnDeadline.REMIND, to="refund_approver"),
        Rung(after_seconds=int(timedelta(days=3).total_seconds()), do=OnDeadline.ESCALATE, to="finance_lead"),
        Rung(after_seconds=int(timedelta(days=7).total_seconds()), do=OnDeadline.EXPIRE, to="finance_lead"),
    )
)

ISSUE_REFUND: Final = Tool(
    name="issue_refund",
    description="Pay a refund for an order to the customer's original means of payment.",
    arguments=RefundArguments,
    effect=EffectClass.KEYED_WRITE,
    fact="refund_issued",
    can_look_up=True,
    # The provider promises to remember keys for thirty days; after that it is asked before anything is sent.
    key_window=timedelta(days=30),
    no_undo_because="a paid refund can only be collected again by agreement with the customer",
)

STAGES: Final[Mapping[str, Stage]] = {
    "received": Stage(next=frozenset({"awaiting_approval", "ready", "needs_review"})),
    "awaiting_approval": Stage(next=frozenset({"ready", "closed", "needs_review"})),
    "ready": Stage(
        next=frozenset({"awaiting_approval", "closed", "needs_review"}), tools=("issue_refund",), prompt="refund"
    ),
    "needs_review": Stage(next=frozenset({"awaiting_approval", "ready", "closed"})),
    "closed": Stage(next=frozenset()),
}


def action_of_record(view: TaskView) -> ActionSpec:
    """The one action that the request of record asks for, whatever a model says."""
    return ISSUE_REFUND.normalise(view.request.model_dump())


def next_step(view: TaskView) -> Step:
    """What a refund needs now."""
    request = cast("RefundRequest", view.request)
    action = action_of_record(view)
    issued = view.fact(ISSUE_REFUND.fact)
    if issued is not None and issued.happened:
        return _closed("the refund was issued", RefundOutcome(issued=True, reference=issued.reference))
    if view.refused(ISSUE_REFUND.fact):
        return Review(stage="needs_review", reason="the payments provider refused the refund")
    if request.amount_minor > APPROVAL_LIMIT_MINOR and view.approval_of(action) is None:
        if view.rejected(action):
            return _closed("the refund was rejected and not issued", RefundOutcome(issued=False, reference=None))
        return RequestApproval(stage="awaiting_approval", action=action, rule=APPROVAL, wait=APPROVAL_WAIT)
    return AskModel(stage="ready", record=action.arguments)


def _closed(outcome: str, result: RefundOutcome) -> Finish:
    return Finish(stage="closed", status=Status.COMPLETED, outcome=outcome, result=result.model_dump())


def judge(view: TaskView, proposal: Proposal) -> Step:
    """The only door from a proposal to the payment: it has to be the action of record, to the last unit."""
    proposed = ISSUE_REFUND.normalise(proposal.input)
    record = action_of_record(view)
    if proposed != record:
        differs = ", ".join(
            f"{name} {proposed.arguments[name]} is not the record's {record.arguments[name]}"
            for name in record.arguments
            if proposed.arguments[name] != record.arguments[name] and name != "order_reference"
        )
        return Review(stage="needs_review", reason=f"blocked: proposed {differs or 'another order'}")
    return PerformAction(stage="ready", action=record, approval=view.approval_of(record))


WORKFLOW: Final = Workflow(
    name="refund",
    version=1,
    title="Refund",
    request=RefundRequest,
    stages=STAGES,
    first_stage="received",
    tools={"issue_refund": ISSUE_REFUND},
    prompts={"refund": (_HERE / "prompts" / "refund.md").read_text(encoding="utf-8")},
    policies=(_HERE / "policies.cedar").read_text(encoding="utf-8"),
    task_deadline=timedelta(days=30),
    next_step=next_step,
    judge=judge,
    attributes=attributes_from("amount_minor", "currency"),
    attribute_types={"amount_minor": int, "currency": str},
    untrusted_field="note",
)
