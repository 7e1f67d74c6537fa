"""What people and outside systems do in stories: values, so that a story can be read and told again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from shared.domain.action import Scalar
from shared.domain.answer import SignedEvent
from shared.domain.approval import Approval, ApprovalStatus, DecisionWord
from shared.domain.checkpoint import Checkpoint
from shared.domain.identity import PrincipalRef
from shared.domain.wait import PendingWait, WaitKind
from shared.usecases.amend_task import AmendTask, amend_task
from shared.usecases.answer_input import AnswerInput, answer_input
from shared.usecases.cancel_task import CancelTask, cancel_task
from shared.usecases.decide_approval import DecideApproval, decide_approval
from shared.usecases.receive_event import receive_event
from tests.fakes.store import World
from tests.recovery.scene import Request, Scene, authoriser_of
from tests.recovery.story import TENANT, Act


class Asks:
    """An act that is one request to the API, made of what the person sees at that moment."""

    def request(self, scene: Scene) -> Request | None:
        """Make the request; None if there is nothing to ask for."""
        raise NotImplementedError

    def __call__(self, scene: Scene) -> None:
        request = self.request(scene)
        if request is not None:
            scene.ask(request)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decides(Asks):
    """A person decides the approval that is open; where none is open, there is nothing to click on."""

    by: PrincipalRef
    word: DecisionWord = DecisionWord.APPROVE

    def __str__(self) -> str:
        return f"{self.word} by {self.by.subject}"

    def request(self, scene: Scene) -> Request | None:
        found = open_approval(scene)
        if found is None:
            return None
        task, approval = found
        version = task.business.request_version

        def decide() -> object:
            command = DecideApproval(
                principal=scene.principal(self.by),
                task_id=task.task_id,
                approval_id=approval.approval_id,
                word=self.word,
                request_version=version,
            )
            return decide_approval(command, scene.machine.api())

        return Request(what=str(self), work=decide, act=self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Amends(Asks):
    """A person replaces the request, as they see it, by another."""

    by: PrincipalRef
    to: Mapping[str, object]

    def __str__(self) -> str:
        return f"amend by {self.by.subject}"

    def request(self, scene: Scene) -> Request | None:
        task = scene.task
        if task is None:
            return None
        version = task.business.request_version

        def amend() -> object:
            command = AmendTask(
                principal=scene.principal(self.by),
                task_id=task.task_id,
                request=dict(self.to),
                request_version=version,
            )
            return amend_task(command, scene.machine.api())

        return Request(what=str(self), work=amend, act=self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancels(Asks):
    """A person asks to stop the whole task."""

    by: PrincipalRef

    def __str__(self) -> str:
        return f"cancel by {self.by.subject}"

    def request(self, scene: Scene) -> Request | None:
        task = scene.task
        if task is None:
            return None

        def cancel() -> object:
            command = CancelTask(principal=scene.principal(self.by), task_id=task.task_id)
            return cancel_task(command, scene.machine.api())

        return Request(what=str(self), work=cancel, act=self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers(Asks):
    """A person answers the question that the task asks now, if it asks one."""

    by: PrincipalRef
    answer: Mapping[str, Scalar]

    def __str__(self) -> str:
        return f"answer by {self.by.subject}"

    def request(self, scene: Scene) -> Request | None:
        task, wait = scene.task, open_wait(scene, WaitKind.INPUT)
        if task is None or wait is None:
            return None
        version = task.business.request_version

        def answer() -> object:
            command = AnswerInput(
                principal=scene.principal(self.by),
                task_id=task.task_id,
                wait_id=wait.wait_id,
                request_version=version,
                answer=dict(self.answer),
            )
            return answer_input(command, scene.machine.api())

        return Request(what=str(self), work=answer, act=self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports(Asks):
    """An outside system sends an event under a correlation id, whether a wait is open for it or not yet."""

    source: str
    correlation_id: str
    answer: Mapping[str, Scalar]
    event_id: str = "evt-1"

    def __str__(self) -> str:
        return f"{self.event_id} of {self.source}"

    def request(self, scene: Scene) -> Request | None:
        event = SignedEvent(
            source=self.source,
            event_id=self.event_id,
            correlation_id=self.correlation_id,
            answer=dict(self.answer),
        )

        def report() -> object:
            return receive_event(TENANT, event, scene.machine.webhook())

        return Request(what=str(self), work=report, act=self, function="webhook")


@dataclass(frozen=True, slots=True, kw_only=True)
class Promptly:
    """An act whose consequences are delivered before anything else goes on."""

    act: Act

    def __str__(self) -> str:
        return f"{self.act}, delivered at once"

    def __call__(self, scene: Scene) -> None:
        self.act(scene)
        scene.machine.drain()


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePasses:
    """Nobody does anything for a while."""

    by: timedelta

    def __call__(self, scene: Scene) -> None:
        scene.machine.live_for(self.by)


@dataclass(frozen=True, slots=True, kw_only=True)
class LosesRights:
    """From now on a person may do nothing any more."""

    who: PrincipalRef

    def __str__(self) -> str:
        return f"{self.who.subject} loses every right"

    def __call__(self, scene: Scene) -> None:
        scene.world.authority.disable(self.who)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freezes:
    """Operators stop everything of that scope for a while."""

    scope: str = "all"
    lasts: timedelta = timedelta(hours=1)

    def __str__(self) -> str:
        return f"{self.scope} is frozen for {self.lasts}"

    def __call__(self, scene: Scene) -> None:
        scene.world.authority.freezes[self.scope] = "an incident"
        scene.frozen_until[self.scope] = scene.world.clock.now() + self.lasts


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploys:
    """A release with other policies, or with another description of every tool, is put in force."""

    policies: bool = True

    def __str__(self) -> str:
        return f"a release with other {'policies' if self.policies else 'tool descriptions'}"

    def __call__(self, scene: Scene) -> None:
        old = scene.workflow
        tools = {name: replace(tool, description=f"{tool.description} Really.") for name, tool in old.tools.items()}
        new = (
            replace(old, policies=f"{old.policies}\n// another release") if self.policies else replace(old, tools=tools)
        )
        scene.machine.deploy(new, authoriser_of(new, *scene.story.others))


@dataclass(frozen=True, slots=True, kw_only=True)
class Happens:
    """Anything else, in words and as a change of the world."""

    what: str
    change: Callable[[World], object]

    def __call__(self, scene: Scene) -> None:
        self.change(scene.world)


def changes_the_ending(act: Act | None) -> bool:
    """Whether a story with this act in its middle may end otherwise: a yes or an event that comes early may not."""
    while isinstance(act, Promptly):
        act = act.act
    as_told = isinstance(act, Reports | Freezes) or (isinstance(act, Decides) and act.word is DecisionWord.APPROVE)
    return act is not None and not as_told


def open_wait(scene: Scene, kind: WaitKind) -> PendingWait | None:
    """The wait of that kind that is open now."""
    waits = scene.task.execution.waits if scene.task else ()
    return next((w for w in waits if w.kind is kind), None)


def open_approval(scene: Scene) -> tuple[Checkpoint, Approval] | None:
    """The approval that a person would find open now, of the story's task or of a child task, and whose it is."""
    found = ((task, approval) for task in scene.tasks() for approval in task.security.approvals)
    return next((each for each in found if each[1].status is ApprovalStatus.OPEN), None)
