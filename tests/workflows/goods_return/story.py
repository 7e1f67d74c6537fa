"""How goods returns go."""

from typing import Final

from shared.domain.status import Status
from shared.workflows.refund.workflow import WORKFLOW as REFUND
from tests.builders import CLERK, MANAGER
from tests.fakes.downstream import Kind, Mishap
from tests.recovery.acts import Cancels, Reports
from tests.recovery.story import Ending, Outside, Story

REQUEST: Final = {
    "return_reference": "RMA-77",
    "order_reference": "A-1001",
    "amount_minor": 4_500,
    "currency": "EUR",
}
PEOPLE: Final = {CLERK: frozenset({"refund_clerk"}), MANAGER: frozenset({"refund_approver"})}
BANK: Final = {"issue_refund": Outside(kind=Kind.HONOURS_KEYS)}
ARRIVES: Final = Reports(source="warehouse", correlation_id="RMA-77", answer={"condition": "as_sold"})
DAMAGED: Final = Reports(source="warehouse", correlation_id="RMA-77", answer={"condition": "damaged"})
REFUNDED: Final = Ending(status=Status.COMPLETED, effects={"issue_refund": 1})

STORIES: Final = (
    Story(
        name="refunded",
        claim="the goods come back, a refund of its own is paid once, and the return is closed",
        request=REQUEST,
        people=PEOPLE,
        outside=BANK,
        others=(REFUND,),
        acts=(ARRIVES,),
        meanwhile=(Cancels(by=CLERK), ARRIVES),
        ends=REFUNDED,
    ),
    Story(
        name="refund unclear",
        claim="a refund whose answer is lost is found out by its own task, and the return hears of it",
        request=REQUEST,
        people=PEOPLE,
        outside={"issue_refund": Outside(kind=Kind.HONOURS_KEYS, mishaps=(Mishap.RECORDED_NO_ANSWER,))},
        others=(REFUND,),
        acts=(ARRIVES,),
        ends=REFUNDED,
    ),
    Story(
        name="damaged",
        claim="nothing is refunded for goods that came back damaged",
        request=REQUEST,
        people=PEOPLE,
        outside=BANK,
        others=(REFUND,),
        acts=(DAMAGED,),
        ends=Ending(status=Status.COMPLETED, effects={}),
    ),
)

# Counted when the stories were written; fewer means that a story or a kind of trouble has been lost.
POINTS_MIN: Final = 2_350
