"""What people do in stories: values, so that a story can be read and told again."""

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
from tests.recovery.scene import Scene
from tests.recovery.story import TENANT


@dataclass(frozen=True, slots=True, kw_only=True)
class Decides:
    """A person decides the approval that is open; where none is open, there is nothing to click on."""

    by: PrincipalRef
    word: DecisionWord = DecisionWord.APPROVE

    def __call__(self, scene: Scene) -> None:
        task, approval = scene.task, open_approval(scene)
        if task is None or approval is None:
            return
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

        scene.ask(f"{self.word} by {self.by.subject}", self.by, decide, act=self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Amends:
    """A person replaces the request, as they see it, by another."""

    by: PrincipalRef
    request: Mapping[str, object]

    def __call__(self, scene: Scene) -> None:
        task = scene.task
        if task is None:
            return
        version = task.business.request_version

        def amend(principal: Principal, deps: ApiDeps) -> TaskSummary:
            command = AmendTask(
                principal=principal, task_id=task.task_id, request=dict(self.request), request_version=version
            )
            return amend_task(command, deps)

        scene.ask(f"amend by {self.by.subject}", self.by, amend, act=self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancels:
    """A person asks to stop the whole task."""

    by: PrincipalRef

    def __call__(self, scene: Scene) -> None:
        task = scene.task
        if task is None:
            return

        def cancel(principal: Principal, deps: ApiDeps) -> TaskSummary:
            return cancel_task(CancelTask(principal=principal, task_id=task.task_id), deps)

        scene.ask(f"cancel by {self.by.subject}", self.by, cancel, act=self)


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


def open_approval(scene: Scene) -> Approval | None:
    """The approval that a person would find open now."""
    approvals = scene.task.security.approvals if scene.task else ()
    return next((a for a in approvals if a.status is ApprovalStatus.OPEN), None)
