"""Authority: who may do what. Read live at every gate, never copied into a checkpoint."""

from enum import StrEnum

from pydantic import Field

from shared.domain.action import Arguments
from shared.domain.identity import Name, PrincipalRef, TenantId
from shared.domain.records import Record


class Principal(Record):
    """A principal as the authority store knows it now."""

    ref: PrincipalRef
    tenant: TenantId
    roles: frozenset[Name]
    # Exact group names from the verified token; empty when the principal is read for somebody else's request.
    groups: frozenset[str] = frozenset()
    # Seconds since the principal last authenticated, when the token says so.
    authenticated_seconds_ago: int | None = None


class Operation(StrEnum):
    """The actions that policies speak about. The value is the Cedar action id."""

    START = "start"
    READ = "read"
    LIST = "list"
    AMEND = "amend"
    DECIDE = "decide"
    ANSWER = "answer"
    CANCEL = "cancel"
    # The operators' commands. To policies they are also one thing together: `operate`.
    RETRY = "retry"
    SETTLE = "settle"
    RELEASE = "release"
    CLOSE = "close"
    QUARANTINE = "quarantine"
    ESCALATE = "escalate"
    # May the task of this owner go on now? Asked at every wake-up.
    RESUME = "resume"
    # May this action leave the system now? Asked right before dispatch.
    DISPATCH = "dispatch"


class Resource(Record):
    """What a question is about. Everything a policy may look at; integers stay integers."""

    tenant: TenantId
    workflow: Name
    task_id: str
    stage: str
    # The principal key of the task's owner: the requester, and for separation of duties also the one excluded.
    owner: str
    # The role that an approval asks for; empty when the question is not about an approval.
    required_role: str = ""
    # Whether the approval's rule keeps the owner from deciding.
    requester_excluded: bool = True


class Question(Record):
    """One question to the policies."""

    principal: Principal
    operation: Operation
    resource: Resource
    # The workflow's typed attributes of the action or request, such as `amount_minor`.
    attributes: Arguments = Field(default_factory=dict)


class Ruling(Record):
    """The answer, with its reason and the policies that determined it. Anything but a clean allow is a deny (B04)."""

    allowed: bool
    reason: str
    policies: tuple[str, ...] = ()
