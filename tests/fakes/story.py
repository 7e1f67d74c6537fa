"""A story about one task: people, a machine that plays every execution, and the world underneath.

The people are in the authority store, so what they may do is read live, as in the product. The model of a story is
obedient: it proposes what the task card calls the record. A test gives it other words, or a mishap, or a fault.
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from shared.domain.action import ActionRow
from shared.domain.approval import DecisionWord
from shared.domain.authority import Operation, Principal, Question, Ruling
from shared.domain.checkpoint import CancelScope, Checkpoint, decode_checkpoint
from shared.domain.directive import Directive
from shared.domain.identity import PrincipalRef, TaskKey
from shared.domain.proposal import Residue
from shared.domain.window import Window
from shared.domain.workflow import Workflow
from shared.ports.authoriser import Authoriser
from shared.usecases.amend_task import AmendTask, amend_task
from shared.usecases.cancel_task import CancelTask, cancel_task
from shared.usecases.decide_approval import DecideApproval, decide_approval
from shared.usecases.engine import PerformDeps, WakeDeps
from shared.usecases.perform import PerformAction, Performed, perform
from shared.usecases.read_task import read_task
from shared.usecases.start_task import StartTask, start_task
from shared.usecases.summary import TaskSummary
from shared.usecases.wake import WakeUp, wake
from tests.fakes.calls import Calls
from tests.fakes.downstream import Downstream, Effect
from tests.fakes.machine import Machine
from tests.fakes.model import proposes
from tests.fakes.store import World

ISSUER: Final = "https://issuer.test/pool"
CLERK: Final = PrincipalRef(issuer=ISSUER, subject="clerk-1")
MANAGER: Final = PrincipalRef(issuer=ISSUER, subject="manager-7")
SECOND_MANAGER: Final = PrincipalRef(issuer=ISSUER, subject="manager-8")
INTERN: Final = PrincipalRef(issuer=ISSUER, subject="intern-2")
STRANGER: Final = PrincipalRef(issuer=ISSUER, subject="clerk-g")
REFUND: Final[dict[str, Any]] = {"amount_minor": 45_000, "currency": "EUR", "order_reference": "A-1001"}


def by_role(question: Question) -> Ruling:
    """Judge as the refund's policies do: deciding needs the role and distance, going on needs a clerk."""
    roles = question.principal.roles
    match question.operation:
        case Operation.DECIDE:
            own = question.resource.requester_excluded and question.principal.ref.key == question.resource.owner
            allowed = question.resource.required_role in roles and not own
        case Operation.READ | Operation.LIST:
            allowed = bool(roles)
        case _:
            allowed = "refund_clerk" in roles
    allowed = allowed and question.principal.tenant == question.resource.tenant
    return Ruling(allowed=allowed, reason="the role says so", policies=("by_role",))


def obedient(window: Window) -> Residue:
    """Propose exactly what the task card shows."""
    card = dict(line.split(": ", 1) for line in _text_of(window).splitlines() if ": " in line)
    return proposes(card["tool"], json.loads(card["record"]))


def _text_of(window: Window) -> str:
    return next(layer["text"] for layer in window.layers if layer["name"] == "task card")


