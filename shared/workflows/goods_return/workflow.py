"""The goods return workflow: wait until the warehouse has the goods, then let a refund be a task of its own.

It asks no model and has no tool. What is decided about the money is decided in the refund, by the refund's rules.
"""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final, cast

from shared.domain.proposal import Proposal
from shared.domain.status import Status
from shared.domain.wait import OnDeadline, Rung, WaitRule
from shared.domain.workflow import (
    AwaitEvent,
    Child,
    Finish,
    Review,
    Stage,
    StartChild,
    Step,
    TaskView,
    Workflow,
    attributes_from,
)
from shared.workflows.goods_return.models import GoodsReceived, RefundOutcome, ReturnRequest

_HERE: Final = Path(__file__).parent

# The two waits, and the facts that answers to them become.
GOODS: Final = "goods_received"
REFUND: Final = "refund"
# The source whose signed events say that goods have come.
WAREHOUSE: Final = "warehouse"

GOODS_WAIT: Final = WaitRule(
    ladder=(
        Rung(after_seconds=int(timedelta(days=7).total_seconds()), do=OnDeadline.REMIND, to="refund_clerk"),
        Rung(after_seconds=int(timedelta(days=30).total_seconds()), do=OnDeadline.EXPIRE, to="refund_clerk"),
    )
)
# A refund above its limit waits a week for its own approval.
REFUND_WAIT: Final = WaitRule(
    ladder=(
        Rung(after_seconds=int(timedelta(days=8).total_seconds()), do=OnDeadline.REMIND, to="refund_clerk"),
        Rung(after_seconds=int(timedelta(days=14).total_seconds()), do=OnDeadline.ESCALATE, to="finance_lead"),
        Rung(after_seconds=int(timedelta(days=21).total_seconds()), do=OnDeadline.REVIEW, to="finance_lead"),
    )
)

STAGES: Final[Mapping[str, Stage]] = {
    "announced": Stage(next=frozenset({"awaiting_goods", "needs_review"})),
    "awaiting_goods": Stage(next=frozenset({"refunding", "closed", "needs_review"})),
    "refunding": Stage(next=frozenset({"closed", "needs_review"})),
    "needs_review": Stage(next=frozenset({"awaiting_goods", "refunding", "closed"})),
    "closed": Stage(next=frozenset()),
}


def next_step(view: TaskView) -> Step:
    """What a return needs now."""
    request = cast("ReturnRequest", view.request)
    goods = view.fact(GOODS)
    if goods is None:
        return AwaitEvent(
            stage="awaiting_goods",
            name=GOODS,
            correlation_id=request.return_reference,
            sources=(WAREHOUSE,),
            wait=GOODS_WAIT,
        )
    if goods.values["condition"] != "as_sold":
        return _closed("the goods came back damaged; nothing was refunded")
    refund = view.fact(REFUND)
    if refund is None:
        return StartChild(
            stage="refunding",
            name=REFUND,
            request=request.model_dump(exclude={"return_reference"}),
            wait=REFUND_WAIT,
        )
    if not refund.happened:
        return Review(stage="needs_review", reason=f"the goods are back, and their refund {refund.reference} failed")
    said = "were refunded" if refund.values["issued"] else "their refund was rejected"
    return _closed(f"the goods came back and {said}")


def judge(view: TaskView, _proposal: Proposal) -> Step:
    """Nobody is asked for a proposal, so none is taken."""
    return Review(stage=view.stage, reason="a return takes no proposals")


def _closed(outcome: str) -> Finish:
    return Finish(stage="closed", status=Status.COMPLETED, outcome=outcome)


WORKFLOW: Final = Workflow(
    name="goods_return",
    version=1,
    title="Goods return",
    request=ReturnRequest,
    stages=STAGES,
    first_stage="announced",
    tools={},
    prompts={},
    policies=(_HERE / "policies.cedar").read_text(encoding="utf-8"),
    task_deadline=timedelta(days=60),
    next_step=next_step,
    judge=judge,
    attributes=attributes_from("amount_minor", "currency"),
    attribute_types={"amount_minor": int, "currency": str},
    answers={GOODS: GoodsReceived},
    children={REFUND: Child(workflow="refund", result=RefundOutcome)},
)
