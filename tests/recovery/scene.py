"""Where a story is told: a world with its people and outside systems, the machine over it, and patient clients."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from shared.adapters.cedar.authoriser import CedarAuthoriser, PolicyFault
from shared.domain.authority import Principal, Question, Ruling
from shared.domain.checkpoint import Checkpoint
from shared.domain.errors import Reject
from shared.domain.identity import PrincipalRef, TaskKey
from shared.domain.workflow import Tool, Workflow
from shared.ports.authoriser import Authoriser
from shared.usecases.start_task import StartTask, start_task
from tests.fakes.calls import Calls, Killed
from tests.fakes.clock import FakeIds
from tests.fakes.downstream import Downstream
from tests.fakes.machine import DIED, Trigger
from tests.fakes.process import Process
from tests.fakes.store import World
from tests.fakes.tended_machine import TendedMachine
from tests.recovery.history import read_body
from tests.recovery.story import TENANT, Act, Story

# A client repeats a request that was not answered, with pauses that double: patient enough for a freeze of some hours.
CLIENT_TRIES_MAX: Final = 12
CLIENT_PAUSE: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client asks of a function, and the act that it belongs to. Doing `work` again is asking again."""

    what: str
    work: Callable[[], object]
    act: Act | None = None
    function: str = "api"

    def trigger(self) -> Trigger:
        """The delivery of the request to its function."""
        return Trigger(function=self.function, subject=self.what, work=self.work)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a client was told in the end: yes, or a refusal."""

    request: Request
    refused: Reject | None


@dataclass(slots=True, kw_only=True)
class Scene:
    """One telling's world, machine and people. `answers` is what clients were told, in order."""

    story: Story
    workflow: Workflow
    world: World
    machine: TendedMachine
    answers: list[Answer] = field(default_factory=list)
    # When a freeze will be lifted, by its scope.
    frozen_until: dict[str, datetime] = field(default_factory=dict)

    @property
    def key(self) -> TaskKey | None:
        """The story's task, once there is one."""
        return next((head.key for head in self.world.heads.values()), None)

    @property
    def task(self) -> Checkpoint | None:
        """The task's last checkpoint as it is stored, unverified."""
        return next(iter(self.tasks()), None)

    def tasks(self) -> Iterator[Checkpoint]:
        """The last checkpoints of the story's task and then of its child tasks."""
        for head in list(self.world.heads.values()):
            yield read_body(self.world.checkpoints[head.key.key, head.version].body)

    @property
    def tools(self) -> dict[str, Tool]:
        """The tools of the story's task and of its child tasks."""
        return {name: tool for each in (self.workflow, *self.story.others) for name, tool in each.tools.items()}

    def ask(self, request: Request) -> None:
        """Send a request, and again while no answer comes."""
        trigger, last = request.trigger(), ""
        for tries in range(CLIENT_TRIES_MAX):
            try:
                self.machine.fire(trigger)
            except (Exception, Killed) as failure:  # noqa: BLE001 - whatever it was, the client has no answer
                if self.told(request, failure):
                    return
                last = repr(failure)
                self.machine.pass_time(self.world.clock.now() + CLIENT_PAUSE * 2**tries)
            else:
                self.told(request, None)
                return
        msg = f"{request.what}: no answer in {CLIENT_TRIES_MAX} tries: {last}"
        raise AssertionError(msg)

    def told(self, request: Request, failure: BaseException | None) -> bool:
        """Note what a client was told; say whether that was an answer."""
        if isinstance(failure, AssertionError):
            raise failure
        if failure is not None and not isinstance(failure, Reject):
            return False
        self.answers.append(Answer(request=request, refused=failure))
        return True

    def start(self) -> None:
        """Send the request that starts the story's task."""

        def start() -> object:
            command = StartTask(
                principal=self.principal(self.story.requester),
                workflow=self.workflow.name,
                request=dict(self.story.request),
                idempotency_key=f"story {self.story.name}",
            )
            return start_task(command, self.machine.api())

        self.ask(Request(what="start", work=start))

    def lift_freezes(self, to: datetime) -> None:
        """Lift the freezes whose time is over by then."""
        for scope, until in list(self.frozen_until.items()):
            if until <= to:
                del self.frozen_until[scope], self.world.authority.freezes[scope]

    def principal(self, ref: PrincipalRef) -> Principal:
        """Who calls, with the rights that the authority store gives now, as the API reads them for every request."""
        read = self.machine.process().authority.read((ref,))
        return read.principals.get(ref.key) or Principal(ref=ref, tenant=TENANT, roles=frozenset())


def _as_it_is(_world: World) -> None:
    """The world holds what is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backing:
    """What stores a telling's records: how a process is made, and how the world is shown what is stored elsewhere."""

    process: Callable[[World, Calls], Process] = Process
    refresh: Callable[[World], None] = _as_it_is
    seed: int = 0


IN_MEMORY: Final = Backing()


def scene_of(
    story: Story,
    workflow: Workflow,
    *,
    calls: Calls | None = None,
    died: str = DIED,
    backing: Backing = IN_MEMORY,
) -> Scene:
    """Set a story's world up: nothing has happened yet."""
    world = World(ids=FakeIds(backing.seed))
    for ref, roles in story.people.items():
        world.authority.grant(ref, tenant=TENANT, roles=set(roles))
    for tool, outside in story.outside.items():
        downstream = Downstream(kind=outside.kind, facts=outside.facts)
        downstream.mishaps.extend(outside.mishaps)
        world.downstreams[tool] = downstream
    world.model.answers.extend(story.answers)
    world.model.always = story.proposal
    machine = TendedMachine(
        world,
        calls,
        workflows={each.name: each for each in (workflow, *story.others)},
        authoriser=authoriser_of(workflow, *story.others),
        died=died,
        process=backing.process,
    )
    return Scene(story=story, workflow=workflow, world=world, machine=machine)


class RememberedRulings:
    """The real policies, asked each question once: the same question has the same answer for as long as they stand."""

    def __init__(self, workflows: Mapping[str, Workflow]) -> None:
        self._authoriser = CedarAuthoriser(workflows, audit=_fail)
        self._rulings: dict[str, Ruling] = {}

    def rule(self, question: Question) -> Ruling:
        words = question.model_dump_json()
        if words not in self._rulings:
            self._rulings[words] = self._authoriser.rule(question)
        return self._rulings[words]


# Parsing policies takes longer than a whole telling, and a workflow never changes: a new version is another object.
_AUTHORISERS: Final[dict[tuple[int, ...], tuple[tuple[Workflow, ...], Authoriser]]] = {}


def authoriser_of(*workflows: Workflow) -> Authoriser:
    """The workflows' real policies, evaluated by the real engine."""
    names = tuple(id(workflow) for workflow in workflows)
    known = _AUTHORISERS.get(names)
    if known is None:
        rulings = RememberedRulings({workflow.name: workflow for workflow in workflows})
        known = _AUTHORISERS[names] = (workflows, rulings)
    return known[1]


def _fail(fault: PolicyFault) -> None:
    msg = f"a policy could not be evaluated: {fault}"
    raise AssertionError(msg)
