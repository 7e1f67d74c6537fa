"""Waits as rows, found by tenant and correlation id."""

from typing import Final

from shared.adapters.dynamodb.items import Item, decode, encode, read_text, text
from shared.domain.wait import Wait

_AS_JSON: Final = frozenset({"answered_by", "rule"})


def wait_key(tenant: str, correlation_id: str) -> Item:
    """Return a wait's key. The tenant comes first, so nobody finds another tenant's wait by knowing its correlation."""
    return {"correlation": text(f"{tenant}#{correlation_id}")}


def wait_item(wait: Wait) -> Item:
    """Return the row of a wait. It names its task, so that a task's waits can be listed."""
    fields = encode(wait, leave_out=frozenset({"tenant", "correlation_id"}), as_json=_AS_JSON)
    return {**wait_key(wait.tenant, wait.correlation_id), "task": text(f"{wait.tenant}#{wait.task_id}"), **fields}


def read_wait(item: Item) -> Wait:
    """Read a row."""
    tenant, _, correlation_id = read_text(item, "correlation").partition("#")
    return decode(item, Wait, as_json=_AS_JSON, tenant=tenant, correlation_id=correlation_id)
