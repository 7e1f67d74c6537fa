"""Heads as rows: the high-water mark, its writer, and the indexed columns."""

from typing import Final

from shared.adapters.dynamodb.items import Item, number, read_number, read_optional_text, read_text, text
from shared.domain.identity import TaskKey
from shared.ports.task_records import Commit, Head

# What a head row holds beside the columns.
_OWN: Final = frozenset({"task", "attempt", "quarantine"})


def head_key(key: TaskKey) -> Item:
    """Return the key of a task's head."""
    return {"task": text(key.key)}


def head_item(commit: Commit) -> Item:
    """Return the whole head after a commit: nothing of the head before it is left."""
    columns = {name: text(v) if isinstance(v, str) else number(v) for name, v in commit.columns.items()}
    return {**columns, **head_key(commit.key), "attempt": text(commit.attempt_id)}


def read_head(key: TaskKey, item: Item) -> Head:
    """Read a head row.

    A column that is neither text nor an integer was written by nobody of ours. It is kept as a word that matches no
    sealed field, so that the gate that compares them sees it.
    """
    return Head(
        key=key,
        version=read_number(item, "version"),
        attempt_id=read_text(item, "attempt"),
        columns={name: _column(item, name) for name in item if name not in _OWN},
        quarantine=read_optional_text(item, "quarantine"),
    )


def _column(item: Item, name: str) -> str | int:
    kind = next(iter(item[name]), "")
    if kind == "N":
        return read_number(item, name)
    return read_text(item, name) if kind == "S" else f"unreadable {kind}"
