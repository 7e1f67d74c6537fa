"""Start a task: one commit makes the task, its first wait or step, its idempotency record and its execution's start."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from shared.domain.authority import Operation, Principal
from shared.domain.canonical import digest
from shared.domain.change import Change, stamps_of
from shared.domain.dispatch import start_scopes
from shared.domain.errors import DuplicateEvent, GateFailed, InvalidRequest, KeyReused
from shared.domain.evidence import EvidenceRef
from shared.domain.identity import PrincipalRef, TaskKey, task_key
from shared.domain.start import first_version
from shared.domain.steps import take
from shared.domain.workflow import Workflow
from shared.ports.inbox import InboxRow
from shared.usecases.engine import ApiDeps
from shared.usecases.permission import require_on_workflow
from shared.usecases.request_form import RequestForm, read_request
from shared.usecases.stored_task import commit_change, load_task
from shared.usecases.summary import TaskSummary, summarise

# A client that retries longer than this has lost its own record; the task row then stops a second execution (B61).
START_KEY_KEPT: Final = timedelta(days=90)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTask:
    """A request to start a task. The tenant is the principal's, whatever the request says."""

    principal: Principal
    workflow: str
    request: dict[str, object]
    idempotency_key: str


def start_task(command: StartTask, deps: ApiDeps) -> TaskSummary:
    """Start a task, or answer with the one that the same key and body started before.

    Raises:
        InvalidRequest, RequestTooLarge: nothing was stored.
        NotAuthorised: the policies refuse.
        KeyReused: the same key came with another body.
        GateFailed: a freeze stops new tasks here; nothing was stored.
        Retry: a store or the key service is out of reach; nothing was stored.

    If killed here:
        Evidence may be stored without a task; it is unreachable and expires. The task is there entirely or not at all.
    """
    if not command.idempotency_key.strip():
        msg = "an idempotency key is required; without one a repeat could start a second task"
        raise InvalidRequest(msg)
    workflow = deps.tasks.workflows.get(command.workflow)
    if workflow is None:
        msg = f"workflow: unknown; one of {', '.join(sorted(deps.tasks.workflows))}"
        raise InvalidRequest(msg)
    form = read_request(workflow, command.request)
    require_on_workflow(
        command.principal,
        Operation.START,
        workflow,
        rights=deps.rights,
        attributes=workflow.attributes(form.record),
    )
    _require_no_freeze(command.principal.tenant, workflow, deps)
    receipt = _receipt(command, form, deps)
    key = TaskKey(tenant=command.principal.tenant, task_id=receipt.task_id)
    change = _first_version(key, command.principal.ref, workflow, form, deps)
    try:
        created = commit_change(change, deps.tasks, previous=None, inbox=receipt)
    except DuplicateEvent:
        return _answer_repeat(receipt, deps)
    return summarise(created.task, created=True)


def _require_no_freeze(tenant: str, workflow: Workflow, deps: ApiDeps) -> None:
    freeze = deps.rights.authority.read((), freezes=start_scopes(tenant, workflow.name)).freeze
    if freeze is not None:
        msg = f"frozen: {freeze}"
        raise GateFailed(msg)


def _receipt(command: StartTask, form: RequestForm, deps: ApiDeps) -> InboxRow:
    now = deps.tasks.clock.now()
    body = {"workflow": command.workflow, "request": dict(form.record), "untrusted": form.untrusted}
    return InboxRow(
        tenant=command.principal.tenant,
        # Scoped to the principal: another tenant's or person's same key is another request (B16).
        source=f"start:{command.principal.ref.key}",
        event_id=command.idempotency_key,
        digest=digest("start", body),  # type: ignore[arg-type]
        task_id=deps.tasks.ids.new("tsk"),
        received_at=now,
        purge_at=now + START_KEY_KEPT,
    )


def _first_version(key: TaskKey, owner: PrincipalRef, workflow: Workflow, form: RequestForm, deps: ApiDeps) -> Change:
    ground = deps.tasks.ground(workflow, stamps_of(workflow, deps.model_id))
    change = first_version(
        key,
        form.record,
        owner=owner,
        because="the request was received",
        deadline_at=ground.now + workflow.task_deadline,
        trace=deps.tasks.ids.new("trc"),
        ground=ground,
        evidence=store_untrusted(key, form, workflow, deps),
    )
    return take(workflow.next_step(workflow.view(change.task, now=ground.now)), change, ground)


def store_untrusted(key: TaskKey, form: RequestForm, workflow: Workflow, deps: ApiDeps) -> tuple[EvidenceRef, ...]:
    """Store the outside words of a request as evidence and return their reference."""
    if form.untrusted is None or workflow.untrusted_field is None:
        return ()
    evidence_id = deps.tasks.ids.new("evd")
    source_kind = f"request_{workflow.untrusted_field}"
    return (deps.evidence.put(key, evidence_id=evidence_id, source_kind=source_kind, text=form.untrusted),)


def _answer_repeat(receipt: InboxRow, deps: ApiDeps) -> TaskSummary:
    earlier = deps.inbox.get(receipt.tenant, receipt.source, receipt.event_id)
    if earlier is None or earlier.digest != receipt.digest:
        msg = "this idempotency key was used for another request; use a new key"
        raise KeyReused(msg)
    return summarise(load_task(task_key(earlier.tenant, earlier.task_id), deps.tasks).task)
