"""Loading and committing sealed tasks: gate 3, and law 6."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from shared.domain.change import Change
from shared.domain.checkpoint import SCHEMA_VERSION, Checkpoint, decode_checkpoint, encode_checkpoint, head_columns
from shared.domain.errors import CheckpointQuarantined, InvariantBroken, SealUnavailable, TaskNotFound
from shared.domain.identity import TaskKey
from shared.domain.migrations import migrate
from shared.domain.seal import GENESIS, SealedCheckpoint, seal_input
from shared.ports.inbox import InboxRow
from shared.ports.task_records import Commit, Head, Stored
from shared.usecases.engine import Records


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A task whose record was found intact, and the seal that the next version is chained to."""

    task: Checkpoint
    seal: str


class Untrusted(CheckpointQuarantined):
    """The stored state failed its check at this version; it has to be quarantined, not resumed."""

    def __init__(self, head: Head, reason: str) -> None:
        """Keep the head, so that the quarantine can be bound to the version that failed."""
        super().__init__(reason)
        self.head: Final = head


def load_task(key: TaskKey, deps: Records, *, version_hint: int | None = None) -> Loaded:
    """Load a task and verify it: present, chained, sealed for exactly this key and version, equal to its head.

    Raises:
        TaskNotFound: the tenant has no such task.
        Untrusted: it is quarantined, or has to be.
        SealUnavailable: the key service could not be asked; that is no verdict.
    """
    stored = deps.records.load(key, version_hint=version_hint)
    if stored is None:
        msg = "no such task"
        raise TaskNotFound(msg)
    return verify_stored(stored, deps)


def ended_child(task: Checkpoint, deps: Records) -> Checkpoint | None:
    """Find a child task whose end is not in its parent's record yet, and that its own record says has ended.

    One that cannot be trusted has not ended: its operators look after it, and the wait for it has its own deadline.

    Raises:
        SealUnavailable: the key service could not be asked; that is no verdict.
    """
    for known in task.live_children:
        try:
            child = load_task(TaskKey(tenant=task.security.tenant, task_id=known.task_id), deps).task
        except (TaskNotFound, Untrusted):
            continue
        if child.closed:
            return child
    return None


def verify_stored(stored: Stored, deps: Records) -> Loaded:
    """Check a stored task (gate 3)."""
    head, sealed = stored.head, stored.checkpoint
    if head.quarantine is not None:
        raise Untrusted(head, head.quarantine)
    if sealed is None or sealed.version != head.version:
        raise Untrusted(head, f"the checkpoint of version {head.version} is missing")
    loaded, schema = verify_sealed(head, sealed, deps)
    columns = head_columns(loaded.task)
    # An earlier release may have indexed other columns; those that both know have to agree all the same.
    migrated = schema != SCHEMA_VERSION
    known = columns.keys() & head.columns.keys() if migrated else columns.keys() | head.columns.keys()
    if any(columns.get(name) != head.columns.get(name) for name in known):
        raise Untrusted(head, "the head's columns differ from the sealed record")
    return loaded


def verify_sealed(head: Head, sealed: SealedCheckpoint, deps: Records) -> tuple[Loaded, int]:
    """Check one version by itself: sealed for exactly this task and version, readable, of a workflow as we have it.

    Returns:
        The task, and the schema version that its body was written in.

    Raises:
        Untrusted: it is not.
        SealUnavailable: the key service could not be asked; that is no verdict.
    """
    stored_body = _read(head, sealed)
    schema: int = stored_body["schema_version"]
    if not _is_sealed(head, sealed, stored_body, deps):
        raise Untrusted(head, f"the seal of version {sealed.version} does not match")
    task = _decode(head, sealed, stored_body)
    if (task.key, task.version) != (head.key, sealed.version):
        raise Untrusted(head, "the sealed record belongs to another task or version")
    workflow = deps.workflows.get(task.business.workflow)
    misfit = "no such workflow" if workflow is None else workflow.misfit(task)
    if misfit is not None:
        raise Untrusted(head, f"this release has {misfit}")
    return Loaded(task=task, seal=sealed.seal), schema


