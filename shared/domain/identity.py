"""Identifiers that never stand in for each other: principal, tenant, thread, task, execution.

Every text that becomes part of a key has a grammar without the separator ``#``, or is length-prefixed.
"""

import re
from typing import Annotated, Final

from pydantic import StringConstraints

from shared.domain.errors import InvalidRequest
from shared.domain.records import Record

TENANT_PATTERN: Final = r"^[a-z0-9][a-z0-9-]{1,39}\Z"
TASK_ID_PATTERN: Final = r"^tsk_[0-9a-f]{32}\Z"
NAME_CHARACTERS_MAX: Final = 40
NAME_PATTERN: Final = rf"^[a-z][a-z0-9_]{{1,{NAME_CHARACTERS_MAX - 1}}}\Z"
# Approval, wait and correlation ids are ours and unguessable, or a partner's reference of the same bounded grammar.
REFERENCE_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}\Z"

TenantId = Annotated[str, StringConstraints(pattern=TENANT_PATTERN.replace(r"\Z", "$"))]
TaskId = Annotated[str, StringConstraints(pattern=TASK_ID_PATTERN.replace(r"\Z", "$"))]
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN.replace(r"\Z", "$"))]
Reference = Annotated[str, StringConstraints(pattern=REFERENCE_PATTERN.replace(r"\Z", "$"))]

# 128 random bits, as 32 hexadecimal digits.
ID_BYTES: Final = 16


class PrincipalRef(Record):
    """Who acts, as the identity provider established it. E-mail and display names are never used for this (B75)."""

    issuer: Annotated[str, StringConstraints(min_length=1, max_length=400)]
    subject: Annotated[str, StringConstraints(min_length=1, max_length=256)]

    @property
    def key(self) -> str:
        """The length-prefixed text that identifies the principal in stores and audit lines."""
        return f"{len(self.issuer)}:{self.issuer}:{self.subject}"


class TaskKey(Record):
    """A tenant's task. The tenant comes from the verified principal, never from a request field."""

    tenant: TenantId
    task_id: TaskId

    @property
    def key(self) -> str:
        """The partition key of everything stored for the task."""
        return f"{self.tenant}#{self.task_id}"

    @property
    def execution_prefix(self) -> str:
        """The start of the names of the task's executions."""
        return self.task_id


def task_key(tenant: str, task_id: str) -> TaskKey:
    """Build a key from text that came from outside.

    Raises:
        InvalidRequest: one of the two does not match its grammar.
    """
    if re.match(TENANT_PATTERN, tenant) is None or re.match(TASK_ID_PATTERN, task_id) is None:
        msg = "a task id has the form tsk_ and 32 hexadecimal digits"
        raise InvalidRequest(msg)
    return TaskKey(tenant=tenant, task_id=task_id)


def execution_name(task_id: str, run: int) -> str:
    """Name the execution of a run, in at most 80 characters: the same run never starts twice (B61)."""
    return f"{task_id}-{run}"


def operation_key(key: TaskKey, *, request_version: int, ordinal: int, tool: str) -> str:
    """Make the idempotency key of an action from the business operation: the same on every attempt, in every process.

    Code makes it; a model, an attempt or a function name never takes part in it (B26).
    """
    return f"{key.tenant}:{key.task_id}:v{request_version}:{ordinal}:{tool}"
