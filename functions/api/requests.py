"""What people send. Closed to unknown fields, strict in types; what a request asks for is the workflow's to judge."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt

IDEMPOTENCY_KEY_CHARACTERS_MAX = 200
# Printable ASCII, with no blank at either end.
IDEMPOTENCY_KEY_PATTERN = r"^[!-~]([ -~]{0,198}[!-~])?$"
REASON_CHARACTERS_MAX = 500
# An operator's reason stands in the record in one sentence with who and what; the case behind it stands elsewhere.
COMMAND_REASON_CHARACTERS_MAX = 300
# A provider's reference, or where evidence is kept: printable ASCII, with no blank at either end.
OUTSIDE_REFERENCE_PATTERN = r"^[!-~]([ -~]{0,198}[!-~])?$"
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


class CancelBody(Body):
    """How far to stop. What has left is not called back: it is found out first."""

    scope: Annotated[
        Literal["task", "tool_call", "model_turn", "child_tasks"],
        Field(
            description=(
                "The whole task; or only the tool call or model turn under way, after which a person says how to go "
                "on; or the task's child tasks"
            )
        ),
    ] = "task"


class AnswerBody(Body):
    """An answer to a question of the workflow. Who answers is whoever is logged in."""

    answer: Annotated[
        dict[str, str | int | bool | None], Field(description="The fields that the question asks for, by name")
    ]
    version: Annotated[Version, Field(description="The version of the request that you saw")]


class CommandBody(Body):
    """An operator's command. Who gives it is whoever is logged in."""

    version: Annotated[Version, Field(description="The version of the task that you saw")]
    reason: Annotated[
        str,
        Field(
            min_length=1,
            max_length=COMMAND_REASON_CHARACTERS_MAX,
            pattern=r"[^ \t\r\n]",
            description="Why, for the record",
        ),
    ]


class SettleBody(CommandBody):
    """What you have found out about an action whose outcome is unknown."""

    operation: Annotated[
        str, Field(min_length=1, max_length=300, description="The action's idempotency key, from the task's effects")
    ]
    outcome: Annotated[
        Literal["done", "failed"], Field(description="Done, or failed: it is certain that nothing happened")
    ]
    reference: Annotated[
        str | None,
        Field(pattern=OUTSIDE_REFERENCE_PATTERN, description="The provider's own reference; needed for what was done"),
    ] = None
    evidence: Annotated[
        str,
        Field(pattern=OUTSIDE_REFERENCE_PATTERN, description="Where your word can be checked, such as a case number"),
    ]


class ReleaseBody(CommandBody):
    """A release from one version of the record. What came after it is given up."""

    from_version: Annotated[Version, Field(description="The newest intact version, as the record shows it")]


class EscalateBody(CommandBody):
    """A wait that moves up its ladder now."""

    wait_id: Annotated[str, Field(min_length=1, max_length=100, description="From the task's waits")]
