"""How onboardings go."""

from datetime import timedelta
from typing import Final

from shared.domain.identity import PrincipalRef
from shared.domain.status import Status
from tests.builders import CLERK, MANAGER
from tests.fakes.downstream import Kind
from tests.recovery.acts import Answers, Cancels, Decides, Promptly, Reports, TimePasses
from tests.recovery.story import Ending, Outside, Story

EMPLOYEE: Final = PrincipalRef(issuer=CLERK.issuer, subject="employee-123")
PEOPLE: Final = {
    CLERK: frozenset({"hr_clerk"}),
    MANAGER: frozenset({"hr_lead"}),
    EMPLOYEE: frozenset({"employee"}),
}
REQUEST: Final = {
    "employee_reference": "E-123",
    "employee_subject": EMPLOYEE.subject,
    "start_on": "2026-12-01",
    "time_zone": "Europe/Berlin",
    "business_calendar": "DE-BE",
    "desk_location": "B-4",
}
# Neither the post nor the supplier honours keys; both can be asked by our reference.
OUTSIDE: Final = {
    "send_welcome_packet": Outside(kind=Kind.LOOKUP_ONLY),
    "order_equipment": Outside(kind=Kind.LOOKUP_ONLY),
}
APPROVES: Final = Decides(by=MANAGER)
# The pretended post gives its first parcel this reference.
SIGNED: Final = Reports(
    source="esign",
    correlation_id="send_welcome_packet-1",
    answer={"document_reference": "doc-9", "signed_on": "2026-11-20"},
)
CHOOSES: Final = Answers(by=EMPLOYEE, answer={"decision": "choose", "keyboard": "compact"})
DECLINES: Final = Answers(by=EMPLOYEE, answer={"decision": "decline"})
SENT: Final = {"send_welcome_packet": 1}
ORDERED: Final = Ending(status=Status.COMPLETED, effects=SENT | {"order_equipment": 1})
# A packet that the post does not know may still be on its way to it: nobody sends a second one by themselves.
PACKET_UNCLEAR: Final = Ending(status=Status.NEEDS_REVIEW, effects={})

STORIES: Final = (
    Story(
        name="welcomed",
        claim="the packet is approved and sent once, the document signed, the choice made, the equipment ordered once",
        request=REQUEST,
        people=PEOPLE,
        outside=OUTSIDE,
        acts=(APPROVES, SIGNED, CHOOSES),
        meanwhile=(Cancels(by=CLERK), SIGNED, Promptly(act=SIGNED)),
        ends=ORDERED,
        may_end=(PACKET_UNCLEAR,),
    ),
    Story(
        name="signed early",
        claim="a signature that is reported before anybody waits for it is not lost",
        request=REQUEST,
        people=PEOPLE,
        outside=OUTSIDE,
        acts=(SIGNED, APPROVES, CHOOSES),
        ends=ORDERED,
        may_end=(PACKET_UNCLEAR,),
    ),
    Story(
        name="declined",
        claim="nothing is ordered for somebody who declines",
        request=REQUEST,
        people=PEOPLE,
        outside=OUTSIDE,
        acts=(APPROVES, SIGNED, DECLINES),
        meanwhile=(CHOOSES,),
        ends=Ending(status=Status.COMPLETED, effects=SENT),
        # Of two answers the first counts.
        may_end=(PACKET_UNCLEAR, ORDERED),
    ),
    Story(
        name="nobody signs",
        claim="people are reminded, then somebody else, and then the task ends and names what stays",
        request=REQUEST,
        people=PEOPLE,
        outside=OUTSIDE,
        acts=(APPROVES, TimePasses(by=timedelta(days=40))),
        ends=Ending(status=Status.EXPIRED, effects=SENT),
        may_end=(PACKET_UNCLEAR, Ending(status=Status.FAILED, effects={})),
    ),
)

# Counted when the stories were written; fewer means that a story or a kind of trouble has been lost.
POINTS_MIN: Final = 4_300
