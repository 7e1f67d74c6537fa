"""The onboarding's typed data: the request, the answers that it waits for, and what each tool is told."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from shared.domain.calendar import Day, ZoneName
from shared.domain.records import Record

_NUMBER = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

Employee = Annotated[str, Field(pattern=_NUMBER, description="The employee's number")]
Desk = Annotated[str, Field(pattern=_NUMBER, description="The desk that the equipment is delivered to")]
StartDay = Annotated[Day, Field(description="The first working day, such as 2026-12-01")]
Keyboard = Annotated[Literal["compact", "full"], Field(description="The keyboard")]
Screen = Annotated[Literal["one", "two"], Field(description="How many screens")]


class OnboardingRequest(Record):
    """What is asked for. The packet is sent, and deadlines are counted, where the employee lives."""

    employee_reference: Employee
    employee_subject: Annotated[
        str,
        Field(
            pattern=r"^[\x21-\x7e]{1,128}$",
            description="The employee's subject at the identity provider: whose answer counts",
        ),
    ]
    start_on: StartDay
    time_zone: Annotated[ZoneName, Field(description="The time zone that deadlines go by, such as Europe/Berlin")]
    business_calendar: Annotated[
        Literal["DE-BE", "GB-ENG", "US"], Field(description="Whose public holidays are no business days")
    ]
    desk_location: Desk


class SignedDocument(Record):
    """What the signature service says: which document was signed, and on which day."""

    document_reference: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$", description="The document that was signed")
    ]
    signed_on: Annotated[Day, Field(description="The day of the signature, such as 2026-12-01")]


class EquipmentAnswer(Record):
    """What the employee says: a choice, in which only the keyboard has to be named, or that they will not come."""

    decision: Annotated[
        Literal["choose", "decline"], Field(description="Choose equipment, or say that you will not come")
    ]
    keyboard: Annotated[Keyboard | None, Field(description="The keyboard; needed with a choice")] = None
    screen: Annotated[Screen | None, Field(description="How many screens; one if it is left open")] = None

    @model_validator(mode="after")
    def _complete(self) -> "EquipmentAnswer":
        if self.decision == "choose" and self.keyboard is None:
            msg = "whoever chooses names a keyboard"
            raise ValueError(msg)
        if self.decision == "decline" and (self.keyboard, self.screen) != (None, None):
            msg = "whoever declines chooses nothing"
            raise ValueError(msg)
        return self


class PacketArguments(Record):
    """What the post is told."""

    recipient: Employee
    template: Literal["welcome"]
    start_on: StartDay


class OrderArguments(Record):
    """What the supplier is told."""

    employee: Employee
    keyboard: Keyboard
    screen: Screen
    deliver_to: Desk
    needed_on: Annotated[Day, Field(description="The day by which it is needed, such as 2026-12-01")]
