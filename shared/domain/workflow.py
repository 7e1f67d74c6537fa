"""What a workflow is: data and pure rules. The engine runs any of them and knows none by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import TypeAlias, cast

from pydantic import BaseModel, ValidationError

from shared.domain.action import Action, ActionSpec, Arguments, EffectClass, EffectRules, Scalar
from shared.domain.approval import Approval, ApprovalRule, ApprovalStatus, Basis
from shared.domain.canonical import canonical, short_digest
from shared.domain.checkpoint import Checkpoint, Fact
from shared.domain.errors import IllegalTransition, InvalidRequest
from shared.domain.evidence import evidence_digest
from shared.domain.proposal import Proposal
from shared.domain.status import Status
from shared.domain.wait import WaitRule

AttributeType: TypeAlias = type[int] | type[str] | type[bool]


def attributes_from(*names: str) -> Callable[[Mapping[str, object]], Arguments]:
    """Make a workflow's `attributes`: these fields of the request or action as they are."""

    def attributes(values: Mapping[str, object]) -> Arguments:
        return {name: cast("Scalar", values[name]) for name in names}

    return attributes


def last_fact(facts: Sequence[Fact], name: str) -> Fact | None:
    """The last fact of that name, whether it happened or definitely did not."""
    return next((fact for fact in reversed(facts) if fact.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoApproval:
    """What an undo demands of people before it is performed."""

    rule: ApprovalRule
    wait: WaitRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """An outside operation that a workflow may perform.

    `fact` names, in the past tense, what has happened when it is done. `undo` names the tool that compensates it and
    `undo_arguments` makes that tool's arguments from the action, whose operation is the key that the provider knows it
    by, and the provider's reference; `undo_approval` is set where people have to approve the undo too; or `undo` is
    None with the reason in `no_undo_because`. `kept_for` names tools whose effects rest on this one: while one of them
    stands, this one is not undone. `key_window` is how long the provider remembers an idempotency key.

    What a read tells grows old while people think. `rests_on` names the reads that an approval of this tool rests on.
    A read's `material` values are covered by such approvals, and one that has changed voids them; `fresh_for` is how
    old the reading may be when the approved action leaves: an older one is read again first. The rest is immaterial.
    """

    name: str
    description: str
    arguments: type[BaseModel]
    effect: EffectClass
    fact: str
    can_look_up: bool = False
    key_window: timedelta | None = None
    undo: str | None = None
    undo_arguments: Callable[[Action, str | None], Arguments] | None = None
    undo_approval: UndoApproval | None = None
    kept_for: tuple[str, ...] = ()
    no_undo_because: str | None = None
    rests_on: tuple[str, ...] = ()
    material: tuple[str, ...] = ()
    fresh_for: timedelta | None = None

    def is_fresh(self, facts: Sequence[Fact], *, now: datetime) -> bool:
        """Whether the last reading is young enough for an approved action to rest on."""
        fact = last_fact(facts, self.fact)
        if self.fresh_for is None:
            return True
        return fact is not None and fact.settled_at is not None and now - fact.settled_at <= self.fresh_for

    def told(self, facts: Sequence[Fact]) -> dict[str, Scalar]:
        """The material values of the last reading, by fact and value; nothing before the first."""
        fact = last_fact(facts, self.fact)
        return {} if fact is None else {f"{fact.name}.{name}": fact.values.get(name) for name in self.material}

    @property
    def rules(self) -> EffectRules:
        """What the ledger needs to know."""
        return EffectRules(effect=self.effect, can_look_up=self.can_look_up, key_window=self.key_window)

    def normalise(self, arguments: Mapping[str, object]) -> ActionSpec:
        """Validate arguments strictly and return the one normalised form that is digested and dispatched.

        Raises:
            InvalidRequest: missing, extra, wrongly typed or out-of-range arguments.
        """
        try:
            valid = self.arguments.model_validate(dict(arguments), strict=True)
        except ValidationError as error:
            msg = f"{self.name}: unusable arguments: {', '.join(sorted(self._faulty_fields(error)))}"
            raise InvalidRequest(msg) from error
        try:
            spec = ActionSpec(tool=self.name, arguments=valid.model_dump(mode="json"))
            canonical(spec.as_json())
        except ValueError as error:
            msg = f"{self.name}: arguments that have no one form"
            raise InvalidRequest(msg) from error
        return spec

    def _faulty_fields(self, error: ValidationError) -> set[str]:
        # Arguments are a model's words; only names that are ours are repeated, because this ends in the record (M5).
        named = (str(fault["loc"][0]) if fault["loc"] else "" for fault in error.errors())
        return {
            name if name in self.arguments.model_fields else "a field that the tool does not have" for name in named
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A place in a workflow: where it may go next, which tools the model is offered, and with which instruction."""

    next: frozenset[str]
    tools: tuple[str, ...] = ()
    prompt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskModel:
    """Ask the model for one proposal with the stage's tools. `record` is what the task card shows as the record."""

    stage: str
    record: Arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestApproval:
    """Ask people for approval of one executable action."""

    stage: str
    action: ActionSpec
    rule: ApprovalRule
    wait: WaitRule


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitEvent:
    """Wait for a signed event of an outside system."""

    stage: str
    name: str
    correlation_id: str
    sources: tuple[str, ...]
    wait: WaitRule


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitInput:
    """Wait for a person's typed answer to one question."""

    stage: str
    name: str
    role: str
    wait: WaitRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """What a workflow may start as a task of its own: of which workflow, and the form of what that comes to."""

    workflow: str
    result: type[BaseModel]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartChild:
    """Start one of the workflow's `children`, for the same owner, and wait until it has ended.

    `name` says what for: a request has one live child of a name, however often the step is asked for. The wait's name
    is the fact's too: it happened if the child has completed. The child may last no longer than the wait.
    """

    stage: str
    name: str
    request: Arguments
    wait: WaitRule


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitChildren:
    """Wait until the child tasks that were told to stop have ended. The engine's own step."""

    stage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformAction:
    """Perform an action that code decided on; an approval is named where the action needs one."""

    stage: str
    action: ActionSpec
    approval: Approval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compensate:
    """Undo what was done, newest first; then end with `status` and `outcome`."""

    stage: str
    status: Status
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueCompensation:
    """Go on with a compensation that has begun. The engine's own step; workflows ask for `Compensate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandStill:
    """Stand still until a person says how to go on: what was stopped has been found out. The engine's own step."""

    stage: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """End the task. `result` is what it came to, for the task that started it, if one did."""

    stage: str
    status: Status
    outcome: str
    result: Arguments = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Hand the task to a person."""

    stage: str
    reason: str


Step: TypeAlias = (
    AskModel
    | RequestApproval
    | AwaitEvent
    | AwaitInput
    | StartChild
    | AwaitChildren
    | PerformAction
    | Compensate
    | ContinueCompensation
    | StandStill
    | Finish
    | Review
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """What a workflow's rules may look at: the sealed record, never text that a model or a stranger wrote."""

    request: BaseModel
    request_version: int
    stage: str
    facts: tuple[Fact, ...]
    approvals: tuple[Approval, ...]
    now: datetime

    def fact(self, name: str) -> Fact | None:
        """The last fact of that name, whether it happened or definitely did not."""
        return last_fact(self.facts, name)

    def is_fresh(self, tool: Tool) -> bool:
        """Whether what a read told is young enough for an approved action to rest on."""
        return tool.is_fresh(self.facts, now=self.now)

    def happened(self, name: str) -> bool:
        """Whether that fact happened."""
        fact = self.fact(name)
        return fact is not None and fact.happened

    def refused(self, name: str) -> bool:
        """Whether that fact definitely did not happen."""
        fact = self.fact(name)
        return fact is not None and not fact.happened

    def approval_of(self, action: ActionSpec) -> Approval | None:
        """The live approval of exactly this action for the current request, granted or already used."""
        good = {ApprovalStatus.GRANTED, ApprovalStatus.CONSUMED}
        return next((a for a in self._of(action) if a.status in good), None)

    def rejected(self, action: ActionSpec) -> bool:
        """Whether this action was rejected for the current request."""
        return any(a.status is ApprovalStatus.REJECTED for a in self._of(action))

    def expired(self, action: ActionSpec) -> bool:
        """Whether people were asked about this action for the current request and nobody answered in time."""
        return any(a.status is ApprovalStatus.EXPIRED for a in self._of(action))

    def asked(self, action: ActionSpec) -> bool:
        """Whether people were ever asked about this action for the current request, whatever came of it."""
        return bool(self._of(action))

    def _of(self, action: ActionSpec) -> tuple[Approval, ...]:
        return tuple(a for a in self.approvals if a.spec == action and a.basis.request_version == self.request_version)


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """A task type: one folder of data and pure rules.

    `next_step` is asked at every wake-up what the task needs now; `judge` is the only door from a proposal to a step.
    Both are pure: the same view gives the same answer.
    """

    name: str
    version: int
    title: str
    request: type[BaseModel]
    stages: Mapping[str, Stage]
    first_stage: str
    tools: Mapping[str, Tool]
    prompts: Mapping[str, str]
    policies: str
    task_deadline: timedelta
    next_step: Callable[[TaskView], Step]
    judge: Callable[[TaskView, Proposal], Step]
    # The typed attributes of a request or action that policies may look at, such as an amount.
    attributes: Callable[[Mapping[str, object]], Arguments] = field(default=dict)  # type: ignore[assignment]
    # What `attributes` always returns, with its type: what policies on starting, deciding and dispatching rely on.
    attribute_types: Mapping[str, AttributeType] = field(default_factory=dict)
    # The typed form of the answer to each event or input wait, by the wait's name, which is also the fact's.
    answers: Mapping[str, type[BaseModel]] = field(default_factory=dict)
    # Who may answer each input wait.
    input_roles: Mapping[str, str] = field(default_factory=dict)
    # The tasks that it may start, by the name of the wait for each, which is also the fact's.
    children: Mapping[str, Child] = field(default_factory=dict)
    # Model turns in all, over the whole life of a task: what a loop of proposals may cost before a person looks.
    turns_max: int = 500
    # The request field that carries outside words; it is stored as evidence and never enters the record.
    untrusted_field: str | None = None

    @cached_property
    def catalogue(self) -> str:
        """The hash of everything about the tools that can steer a model or change an effect."""
        return short_digest(
            "catalogue",
            {
                name: {
                    "description": tool.description,
                    "schema": short_digest("schema", tool.arguments.model_json_schema()),
                    "effect": str(tool.effect),
                    "undo": tool.undo,
                }
                for name, tool in self.tools.items()
            },
        )

    @cached_property
    def policy(self) -> str:
        """The hash of the workflow's policies."""
        return short_digest("policy", self.policies)

    @cached_property
    def prompt(self) -> str:
        """The hash of the workflow's instructions."""
        return short_digest("prompt", dict(self.prompts))

    def basis_of(self, task: Checkpoint, tool: str) -> Basis:
        """What an approval of that tool rests on, if it is asked for or used now."""
        readings = (self.tools[name] for name in self.tools[tool].rests_on)
        return Basis(
            request_version=task.business.request_version,
            evidence=evidence_digest(task.references.evidence),
            policy=self.policy,
            catalogue=self.catalogue,
            facts={name: value for reading in readings for name, value in reading.told(task.business.facts).items()},
        )

    def stale_reading(self, task: Checkpoint, tool: str, *, now: datetime) -> str | None:
        """Name a fact that is missing, or too old for an approved action of that tool to rest on, or None."""
        readings = (self.tools[name] for name in self.tools[tool].rests_on)
        return next((reading.fact for reading in readings if not reading.is_fresh(task.business.facts, now=now)), None)

    def misfit(self, task: Checkpoint) -> str | None:
        """Say what of a stored task this release of the workflow no longer knows, or None if it can go on."""
        if task.business.stage not in self.stages:
            return f"no stage {task.business.stage}"
        gone = next((a.spec.tool for a in task.execution.actions if a.spec.tool not in self.tools), None)
        if gone is not None:
            return f"no tool {gone}"
        try:
            self.request.model_validate(task.business.request, strict=False)
        except ValidationError:
            return "another form of request"
        return None

    def read_request(self, fields: Mapping[str, object]) -> Arguments:
        """Validate a request strictly and return the one form that is stored.

        Raises:
            InvalidRequest: names the fields that are wrong.
        """
        try:
            record = self.request.model_validate(dict(fields), strict=True).model_dump(mode="json")
        except ValidationError as error:
            told = error.errors(include_url=False)
            faults = [f"{'.'.join(map(str, fault['loc'])) or 'request'}: {fault['msg']}" for fault in told]
            raise InvalidRequest("; ".join(faults)) from error
        try:
            canonical(record)
        except ValueError as error:
            msg = "request: a value that has no one form"
            raise InvalidRequest(msg) from error
        return record

    def permit_stage(self, before: str, after: str) -> str:
        """Return `after` if the workflow's table has that edge; staying is always allowed.

        Raises:
            IllegalTransition: skipping is impossible, whatever a prompt says.
        """
        if after != before and after not in self.stages[before].next:
            msg = f"{self.name}: stage {before} cannot become {after}"
            raise IllegalTransition(msg)
        return after

    def view(self, task: Checkpoint, *, now: datetime) -> TaskView:
        """Build what the rules may look at from the record."""
        return TaskView(
            request=self.request.model_validate(task.business.request, strict=False),
            request_version=task.business.request_version,
            stage=task.business.stage,
            facts=task.business.facts,
            approvals=task.security.approvals,
            now=now,
        )
