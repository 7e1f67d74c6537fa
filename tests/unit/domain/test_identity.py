"""Identifiers: what becomes part of a key can hold no separator, and keys come from code alone."""

import pytest
from pydantic import TypeAdapter, ValidationError

from shared.domain.errors import InvalidRequest
from shared.domain.identity import (
    Name,
    PrincipalRef,
    Reference,
    TaskId,
    TaskKey,
    TenantId,
    execution_name,
    operation_key,
    task_key,
)
from tests.builders import a_task_key

TASK = "tsk_" + "0" * 32


@pytest.mark.parametrize("tenant", ["acme#x", "acme:x", "Acme", "a", "", "-acme", "acme\n", "x" * 41, "akme\u0301"])
def test_a_tenant_cannot_hold_a_separator(tenant: str) -> None:
    """A1: no tenant name can reach into another tenant's keys."""
    with pytest.raises(InvalidRequest):
        task_key(tenant, TASK)
    with pytest.raises(ValidationError):
        TypeAdapter(TenantId).validate_python(tenant)


@pytest.mark.parametrize(
    "task_id", ["tsk_1", TASK + "0", TASK.upper(), TASK + "\n", "../" + TASK, "tsk_" + "g" * 32, ""]
)
def test_a_task_id_has_one_form(task_id: str) -> None:
    """A2: what is not 128 bits in our form names no task."""
    with pytest.raises(InvalidRequest):
        task_key("acme", task_id)
    with pytest.raises(ValidationError):
        TypeAdapter(TaskId).validate_python(task_id)


@pytest.mark.parametrize("name", ["Refund", "re fund", "r", "1st", "re-fund", "x" * 41, "refund\n"])
def test_a_name_is_a_plain_word(name: str) -> None:
    """Stages, tools, facts and roles are named in one grammar."""
    with pytest.raises(ValidationError):
        TypeAdapter(Name).validate_python(name)


@pytest.mark.parametrize("reference", ["a#b", " a", "", "x" * 101, "a\n", "a/b"])
def test_a_reference_cannot_hold_a_separator(reference: str) -> None:
    """A partner's reference that becomes a key cannot end it early."""
    with pytest.raises(ValidationError):
        TypeAdapter(Reference).validate_python(reference)


def test_two_people_never_share_a_key() -> None:
    """B75: issuer and subject are told apart by length, whatever characters they hold."""
    one = PrincipalRef(issuer="https://a", subject="b:c")
    other = PrincipalRef(issuer="https://a:b", subject="c")

    assert one.key != other.key


def test_an_execution_is_named_after_task_and_run() -> None:
    """B61: the same run has the same name, within the service's 80 characters."""
    assert execution_name(TASK, 1) == execution_name(TASK, 1) != execution_name(TASK, 2)
    assert len(execution_name(TASK, 10**9)) <= 80


def test_an_operation_key_is_the_same_in_every_process() -> None:
    """B26: the key is made from the business operation and from nothing else."""
    key = a_task_key(1)
    first = operation_key(key, request_version=1, ordinal=1, tool="issue_refund")

    assert first == operation_key(
        TaskKey(tenant=key.tenant, task_id=key.task_id), request_version=1, ordinal=1, tool="issue_refund"
    )


def test_operations_that_differ_have_different_keys() -> None:
    """B16: another tenant, task, version, ordinal or tool is another operation."""
    made = {
        operation_key(a_task_key(n, tenant=t), request_version=v, ordinal=o, tool=tool)
        for n in (1, 11)
        for t in ("acme", "globex")
        for v in (1, 11)
        for o in (1, 11)
        for tool in ("pay", "pay_1")
    }

    assert len(made) == 32
