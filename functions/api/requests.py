"""What people send. Closed to unknown fields, strict in types; what a request asks for is the workflow's to judge."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt

IDEMPOTENCY_KEY_CHARACTERS_MAX = 200
# Printable ASCII, with no blank at either end.
IDEMPOTENCY_KEY_PATTERN = r"^[!-~]([ -~]{0,198}[!-~])?$"
REASON_CHARACTERS_MAX = 500
CURSOR_CHARACTERS_MAX = 1_000
# A screenful; the next page is one more call away.
PAGE_TASKS_DEFAULT = 25
PAGE_TASKS_MAX = 100

RequestFields = Annotated[
    dict[str, str | int | bool | None],
    Field(
        description=(
            "The workflow's own fields; see the schema named after the workflow. Amounts are whole numbers of minor "
            "units: 45000 is 450.00."
        )
    ),
]
Version = Annotated[StrictInt, Field(ge=1, le=2**31 - 1)]


class Body(BaseModel):
    """Base of every body."""

    # Built when first used: a cold start pays for the one body that comes, not for all of them.
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


class StartTaskBody(Body):
    """A task to start."""

    workflow: Annotated[str, Field(min_length=1, max_length=40, description="Name of the workflow, such as `refund`")]
    request: RequestFields


class AmendTaskBody(Body):
    """A whole new request for a task."""

    request: RequestFields
    request_version: Annotated[Version, Field(description="The version of the request that you saw")]


class DecisionBody(Body):
    """A decision. Who decides is whoever is logged in; what is decided is what the approval covers."""

    decision: Annotated[Literal["approve", "reject"], Field(description="Exactly one of the two words")]
    version: Annotated[Version, Field(description="The version of the request that you saw")]
    reason: Annotated[
        str | None, Field(min_length=1, max_length=REASON_CHARACTERS_MAX, description="Why, for the record")
    ] = None
