"""What operators, and people who stop a part of a task, do in stories."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from shared.domain.checkpoint import CancelScope
from shared.domain.errors import Park, Reject
from shared.domain.identity import PrincipalRef
from shared.domain.status import Status
from shared.usecases.cancel_task import CancelTask, cancel_task
from shared.usecases.inspect_record import inspect_record
from shared.usecases.operator_command import OperatorCommand
from shared.usecases.quarantine_by_hand import quarantine_by_hand
from shared.usecases.release_task import ReleaseTask, close_task, release_task
from shared.usecases.retry_task import retry_task
from tests.recovery.acts import Asks
from tests.recovery.scene import Request, Scene


@dataclass(frozen=True, slots=True, kw_only=True)
class Patiently(Asks):
    """An act whose person takes it for an answer that somebody has to look at the task first."""

    act: Asks

    def __str__(self) -> str:
        return str(self.act)

    def request(self, scene: Scene) -> Request | None:
        request = self.act.request(scene)
        if request is None:
            return None
        work = request.work

        def ask() -> object:
            try:
                return work()
            except Park as parked:
                raise Reject(parked.message) from parked

        return replace(request, work=ask)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stops(Asks):
    """A person asks to stop the tool call or the model turn under way."""

    by: PrincipalRef
    scope: CancelScope

    def __str__(self) -> str:
        return f"{self.scope} stopped by {self.by.subject}"

    def request(self, scene: Scene) -> Request | None:
        task = scene.task
        if task is None:
            return None

        def stop() -> object:
            command = CancelTask(principal=scene.principal(self.by), task_id=task.task_id, scope=self.scope)
            return cancel_task(command, scene.machine.api())

        return Request(what=str(self), work=stop, act=self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantines(Asks):
    """An operator quarantines the task as it is stored now."""

    by: PrincipalRef

    def __str__(self) -> str:
        return f"quarantine by {self.by.subject}"

    def request(self, scene: Scene) -> Request | None:
        if scene.key is None:
            return None
        command = _as_seen_by(self.by, scene)
        return Request(what=str(self), work=lambda: quarantine_by_hand(command(), scene.machine.api()), act=self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LooksAfter(Asks):
    """An operator releases what is quarantined, or closes it if that cannot be, and retries what is in review."""

    by: PrincipalRef

    def __str__(self) -> str:
        return f"looked after by {self.by.subject}"

    def request(self, scene: Scene) -> Request | None:
        if scene.key is None:
            return None
        head = scene.world.heads[scene.key.key]
        command = _as_seen_by(self.by, scene)
        if head.quarantine is not None:
            return Request(what=f"release by {self.by.subject}", work=lambda: _release(command(), scene), act=self)
        if head.columns["status"] == str(Status.NEEDS_REVIEW):
            work = lambda: retry_task(command(), scene.machine.api())  # noqa: E731 - one line like its neighbours
            return Request(what=f"retry by {self.by.subject}", work=work, act=self)
        return None


def _as_seen_by(by: PrincipalRef, scene: Scene) -> Callable[[], OperatorCommand]:
    """Make the command about the task as it is seen now; who gives it is read when it arrives."""
    assert scene.key is not None
    task_id, version = scene.key.task_id, scene.world.heads[scene.key.key].version

    def command() -> OperatorCommand:
        return OperatorCommand(
            principal=scene.principal(by), task_id=task_id, version=version, reason="to see what happens"
        )

    return command


def _release(command: OperatorCommand, scene: Scene) -> object:
    record = inspect_record(command.principal, command.task_id, scene.machine.api())
    if record.intact_version is None or record.younger:
        return close_task(command, scene.machine.api())
    release = ReleaseTask(
        principal=command.principal,
        task_id=command.task_id,
        version=command.version,
        reason=command.reason,
        from_version=record.intact_version,
    )
    return release_task(release, scene.machine.api())