def commit_change(
    change: Change,
    deps: Records,
    *,
    previous: Loaded | None,
    inbox: InboxRow | None = None,
    lease_fence: int | None = None,
    children: Sequence[tuple[Change, Loaded]] = (),
) -> Loaded:
    """Seal the change's task and commit it with everything that belongs to it, or nothing.

    Args:
        children: changes of child tasks that stand or fall with this one. Those that the change starts are among what
            belongs to it.

    Raises:
        Redecide: see `TaskRecords.commit`; reload and decide again.
        RequestTooLarge: the checkpoint would be too large; nothing was written.
        SealUnavailable: no seal could be made; nothing was written.

    If killed here:
        Before the write nothing happened; after it the outbox row is delivered by the stream.
    """
    if lease_fence is not None:
        execution = change.task.execution.model_copy(update={"fence": lease_fence})
        change = replace(change, task=change.task.model_copy(update={"execution": execution}))
    commit, loaded = _sealed(change, deps, chained_to=previous)
    started = [(first, None) for first in change.children]
    beside = tuple(_sealed(other, deps, chained_to=before)[0] for other, before in (*started, *children))
    deps.records.commit(replace(commit, inbox=inbox, lease_fence=lease_fence, children=beside))
    return loaded


def commit_release(change: Change, deps: Records, *, intact: Loaded, head: Head) -> Loaded:
    """Seal the change's task, chained to the version it was made from, and commit it over a quarantined head.

    Raises:
        Redecide, RequestTooLarge, SealUnavailable: see `commit_change`; the task is still quarantined.

    If killed here:
        The task is quarantined as before, or it is not any more, with everything that belongs to that.
    """
    commit, loaded = _sealed(change, deps, chained_to=intact)
    deps.records.release(replace(commit, previous=head.version), quarantine=head.quarantine or "")
    return loaded


def _sealed(change: Change, deps: Records, *, chained_to: Loaded | None) -> tuple[Commit, Loaded]:
    task = change.task.model_copy(update={"previous_seal": chained_to.seal if chained_to else GENESIS})
    body = encode_checkpoint(task, begins_something=_begins_something(change, chained_to))
    key_id = deps.sealer.key_id
    sealed_bytes = seal_input(
        task.key,
        version=task.version,
        schema_version=task.schema_version,
        key_id=key_id,
        previous_seal=task.previous_seal,
        body=body,
    )
    sealed = SealedCheckpoint(version=task.version, body=body, seal=deps.sealer.seal(sealed_bytes), key_id=key_id)
    commit = Commit(
        attempt_id=deps.ids.new("att"),
        key=task.key,
        previous=chained_to.task.version if chained_to else None,
        checkpoint=sealed,
        columns=head_columns(task),
        now=deps.clock.now(),
        opened=change.opened,
        settled=change.settled,
        climbed=change.climbed,
        intents=change.intents,
        withdrawn=change.withdrawn,
        messages=change.messages,
    )
    return commit, Loaded(task=task, seal=sealed.seal)


def _begins_something(change: Change, previous: Loaded | None) -> bool:
    new_request = previous is None or previous.task.business.request_version != change.task.business.request_version
    return new_request or any(row.undoes is None for row in change.intents)


def _read(head: Head, sealed: SealedCheckpoint) -> dict[str, Any]:
    """Read what a seal has to be checked with. Nothing of it is believed before that."""
    try:
        body = json.loads(sealed.body)
        schema, previous_seal = body["schema_version"], body["previous_seal"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Untrusted(head, "the checkpoint cannot be read") from error
    if type(schema) is not int or not isinstance(previous_seal, str):
        raise Untrusted(head, "the checkpoint names no schema version or no seal before its own")
    stored: dict[str, Any] = body
    return stored


def _is_sealed(head: Head, sealed: SealedCheckpoint, stored_body: dict[str, Any], deps: Records) -> bool:
    """Check the seal with the key that the row names; where that key gives no verdict, find out whether it was ours.

    A row that names a key which does not exist would otherwise wait for it for ever. If the key in use made the seal,
    somebody has edited the name.
    """

    def covered(key_id: str) -> bytes:
        return seal_input(
            head.key,
            version=sealed.version,
            schema_version=stored_body["schema_version"],
            key_id=key_id,
            previous_seal=stored_body["previous_seal"],
            body=sealed.body,
        )

    try:
        return deps.sealer.verify(covered(sealed.key_id), sealed.seal, sealed.key_id)
    except (SealUnavailable, InvariantBroken):
        ours = deps.sealer.key_id
        if sealed.key_id != ours and deps.sealer.verify(covered(ours), sealed.seal, ours):
            return False
        raise


def _decode(head: Head, sealed: SealedCheckpoint, stored_body: dict[str, Any]) -> Checkpoint:
    """Decode a body whose seal holds, by way of its schema's migrations if an earlier release wrote it."""
    if stored_body["schema_version"] == SCHEMA_VERSION:
        body = sealed.body
    else:
        try:
            body = json.dumps(migrate(stored_body))
        except ValueError as error:
            raise Untrusted(head, str(error)) from error
    try:
        return decode_checkpoint(body)
    except ValueError as error:
        raise Untrusted(head, "the checkpoint does not have the form of its schema") from error
