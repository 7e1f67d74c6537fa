"""Wake: pass a task through the gates and answer what the state machine does next."""

from typing import Any

from pydantic import ConfigDict

from shared.domain.directive import AWAITS, Directive
from shared.domain.identity import TaskId, TaskKey, TenantId
from shared.domain.proposal import ObjectRef
from shared.domain.records import Record
from shared.runtime import wiring
from shared.runtime.observability import observed
from shared.runtime.step import run_step
from shared.usecases.wake import WakeUp, wake


class ProposedResult(Record):
    """What the propose state left behind."""

    residue: ObjectRef
    stop_reason: str


class WakeInput(Record):
    """The machine's document. Only its identifiers are used; what a state reported is looked up, not believed."""

    # The document carries the last directive and whatever the service adds to it.
    model_config = ConfigDict(extra="ignore")

    tenant: TenantId
    task_id: TaskId
    run: int
    version: int | None = None
    next: str | None = None
    hops: int = 0
    idle: int = 0
    fence: int | None = None
    execution: str
    result: ProposedResult | dict[str, Any] | None = None

    def trigger(self) -> WakeUp:
        """Build the wake-up."""
        return WakeUp(
            key=TaskKey(tenant=self.tenant, task_id=self.task_id),
            run=self.run,
            version_hint=self.version,
            likely_version=self._likely_version(),
            hops=self.hops,
            idle=self.idle,
            fence=self.fence,
            residue=self.result.residue if isinstance(self.result, ProposedResult) else None,
        )

    def _likely_version(self) -> int | None:
        """Guess which version the task is at by now. What ends a wait is one commit, in most cases."""
        if self.version is not None and self.next in AWAITS.values():
            return self.version + 1
        return self.version


@observed
def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one wake-up with the next directive."""
    return run_step(event, WakeInput, _wake)


def _wake(request: WakeInput) -> Directive:
    return wake(request.trigger(), wiring.wake())
