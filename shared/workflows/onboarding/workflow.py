"""The onboarding workflow: a packet that HR's lead approves, a signature, a choice, and an order that a model proposes.

It ends in one of three ways. `completed`: the equipment is ordered, or a person said no, to the packet or to the job.
`expired`: nobody signed or chose in time. `canceled`: whoever asked for it took that back. What stays is always named.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, cast

from shared.domain.action import ActionSpec
from shared.domain.approval import ApprovalRule
from shared.domain.calendar import CalendarEnds
from shared.domain.checkpoint import Fact
from shared.domain.proposal import Proposal
from shared.domain.status import Status
from shared.domain.wait import OnDeadline, Rung, WaitRule
from shared.domain.workflow import (
    AskModel,
    AwaitEvent,
    AwaitInput,
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
from shared.workflows.onboarding.deadlines import choice_wait, document_wait
from shared.workflows.onboarding.models import EquipmentAnswer, OnboardingRequest, SignedDocument
from shared.workflows.onboarding.tools import ORDER_EQUIPMENT, SEND_WELCOME_PACKET, TOOLS

_HERE: Final = Path(__file__).parent

# The two waits. An answer becomes a fact of its wait's name; silence a fact of that name and `_expired`.
DOCUMENT: Final = "document_signed"
CHOICE: Final = "equipment_chosen"
# The service whose signed events say that a document was signed.
SIGNATURES: Final = "esign"
# What somebody gets who leaves the number of screens open.
DEFAULT_SCREEN: Final = "one"

APPROVAL: Final = ApprovalRule(
    role="hr_lead",
    valid_for_seconds=int(timedelta(days=7).total_seconds()),
    because="a posted packet cannot be called back",
)
APPROVAL_WAIT: Final = WaitRule(
    ladder=(
        Rung(after_seconds=int(timedelta(days=1).total_seconds()), do=OnDeadline.REMIND, to="hr_lead"),
        Rung(after_seconds=int(timedelta(days=3).total_seconds()), do=OnDeadline.ESCALATE, to="hr_director"),
        Rung(after_seconds=int(timedelta(days=7).total_seconds()), do=OnDeadline.EXPIRE, to="hr_director"),
    )
)

STAGES: Final[Mapping[str, Stage]] = {
    "received": Stage(next=frozenset({"welcoming", "needs_review"})),
    "welcoming": Stage(next=frozenset({"awaiting_document", "closed", "needs_review"})),
    "awaiting_document": Stage(next=frozenset({"awaiting_choice", "closed", "needs_review"})),
    "awaiting_choice": Stage(next=frozenset({"ordering", "closed", "needs_review"})),
    "ordering": Stage(next=frozenset({"closed", "needs_review"}), tools=("order_equipment",), prompt="onboarding"),
    "needs_review": Stage(next=frozenset({"welcoming", "awaiting_document", "awaiting_choice", "ordering", "closed"})),
    "closed": Stage(next=frozenset()),
}


def next_step(view: TaskView) -> Step:
    """What an onboarding needs now."""
    packet = view.fact(SEND_WELCOME_PACKET.fact)
    if packet is None:
        return _welcome(view)
    if not packet.happened:
        return Review(stage="needs_review", reason="the post refused the welcome packet")
    if view.fact(DOCUMENT) is None:
        return _await_document(view, packet)
    choice = view.fact(CHOICE)
    if choice is None:
        return _await_choice(view)
    return _after_choice(view, choice)


def judge(view: TaskView, proposal: Proposal) -> Step:
    """The only door from a proposal to the order: it has to be the order of record, to the last field."""
    record = order_of_record(view)
    if record is None:
        return Review(stage="needs_review", reason="there is no order of record")
    proposed = ORDER_EQUIPMENT.normalise(proposal.input)
    if proposed != record:
        differs = [name for name, value in record.arguments.items() if proposed.arguments[name] != value]
        reason = f"blocked: proposed another {', '.join(differs)} than the record's"
        return Review(stage="needs_review", reason=reason)
    return PerformAction(stage="ordering", action=record)


def order_of_record(view: TaskView) -> ActionSpec | None:
    """The one order that may be made: what the employee chose, delivered where the request says; or None."""
    choice = view.fact(CHOICE)
    if choice is None or choice.values["decision"] != "choose":
        return None
    request = cast("OnboardingRequest", view.request)
    return ORDER_EQUIPMENT.normalise(
        {
            "employee": request.employee_reference,
            "keyboard": choice.values["keyboard"],
            "screen": choice.values["screen"] or DEFAULT_SCREEN,
            "deliver_to": request.desk_location,
            "needed_on": request.start_on,
        }
    )


def _welcome(view: TaskView) -> Step:
    request = cast("OnboardingRequest", view.request)
    packet = SEND_WELCOME_PACKET.normalise(
        {"recipient": request.employee_reference, "template": "welcome", "start_on": request.start_on}
    )
    approval = view.approval_of(packet)
    if approval is not None:
        return PerformAction(stage="welcoming", action=packet, approval=approval)
    if view.rejected(packet):
        return _completed("the welcome packet was rejected and not sent")
    return RequestApproval(stage="welcoming", action=packet, rule=APPROVAL, wait=APPROVAL_WAIT)


def _await_document(view: TaskView, packet: Fact) -> Step:
    if view.happened(f"{DOCUMENT}_expired"):
        return _expired("nobody signed in time; the welcome packet stays with the employee")
    reference = packet.reference
    if reference is None:
        return Review(stage="needs_review", reason="the post gave the packet no reference to wait for")

    def wait_for_signature(rule: WaitRule) -> Step:
        return AwaitEvent(
            stage="awaiting_document", name=DOCUMENT, correlation_id=reference, sources=(SIGNATURES,), wait=rule
        )

    return _in_time(view, document_wait, wait_for_signature)


def _await_choice(view: TaskView) -> Step:
    if view.happened(f"{CHOICE}_expired"):
        return _expired("nobody chose in time and no equipment was ordered; the signed document stays valid")

    def ask(rule: WaitRule) -> Step:
        return AwaitInput(stage="awaiting_choice", name=CHOICE, role="employee", wait=rule)

    return _in_time(view, choice_wait, ask)


def _in_time(
    view: TaskView, wait: Callable[[OnboardingRequest, datetime], WaitRule], step: Callable[[WaitRule], Step]
) -> Step:
    """Open a wait with a ladder that counts from now. Once it is open, its row says when it ends, and not this."""
    try:
        return step(wait(cast("OnboardingRequest", view.request), view.now))
    except CalendarEnds as ends:
        return Review(stage="needs_review", reason=str(ends))


def _after_choice(view: TaskView, choice: Fact) -> Step:
    if choice.values["decision"] == "decline":
        return _completed("the employee declined; no equipment was ordered")
    if view.happened(ORDER_EQUIPMENT.fact):
        return _completed("the employee is welcomed and the equipment is ordered")
    if view.refused(ORDER_EQUIPMENT.fact):
        return Review(stage="needs_review", reason="the supplier refused the order")
    record = order_of_record(view)
    if record is None:
        return Review(stage="needs_review", reason="there is no order of record")
    return AskModel(stage="ordering", record=record.arguments)


def _completed(outcome: str) -> Step:
    return Finish(stage="closed", status=Status.COMPLETED, outcome=outcome)


def _expired(outcome: str) -> Step:
    return Finish(stage="closed", status=Status.EXPIRED, outcome=outcome)


WORKFLOW: Final = Workflow(
    name="onboarding",
    version=1,
    title="Onboarding",
    request=OnboardingRequest,
    stages=STAGES,
    first_stage="received",
    tools=TOOLS,
    prompts={"onboarding": (_HERE / "prompts" / "onboarding.md").read_text(encoding="utf-8")},
    policies=(_HERE / "policies.cedar").read_text(encoding="utf-8"),
    # A week for the approval, three weeks at most for a signature over holidays, two for a choice, and time to look.
    task_deadline=timedelta(days=60),
    next_step=next_step,
    judge=judge,
    # Whom a task is about.
    attributes=attributes_from("employee_subject"),
    attribute_types={"employee_subject": str},
    answers={DOCUMENT: SignedDocument, CHOICE: EquipmentAnswer},
    input_roles={CHOICE: "employee"},
    untrusted_field="introduction",
)
