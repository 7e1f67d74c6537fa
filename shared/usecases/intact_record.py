"""Looking for what is intact of a quarantined task's record, one version at a time."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from shared.domain.authority import Operation, Principal, Question, Resource
from shared.domain.checkpoint import SCHEMA_VERSION, Checkpoint, decode_checkpoint
from shared.domain.errors import CheckpointQuarantined, ReleaseRefused, TaskNotFound
from shared.domain.identity import TaskKey, task_key
from shared.domain.release import Found, review_wait_id
from shared.domain.seal import GENESIS, SealedCheckpoint
from shared.ports.task_records import Head
from shared.usecases.engine import ApiDeps, Records
from shared.usecases.permission import require
from shared.usecases.stored_task import Loaded, verify_sealed

# A head that was put back lies a few versions behind; whoever finds more has a disaster and not a slip at hand.
LOOK_AHEAD_MAX: Final = 100
# An edited or lost version has an intact one right before it; each look costs two reads and a check of the seal.
LOOK_BACK_MAX: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Intact:
    """The newest version that can be trusted, and the newest under which anything is stored."""

    loaded: Loaded
    newest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A task as its head and its stored versions show it. `intact` is None if no version can be trusted."""

    head: Head
    newest: int
    intact: Intact | None


def locate(principal: Principal, task_id: str, operation: Operation, deps: ApiDeps) -> Located:
    """Find a task of the principal's own tenant that may be distrusted, and check that the principal may do this.

    The right is judged on what is intact. Where nothing is, it is judged on what the head says of itself: whoever has
    the right may look, and there is nothing that could be released.

    Raises:
        TaskNotFound: no such task for this principal.
        NotAuthorised: the principal may read it, and may not do this.
        SealUnavailable: the key service could not be asked.
    """
    stored = deps.tasks.records.load(task_key(principal.tenant, task_id))
    if stored is None:
        msg = "no such task"
        raise TaskNotFound(msg)
    newest = newest_stored(stored.head, deps.tasks)
    intact = newest_intact(stored.head, newest, deps.tasks)
    if intact is None:
        _require_on_head(principal, operation, stored.head, deps)
    else:
        task = intact.loaded.task
        workflow = deps.tasks.workflows[task.business.workflow]
        require(principal, operation, task, workflow, rights=deps.rights)
    return Located(head=stored.head, newest=newest, intact=intact)


def newest_stored(head: Head, deps: Records) -> int:
    """Find the newest version under which anything is stored: the head's, or one beyond a head that was put back."""
    newest = head.version
    while newest < head.version + LOOK_AHEAD_MAX and deps.records.checkpoint(head.key, newest + 1) is not None:
        newest += 1
    return newest


def newest_intact(head: Head, newest: int, deps: Records) -> Intact | None:
    """Find the newest version whose seal holds and that follows what is stored before it.

    Raises:
        ReleaseRefused: a version was written by a later release; this one must not go back behind it.
    """
    for version in range(newest, max(0, newest - LOOK_BACK_MAX), -1):
        sealed = deps.records.checkpoint(head.key, version)
        loaded = _trusted(head, sealed, deps) if sealed is not None else None
        if loaded is not None:
            return Intact(loaded=loaded, newest=newest)
    return None


def found_beside(intact: Intact, head: Head, deps: ApiDeps) -> Found:
    """Read what the ledger and the waits hold beside an intact version."""
    task = intact.loaded.task
    own = (deps.waits.get(task.security.tenant, wait.correlation_id) for wait in task.execution.waits)
    return Found(
        task=task,
        newest=intact.newest,
        rows=deps.ledger.rows(task.key),
        opened=deps.waits.opened_since(task.key, task.updated_at),
        own=tuple(wait for wait in own if wait is not None),
        review=deps.waits.get(head.key.tenant, review_wait_id(head.key.task_id, head.version)),
        said=tuple(
            sentence
            for version in range(task.version + 1, intact.newest + 1)
            for sentence in _said_by(deps.tasks.records.checkpoint(head.key, version), task)
        ),
    )


def _said_by(sealed: SealedCheckpoint | None, task: Checkpoint) -> Iterator[str]:
    """Say what a distrusted version tells of people's wishes that the intact one does not know.

    A wish leaves nothing in the ledger while nothing was done about it, and must not be lost for that.
    """
    try:
        later = decode_checkpoint(sealed.body) if sealed else None
    except ValueError:
        later = None
    if sealed is None or later is None:
        return
    if later.business.request_version != task.business.request_version:
        yield f"version {sealed.version} says that the request was amended"
    if later.execution.cancel != task.execution.cancel:
        yield f"version {sealed.version} says that somebody canceled"
    if later.closed:
        yield f"version {sealed.version} says that the task has ended as {later.business.status}"


def _trusted(head: Head, sealed: SealedCheckpoint, deps: Records) -> Loaded | None:
    _require_known_schema(sealed)
    try:
        loaded, _ = verify_sealed(head, sealed, deps)
    except CheckpointQuarantined:
        return None
    return loaded if _is_chained(head.key, loaded, deps) else None


def _is_chained(key: TaskKey, loaded: Loaded, deps: Records) -> bool:
    """Whether what is stored before a version is what it was sealed to follow."""
    before = loaded.task.follows or loaded.task.version - 1
    if before == 0:
        return loaded.task.previous_seal == GENESIS
    sealed = deps.records.checkpoint(key, before)
    return sealed is not None and sealed.seal == loaded.task.previous_seal


def _require_known_schema(sealed: SealedCheckpoint) -> None:
    try:
        schema = json.loads(sealed.body)["schema_version"]
    except (ValueError, TypeError, KeyError, RecursionError):
        # It cannot be read at all; that is for the check of its seal to say.
        return
    if type(schema) is int and schema > SCHEMA_VERSION:
        msg = f"version {sealed.version} was written by a later release; deploy one that understands it"
        raise ReleaseRefused(msg)


def _require_on_head(principal: Principal, operation: Operation, head: Head, deps: ApiDeps) -> None:
    columns = {name: str(value) for name, value in head.columns.items()}
    try:
        resource = Resource(
            tenant=head.key.tenant,
            workflow=columns.get("workflow", ""),
            task_id=head.key.task_id,
            stage=columns.get("stage", ""),
            owner=columns.get("owner", ""),
        )
    except ValueError:
        resource = None
    question = None if resource is None else Question(principal=principal, operation=operation, resource=resource)
    if question is None or not deps.rights.authoriser.rule(question).allowed:
        msg = "no such task"
        raise TaskNotFound(msg)
