"""What a write costs by DynamoDB's published rules, computed from what an item was and what it became.

DynamoDB Local charges a transaction at twice the published price, so its own figures are of no use for a product that
writes in transactions; outside transactions it charges as published, which `tests/contract/test_write_units.py` holds
these rules to. The rules:

- A table write costs one unit for every kilobyte begun, of the larger of the item before and the item after.
- In a transaction it costs two: each item is written twice, to prepare and to commit. So does a condition check.
- An index is charged for what changes in it: nothing when its entry stays as it is, one write to add, change or remove
  an entry, two to move it to another key. It follows the table after the transaction is done, so these are single.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

# Attribute name to attribute value, such as ``{"version": {"N": "3"}}``; None where there is no item.
Image: TypeAlias = Mapping[str, Mapping[str, Any]] | None

_WRITE_UNIT_BYTES: Final = 1_024
TRANSACTED: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexShape:
    """What an index holds of an item, and which of it is the key."""

    keys: frozenset[str]
    shows: frozenset[str]


def item_bytes(item: Image) -> int:
    """Return an item's size as DynamoDB counts it: names and values, in UTF-8."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in (item or {}).items())


def table_units(before: Image, after: Image) -> int:
    """Return the units that a write of an item costs its table outside a transaction."""
    return _units(max(item_bytes(before), item_bytes(after)))


def index_units(before: Image, after: Image, shape: IndexShape) -> int:
    """Return the units that a write of an item costs one index."""
    old, new = _entry(before, shape), _entry(after, shape)
    if old == new:
        return 0
    if old is not None and new is not None and all(old[key] == new[key] for key in shape.keys):
        return _units(max(item_bytes(old), item_bytes(new)))
    return sum(_units(item_bytes(entry)) for entry in (old, new) if entry is not None)


def _entry(item: Image, shape: IndexShape) -> Image:
    if item is None or not shape.keys <= item.keys():
        return None
    return {name: value for name, value in item.items() if name in shape.shows}


def _units(size: int) -> int:
    return max(1, -(-size // _WRITE_UNIT_BYTES))


def _value_bytes(value: Mapping[str, Any]) -> int:
    (kind, content), *_ = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "N":
        # About one byte for two digits, and one.
        return (len(content.strip("-0.") or "0") + 1) // 2 + 1
    msg = f"no stored row has an attribute of type {kind}"
    raise ValueError(msg)
