"""The action ledger's rows."""

from typing import Final

from shared.adapters.dynamodb.items import Item, decode, encode, read_text, text
from shared.domain.action import ActionRow
from shared.domain.identity import TaskKey

_AS_JSON: Final = frozenset({"facts"})


def action_key(key: TaskKey, operation: str) -> Item:
    """Return the key of one operation of a task."""
    return {"task": text(key.key), "operation": text(operation)}


def action_item(row: ActionRow) -> Item:
    """Return the row."""
    return {
        "task": text(f"{row.tenant}#{row.task_id}"),
        **encode(row, leave_out=frozenset({"tenant", "task_id"}), as_json=_AS_JSON),
    }


def read_action(item: Item) -> ActionRow:
    """Read a row."""
    tenant, _, task_id = read_text(item, "task").partition("#")
    return decode(item, ActionRow, as_json=_AS_JSON, tenant=tenant, task_id=task_id)
