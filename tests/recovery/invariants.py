"""What holds whatever went wrong: each check looks at a world at rest and returns what is broken, in words.

Rest means that nothing moves any more without a person, an event or the clock. The checks read the stores directly.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from shared.domain.action import SETTLED, ActionRow, ActionStatus, EffectClass
from shared.domain.approval import ApprovalStatus
from shared.domain.checkpoint import Checkpoint
from shared.domain.errors import IllegalTransition
from shared.domain.identity import execution_name
from shared.domain.seal import GENESIS
from shared.domain.status import Status, permit_status
from shared.domain.wait import Wait, WaitKind, WaitStatus
from stacks.task_graph import WAKE_FAILED
from tests.fakes.downstream import Effect
from tests.fakes.machine import Machine, Run
from tests.fakes.sealer import FakeSealer
from tests.recovery.history import History, columns_of, histories, mac_input

# What a state machine's function may end with; anything else is a bug of ours that somebody would be paged for.
EXPECTED_ERRORS: Final = frozenset({"Reject", "Redecide", "Retry", "Park", "WakeFailed"})
# Where an outcome may be open: a person owns it, or the task says so and goes on asking.
MAY_BE_OPEN: Final = frozenset(
    {Status.NEEDS_REVIEW, Status.OUTCOME_UNKNOWN, Status.CANCEL_REQUESTED, Status.COMPENSATING}
)


def broken(machine: Machine) -> list[str]:
    """Return everything that is broken in a world at rest."""
    found = histories(machine.world)
    return [line for check in CHECKS for history in found for line in check(history, machine)] + [
        *outbox_is_drained(machine),
        *nothing_crashed(machine),
    ]


def record_is_intact(history: History, machine: Machine) -> Iterable[str]:
    """Versions without a gap, every seal right, every link of the chain, and a head that equals the last of them."""
    world, key = machine.world, history.key
    versions = [task.version for task in history.checkpoints]
    if versions != list(range(1, history.head.version + 1)):
        yield f"versions {versions} are stored, the head says {history.head.version}"
    previous = GENESIS
    for task in history.checkpoints:
        sealed = world.checkpoints[key.key, task.version]
        covered = mac_input(key.key, sealed, previous)
        if task.previous_seal != previous:
            yield f"version {task.version} is not chained to the version before it"
        if not FakeSealer(world).verify(covered, sealed.seal, sealed.key_id):
            yield f"the seal of version {task.version} does not match"
        previous = sealed.seal
    last = world.checkpoints.get((key.key, history.head.version))
    if history.head.quarantine is None and (last is None or history.head.columns != columns_of(last.body)):
        yield "the head's columns differ from the last checkpoint"


def lifecycle_was_kept(history: History, machine: Machine) -> Iterable[str]:
    """Every step from one version to the next is an edge of the table, and counters only grow."""
    for before, after in zip(history.checkpoints, history.checkpoints[1:], strict=False):
        try:
            permit_status(before.business.status, after.business.status)
        except IllegalTransition as error:
            yield f"version {after.version}: {error}"
        grown = [
            (before.business.request_version, after.business.request_version),
            (before.execution.run, after.execution.run),
            (before.execution.ordinal, after.execution.ordinal),
            (before.execution.fence, after.execution.fence),
        ]
        if any(new < old for old, new in grown):
            yield f"version {after.version}: a counter went back"


def effects_happened_once(history: History, machine: Machine) -> Iterable[str]:
    """One effect at most under one key, each of them decided in the record, with exactly the recorded arguments."""
    counted: Counter[str] = Counter()
    for effect in effects_of(history, machine):
        row = machine.world.actions.get((history.key.key, effect.key))
        action = history.actions.get(effect.key)
        if row is None or action is None:
            yield f"an effect happened under {effect.key}, which the record never decided"
            continue
        if (effect.tool, effect.arguments) != (action.spec.tool, action.spec.arguments):
            yield f"{effect.key} happened with other arguments than were decided: {effect.arguments}"
        if row.effect is not EffectClass.READ:
            counted[effect.key] += 1
    for key, times in counted.items():
        if times > 1:
            yield f"{key} happened {times} times"


def ledger_agrees(history: History, machine: Machine) -> Iterable[str]:
    """The ledger, the outside world and, if it is trusted, the record tell one story of every action."""
    happened = Counter(effect.key for effect in effects_of(history, machine))
    for row in rows_of(history, machine):
        name, times = row.operation, happened[row.operation]
        if row.effect is not EffectClass.READ:
            if row.status is ActionStatus.DONE and not times:
                yield f"the ledger says that {name} is done, outside nothing happened"
            if row.status in {ActionStatus.FAILED, ActionStatus.VOID, ActionStatus.INTENT} and times:
                yield f"the ledger says {row.status} of {name}, outside it happened"
        if history.head.quarantine is None:
            yield from _recorded_as(row, history.last)


def _recorded_as(row: ActionRow, task: Checkpoint) -> Iterable[str]:
    name, action = row.operation, task.action(row.operation)
    if row.status in SETTLED:
        if action is not None and action.status is not row.status:
            yield f"the ledger says {row.status} of {name}, the record {action.status}"
        return
    if action is None or action.status in SETTLED:
        yield f"{name} is {row.status} in the ledger and the record does not know it as open"
    if task.business.status not in MAY_BE_OPEN:
        yield f"{name} is {row.status} under a task that is {task.business.status}"


def nothing_in_flight_unleased(history: History, machine: Machine) -> Iterable[str]:
    """What is in flight has a live lease, or a person has been told."""
    now = machine.world.clock.now()
    for row in rows_of(history, machine):
        leased = row.lease_ends_at is not None and now < row.lease_ends_at
        owned = history.last.business.status is Status.NEEDS_REVIEW or history.head.quarantine is not None
        if row.status is ActionStatus.IN_FLIGHT and not leased and not owned:
            yield f"{row.operation} is in flight without a live lease and nobody was told"


def approvals_are_used_once(history: History, machine: Machine) -> Iterable[str]:
    """An approval serves one action, the one it was given for, and nobody approves what they asked for themselves."""
    used: dict[str, set[str]] = {}
    for task in history.checkpoints:
        for action in task.execution.actions:
            if action.approval_id is not None:
                used.setdefault(action.approval_id, set()).add(action.operation)
    approvals = {a.approval_id: a for task in history.checkpoints for a in task.security.approvals}
    granted = {
        a.approval_id
        for task in history.checkpoints
        for a in task.security.approvals
        if a.status in {ApprovalStatus.GRANTED, ApprovalStatus.CONSUMED}
    }
    for approval_id, operations in used.items():
        approval = approvals.get(approval_id)
        if len(operations) > 1:
            yield f"approval {approval_id} was used by {sorted(operations)}"
        if approval is None or approval_id not in granted:
            yield f"{sorted(operations)} used approval {approval_id}, which was never granted"
            continue
        if any(history.actions[operation].spec != approval.spec for operation in operations):
            yield f"approval {approval_id} was used for another action than it was given for"
        if len(set(approval.approvers)) < approval.rule.quorum:
            yield f"approval {approval_id} was used with {len(set(approval.approvers))} approvers"
        if approval.rule.requester_excluded and history.last.business.owner in approval.approvers:
            yield f"approval {approval_id} was given by whoever asked for it"


def standing_effects_are_of_this_request(history: History, machine: Machine) -> Iterable[str]:
    """An amended request never pays for the old one: what stands was decided for the request as it is now."""
    undone = {a.undoes for a in history.actions.values() if a.undoes and a.status is ActionStatus.DONE}
    for effect in effects_of(history, machine):
        action = history.actions.get(effect.key)
        if action is None or action.effect is EffectClass.READ or action.operation in undone or action.undoes:
            continue
        if action.request_version != history.last.business.request_version:
            current = history.last.business.request_version
            yield f"{effect.key} stands for request {action.request_version}, the task is at request {current}"


def task_has_a_next_event(history: History, machine: Machine) -> Iterable[str]:
    """A task at rest has ended, or it waits: with an owner, a deadline to come, and a machine that can be woken."""
    if history.head.quarantine is not None:
        # What the distrusted record waited for is asked again after its release, which starts an execution of its own.
        reviews = [wait for wait in _open_waits(history, machine) if wait.name == "quarantine" and wait.owner]
        if len(reviews) != 1:
            yield f"the task is quarantined and {len(reviews)} reviews are open"
        return
    task = history.last
    open_waits = _open_waits(history, machine)
    if sorted(w.wait_id for w in open_waits) != sorted(w.wait_id for w in task.execution.waits):
        yield f"open waits are {[w.name for w in open_waits]}, the record has {[w.name for w in task.execution.waits]}"
    run = machine.runs.get(execution_name(task.task_id, task.execution.run))
    if task.closed:
        # An execution may die right after the commit that ended its task; nobody has to start another one for that.
        if run is None or run.ended not in {str(task.business.status), WAKE_FAILED}:
            yield f"the task is {task.business.status}: {_where(run)}"
        return
    if not open_waits:
        yield f"the task is {task.business.status} and waits for nothing: {_where(run)}"
    if not task.business.because:
        yield f"the task is {task.business.status} and does not say why"
    if task.business.status is Status.NEEDS_REVIEW and [w.kind for w in open_waits] != [WaitKind.REVIEW]:
        yield "the task needs review and nobody is asked to"
    yield from _is_waited_for(history, machine, *open_waits)


def families_agree(history: History, machine: Machine) -> Iterable[str]:
    """A child is known to the task that started it, once, and has been heard of if it has ended and is waited for."""
    started = {c.task_id for task in history.checkpoints for c in task.execution.children}
    if history.last.execution.parent is None and not started:
        return
    others = {other.key.task_id: other for other in histories(machine.world)}
    parent = others.get(history.last.execution.parent or "")
    if history.last.execution.parent is not None:
        known = {c.task_id for task in parent.checkpoints for c in task.execution.children} if parent else set()
        if history.key.task_id not in known:
            yield "the task that it says started it knows nothing of it"
    for child_id in started:
        child = others.get(child_id)
        if child is None or child.last.execution.parent != history.key.task_id:
            yield f"child {child_id} is not there, or of somebody else"
            continue
        waited_for = any(wait.correlation_id == child_id for wait in _open_waits(history, machine))
        if child.last.closed and waited_for and history.head.quarantine is None:
            yield f"child {child_id} has ended and is still waited for"
    for noted in history.last.execution.children:
        child = others.get(noted.task_id)
        if child is not None and noted.status not in {None, child.last.business.status}:
            yield f"child {noted.task_id} is {child.last.business.status}, its parent says {noted.status}"


def timers_are_set(history: History, machine: Machine) -> Iterable[str]:
    """Every open wait has its timer, at its next rung. One of a wait that has ended fires once more and is gone."""
    if history.head.quarantine is not None:
        # Alarms and the operators' queue call for the review of a quarantine; no rung of it acts on the task.
        return
    armed = {timer.wait_id: timer for _, timer in machine.world.timers.values()}
    for wait in _open_waits(history, machine):
        timer = armed.get(wait.wait_id)
        if timer is None or (timer.rung, timer.at) != (wait.rung, wait.next_rung_at):
            yield f"the timer of {wait.name} is {timer}, its next rung is {wait.rung} at {wait.next_rung_at}"


def events_were_published(history: History, machine: Machine) -> Iterable[str]:
    """Whoever subscribed was told how the task ended."""
    told = {event.event for key, event in machine.world.events if key == history.key}
    if history.last.closed and "task.closed" not in told:
        yield "the task has ended and nobody was told"
    if history.last.business.status is Status.NEEDS_REVIEW and "task.needs_review" not in told:
        yield "the task needs review and nobody was told"


def outbox_is_drained(machine: Machine) -> Iterable[str]:
    """Nothing that was staged is left behind."""
    for row in machine.world.undelivered():
        yield f"outbox row {row.version}.{row.part} of {row.key.task_id} was left behind"


def nothing_crashed(machine: Machine) -> Iterable[str]:
    """No function ended with an error that nobody foresaw."""
    for function, name, cause in machine.errors:
        if name not in EXPECTED_ERRORS:
            yield f"{function} ended with {name}: {cause}"


CHECKS: Final[tuple[Callable[[History, Machine], Iterable[str]], ...]] = (
    record_is_intact,
    lifecycle_was_kept,
    effects_happened_once,
    ledger_agrees,
    nothing_in_flight_unleased,
    approvals_are_used_once,
    standing_effects_are_of_this_request,
    task_has_a_next_event,
    families_agree,
    timers_are_set,
    events_were_published,
)
# What holds at every instant, not only at rest.
AT_ANY_TIME: Final = (record_is_intact, lifecycle_was_kept, effects_happened_once, approvals_are_used_once)


def broken_at_this_instant(machine: Machine) -> list[str]:
    """Return what is broken in a world that may still be in the middle of something."""
    return [line for check in AT_ANY_TIME for history in histories(machine.world) for line in check(history, machine)]


def effects_of(history: History, machine: Machine) -> list[Effect]:
    """What really happened outside for a task."""
    mine = f"{history.key.tenant}:{history.key.task_id}:"
    return [e for d in machine.world.downstreams.values() for e in d.effects if e.key.startswith(mine)]


def rows_of(history: History, machine: Machine) -> list[ActionRow]:
    """The ledger's rows of a task."""
    return [row for (task, _), row in machine.world.actions.items() if task == history.key.key]


def _open_waits(history: History, machine: Machine) -> list[Wait]:
    mine = (history.key.tenant, history.key.task_id)
    waits = [w for w in machine.world.waits.values() if (w.tenant, w.task_id) == mine]
    return [w for w in waits if w.status is WaitStatus.OPEN]


def _is_waited_for(history: History, machine: Machine, *waits: Wait) -> Iterable[str]:
    run = machine.runs.get(execution_name(history.key.task_id, history.last.execution.run))
    for wait in waits:
        if machine.world.clock.now() >= wait.deadline_at:
            yield f"the deadline of {wait.name} has passed and nobody acted on it"
        if not wait.owner:
            yield f"nobody owns the deadline of {wait.name}"
        token = machine.world.tokens.get((wait.tenant, wait.wait_id))
        if run is None or run.ended or token is None or token != run.token:
            yield f"an answer to {wait.name} would wake nobody: {_where(run)}"
        elif token not in machine.world.machines.waiting:
            yield f"the token of {wait.name} was answered and its execution goes on waiting"


def _where(run: Run | None) -> str:
    if run is None:
        return "there is no execution"
    return f"its execution ended as {run.ended}" if run.ended else f"its execution stands in {run.state}"