class Story:
    """One world with its people and its machine; the task that was started last is the one spoken of."""

    def __init__(
        self,
        *workflows: Workflow,
        calls: Calls | None = None,
        authoriser: Authoriser | None = None,
        downstreams: Mapping[str, Downstream] | None = None,
    ) -> None:
        self.world = World()
        self.calls = calls or Calls()
        self.machine = Machine(
            self.world,
            self.calls,
            workflows={w.name: w for w in workflows} if workflows else None,
            authoriser=authoriser,
        )
        self.bank = Downstream()
        self.world.downstreams["issue_refund"] = self.bank
        self.world.downstreams.update(downstreams or {})
        self.world.model.always = obedient
        self.world.policies.rule = by_role
        people = self.world.authority
        people.grant(CLERK, tenant="acme", roles={"refund_clerk"})
        people.grant(MANAGER, tenant="acme", roles={"refund_approver"})
        people.grant(SECOND_MANAGER, tenant="acme", roles={"refund_approver"})
        people.grant(INTERN, tenant="acme", roles={"viewer"})
        people.grant(STRANGER, tenant="globex", roles={"refund_clerk", "refund_approver"})
        self._key: TaskKey | None = None

    # --- what people do -----------------------------------------------------------------------------------------------

    def person(self, ref: PrincipalRef) -> Principal:
        """The principal as the authority store knows it now."""
        return self.machine.process().authority.read((ref,)).principals[ref.key]

    def start(
        self,
        *,
        by: PrincipalRef = CLERK,
        workflow: str = "refund",
        key: str = "key-1",
        request: Mapping[str, object] | None = None,
        **fields: object,
    ) -> TaskSummary:
        """Start a task and let the machine run as far as it can."""
        form = dict(REFUND if request is None else request) | fields
        command = StartTask(principal=self.person(by), workflow=workflow, request=form, idempotency_key=key)
        started = start_task(command, self.machine.api())
        self._key = TaskKey(tenant=command.principal.tenant, task_id=started.task_id)
        self.machine.settle()
        return started

    def decide(
        self,
        word: DecisionWord = DecisionWord.APPROVE,
        *,
        by: PrincipalRef = MANAGER,
        approval_id: str | None = None,
        request_version: int | None = None,
    ) -> TaskSummary:
        """Decide the task's open approval, or the one named, and let the machine go on."""
        decided = self.click(word, by=by, approval_id=approval_id, request_version=request_version)
        self.machine.settle()
        return decided

    def click(
        self,
        word: DecisionWord = DecisionWord.APPROVE,
        *,
        by: PrincipalRef = MANAGER,
        approval_id: str | None = None,
        request_version: int | None = None,
    ) -> TaskSummary:
        """Decide, and leave the machine where it is."""
        task = self.task
        command = DecideApproval(
            principal=self.person(by),
            task_id=task.task_id,
            approval_id=approval_id or self.open_approval,
            word=word,
            request_version=request_version or task.business.request_version,
        )
        return decide_approval(command, self.machine.api())

    def amend(self, *, by: PrincipalRef = CLERK, request_version: int | None = None, **fields: object) -> TaskSummary:
        """Amend the request and let the machine go on."""
        amended = self.amend_quietly(by=by, request_version=request_version, **fields)
        self.machine.settle()
        return amended

    def amend_quietly(
        self, *, by: PrincipalRef = CLERK, request_version: int | None = None, **fields: object
    ) -> TaskSummary:
        """Amend, and leave the machine where it is."""
        task = self.task
        command = AmendTask(
            principal=self.person(by),
            task_id=task.task_id,
            request=dict(task.business.request) | fields,
            request_version=request_version or task.business.request_version,
        )
        return amend_task(command, self.machine.api())

    def cancel(self, *, by: PrincipalRef = CLERK) -> TaskSummary:
        """Cancel and let the machine go on."""
        canceled = self.ask_to_cancel(by=by)
        self.machine.settle()
        return canceled

    def ask_to_cancel(self, *, by: PrincipalRef = CLERK, scope: CancelScope = CancelScope.TASK) -> TaskSummary:
        """Cancel, and leave the machine where it is."""
        command = CancelTask(principal=self.person(by), task_id=self.task.task_id, scope=scope)
        return cancel_task(command, self.machine.api())

    def read(self, *, by: PrincipalRef = CLERK) -> TaskSummary:
        """Read the task."""
        return read_task(self.person(by), self.key.task_id, self.machine.api())

    # --- what functions do, called by hand ---------------------------------------------------------------------------

    def wake(self, *, run: int | None = None, hops: int = 0, idle: int = 0) -> Directive:
        """Wake the task once, as a machine that knows nothing but its name would."""
        head = self.world.heads.get(self.key.key)
        trigger = WakeUp(
            key=self.key,
            run=run or (int(head.columns["run"]) if head else 1),
            version_hint=head.version if head else None,
            hops=hops,
            fence=None,
            residue=None,
            idle=idle,
        )
        p = self.machine.process()
        deps = WakeDeps(
            tasks=self.machine.records(p),
            rights=self.machine.rights(p),
            ledger=p.ledger,
            waits=p.waits,
            inbox=p.inbox,
            leases=p.leases,
            evidence=p.evidence,
            artifacts=p.artifacts,
            model_id=self.machine.model_id,
            alarm=self.world.alarms.append,
        )
        return wake(trigger, deps)

    def perform(self, operation: str) -> Performed:
        """Bring one operation forward, in a fresh process."""
        p = self.machine.process()
        deps = PerformDeps(tasks=self.machine.records(p), rights=self.machine.rights(p), ledger=p.ledger, tools=p.tools)
        return perform(PerformAction(key=self.key, operation=operation, version_hint=None), deps)

    def run_again(self) -> None:
        """Play every execution again from its start, as if the service had been restored from an earlier day too."""
        self.machine.runs.clear()
        self.machine.settle()

    def later(self, **by: float) -> None:
        """Let time pass, such as ``days=3``, and let the machine act on it."""
        self.world.clock.advance(timedelta(**by))
        self.machine.settle()

    # --- what can be seen ---------------------------------------------------------------------------------------------

    @property
    def key(self) -> TaskKey:
        """The key of the task."""
        assert self._key is not None
        return self._key

    @property
    def task(self) -> Checkpoint:
        """The latest checkpoint."""
        head = self.world.heads[self.key.key]
        return decode_checkpoint(self.world.checkpoints[self.key.key, head.version].body)

    def child(self, number: int = -1) -> TaskKey:
        """The key of a child task of the task, the last one if no other is asked for."""
        return TaskKey(tenant=self.key.tenant, task_id=self.task.execution.children[number].task_id)

    def speak_of(self, key: TaskKey) -> None:
        """Speak of this task from here on."""
        self._key = key

    @property
    def status(self) -> str:
        """The status that the queue shows."""
        return str(self.world.heads[self.key.key].columns["status"])

    @property
    def states(self) -> list[str]:
        """The words of the task's executions, without the hub."""
        return [state for state in self.machine.states(self.key) if state != "Wake"]

    @property
    def open_approval(self) -> str:
        """The id of the approval that can be decided now."""
        return next(a.approval_id for a in self.task.security.approvals if a.status == "open")

    @property
    def refunds(self) -> list[Effect]:
        """What the bank has paid."""
        return self.bank.effects

    @property
    def rows(self) -> list[ActionRow]:
        """The task's rows in the action ledger, in the order in which they were written."""
        return [row for (task, _), row in self.world.actions.items() if task == self.key.key]

    @property
    def published(self) -> list[str]:
        """The names of the events on the bus."""
        return [event.event for _, event in self.world.events]
