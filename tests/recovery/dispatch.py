"""A look at every effect as it leaves: whatever permits it holds at the worker's last look before that.

Nobody can take back a right between a worker's reading it and its call; everything before that reading counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from shared.domain.action import Action, ActionStatus
from shared.domain.checkpoint import Checkpoint
from tests.fakes.store import AuthorityRow
from tests.recovery.scene import Scene
from tests.recovery.story import TENANT


@dataclass(frozen=True, slots=True, kw_only=True)
class _LastLook:
    """What a worker read last about people, freezes and the task."""

    principals: Mapping[str, AuthorityRow]
    freezes: frozenset[str]


class DispatchWatch:
    """Told of every call before it is made; `wrong` says which effects should not have left."""

    def __init__(self, scene: Scene) -> None:
        self.wrong: list[str] = []
        self._scene = scene
        self._look = _LastLook(principals={}, freezes=frozenset())
        self._tasks: tuple[Checkpoint, ...] = ()

    def at_call(self, name: str) -> None:
        """Note what a worker reads, and look at what it sends."""
        authority = self._scene.world.authority
        if name == "task_records.load":
            self._tasks = tuple(self._scene.tasks())
        elif name == "authority.read":
            self._look = _LastLook(principals=dict(authority.principals), freezes=frozenset(authority.freezes))
        elif name == "tool_gateway.perform":
            for task in self._tasks:
                for action in self._leaving(task):
                    self.wrong += self._what_forbids(task, action)

    def _leaving(self, task: Checkpoint) -> list[Action]:
        now = self._scene.world.clock.now()
        held = [
            row.operation
            for row in self._scene.world.actions.values()
            if row.status is ActionStatus.IN_FLIGHT and row.lease_ends_at is not None and now < row.lease_ends_at
        ]
        return [action for operation in held if (action := task.action(operation)) is not None]

    def _what_forbids(self, task: Checkpoint, action: Action) -> list[str]:
        workflow = task.business.workflow
        scopes = {"all", f"tenant#{TENANT}", f"workflow#{workflow}", f"tool#{action.spec.tool}"}
        lines = []
        if scopes & self._look.freezes:
            lines.append(f"{action.operation} left under a freeze")
        if task.closed:
            lines.append(f"{action.operation} left after the task had ended")
        if task.execution.cancel is not None and action.undoes is None:
            lines.append(f"{action.operation} left although it had been canceled")
        approval = task.approval(action.approval_id) if action.approval_id else None
        for ref in approval.approvers if approval else ():
            row = self._look.principals.get(ref.key)
            if approval is not None and (row is None or not row.active or approval.rule.role not in row.roles):
                lines.append(f"{action.operation} left on the word of {ref.subject}, who may not give it any more")
        return lines
