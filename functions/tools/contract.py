"""What every tool is asked and what it answers.

====================  ==================================================================================
answer                promise
====================  ==================================================================================
``done``              the provider has carried it out, exactly as asked
``failed``            nothing happened: the provider, or the tool itself, refused this very action
``not_sent``          nothing happened, and nothing was said about the action: the same call may be made again
``pending``           the provider has accepted it and is not finished; ask it later
``absent``            answers a look-up only: the provider knows no such key or reference
an error              nobody knows: ask the provider before anything else
====================  ==================================================================================

``failed`` and ``not_sent`` speak of this call alone. If an earlier call with the same key ended without a clear
answer, that one may still have been carried out. They never answer a look-up: a look-up that cannot be made is an
error, so that nobody can read it as news about the action.
"""

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, StringConstraints, ValidationError

from shared.domain.action import ToolOutcome, ToolReply
from shared.domain.errors import OutcomeUnknown
from shared.domain.records import Record

# An idempotency key travels in headers and paths: no separator of either may be in it.
KEY_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._:~-]{0,199}$"


class Asked(StrEnum):
    """What a tool can be asked."""

    PERFORM = "perform"
    LOOKUP = "lookup"
    COMPENSATE = "compensate"


class ToolCall(Record):
    """One call of a tool. The key comes from the action ledger, never from a model or an attempt (B26)."""

    operation: Annotated[Asked, Field(strict=False)]
    key: Annotated[str, StringConstraints(pattern=KEY_PATTERN)]
    arguments: dict[str, Any]


def parse_call(event: dict[str, Any]) -> ToolCall | ToolReply:
    """Read a call, or answer a call that asks for an effect in a form that nobody can carry out (B27).

    Raises:
        OutcomeUnknown: the call is no call, and it is not clear that an effect was asked for.
    """
    try:
        return ToolCall.model_validate(event)
    except ValidationError as error:
        if event.get("operation") in (Asked.PERFORM, Asked.COMPENSATE):
            return refused(f"unusable call: {faulty_fields(error)}")
        raise OutcomeUnknown("the call has neither the form of an effect nor of a look-up") from None


def refused(reason: str) -> ToolReply:
    """Answer that nothing happened and nothing will."""
    return ToolReply(outcome=ToolOutcome.FAILED, reason=reason)


def faulty_fields(error: ValidationError) -> str:
    """Name what is wrong without repeating it: the values may be anybody's."""
    faults = {f"{'.'.join(map(str, fault['loc'])) or 'all'} ({fault['type']})" for fault in error.errors()}
    return ", ".join(sorted(faults))
