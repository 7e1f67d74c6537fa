"""What people and outside systems do in stories: values, so that a story can be read and told again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from shared.domain.approval import Approval, ApprovalStatus, DecisionWord
from shared.domain.authority import Principal
from shared.domain.identity import PrincipalRef
from shared.usecases.amend_task import AmendTask, amend_task
from shared.usecases.cancel_task import CancelTask, cancel_task
from shared.usecases.decide_approval import DecideApproval, decide_approval
from shared.usecases.engine import ApiDeps
from shared.usecases.summary import TaskSummary
from tests.fakes.store import World
from tests.recovery.scene import Request, Scene
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
        task, approval = scene.task, open_approval(scene)
        if task is None or approval is None:
            return None
        version = task.business.request_version

        def decide(principal: Principal, deps: ApiDeps) -> TaskSummary:
            command = DecideApproval(
                principal=principal,
                task_id=task.task_id,
                approval_id=approval.approval_id,
                word=self.word,
                request_version=version,
            )
            return decide_approval(command, deps)

        return Request(what=str(self), by=self.by, command=decide, act=self)


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

        def amend(principal: Principal, deps: ApiDeps) -> TaskSummary:
            command = AmendTask(
                principal=principal, task_id=task.task_id, request=dict(self.to), request_version=version
            )
            return amend_task(command, deps)

        return Request(what=str(self), by=self.by, command=amend, act=self)


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

        def cancel(principal: Principal, deps: ApiDeps) -> TaskSummary:
            return cancel_task(CancelTask(principal=principal, task_id=task.task_id), deps)

        return Request(what=str(self), by=self.by, command=cancel, act=self)


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
class Holds:
    """From now on a person has exactly these roles."""

    who: PrincipalRef
    roles: frozenset[str]

    def __call__(self, scene: Scene) -> None:
        scene.world.authority.grant(self.who, tenant=TENANT, roles=set(self.roles))


@dataclass(frozen=True, slots=True, kw_only=True)
class Happens:
    """Anything else, in words and as a change of the world."""

    what: str
    change: Callable[[World], object]

    def __call__(self, scene: Scene) -> None:
        self.change(scene.world)


def changes_the_ending(act: Act | None) -> bool:
    """Whether a story with this act in its middle may end otherwise: an approval that comes early changes nothing."""
    while isinstance(act, Promptly):
        act = act.act
    return act is not None and not (isinstance(act, Decides) and act.word is DecisionWord.APPROVE)


def open_approval(scene: Scene) -> Approval | None:
    """The approval that a person would find open now."""
    approvals = scene.task.security.approvals if scene.task else ()
    return next((a for a in approvals if a.status is ApprovalStatus.OPEN), None)
