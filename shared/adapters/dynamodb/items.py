"""Items in DynamoDB's own wire form: text stays text, integers stay integers, nothing in between reshapes them."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import ValidationError

from shared.domain.canonical import canonical
from shared.domain.errors import InvariantBroken
from shared.domain.instants import format_instant
from shared.domain.records import Record

# Attribute name to attribute value, such as ``{"version": {"N": "3"}}``.
Item: TypeAlias = dict[str, Any]
R = TypeVar("R", bound=Record)

_WHOLE: Final = re.compile(r"-?[0-9]{1,16}\Z", re.ASCII)


def text(value: str) -> dict[str, str]:
    """Return a text value."""
    return {"S": value}


def number(value: int) -> dict[str, str]:
    """Return an integer value."""
    return {"N": str(value)}


def instant(moment: datetime) -> dict[str, str]:
    """Return an instant in its one stored form, whose text order is time order."""
    return {"S": format_instant(moment)}


def epoch_second(moment: datetime) -> dict[str, str]:
    """Return the first whole second that is not before the instant, as DynamoDB's expiry wants it."""
    second = int(moment.timestamp())
    return number(second if second >= moment.timestamp() else second + 1)


def read_text(item: Mapping[str, Any], name: str) -> str:
    """Read a text attribute.

    Raises:
        InvariantBroken: it is missing or no text; nobody but us writes these tables.
    """
    value = item.get(name, {}).get("S")
    if not isinstance(value, str):
        msg = f"a stored row has no text {name!r}"
        raise InvariantBroken(msg)
    return value


def read_optional_text(item: Mapping[str, Any], name: str) -> str | None:
    """Read a text attribute that may be absent."""
    return read_text(item, name) if name in item else None


def read_number(item: Mapping[str, Any], name: str) -> int:
    """Read an integer attribute.

    Raises:
        InvariantBroken: it is missing or no integer.
    """
    value = item.get(name, {}).get("N")
    if not isinstance(value, str) or _WHOLE.match(value) is None:
        msg = f"a stored row has no integer {name!r}"
        raise InvariantBroken(msg)
    return int(value)


def encode(record: Record, *, leave_out: frozenset[str] = frozenset(), as_json: frozenset[str] = frozenset()) -> Item:
    """Return a record's fields as attributes: absent when None, canonical JSON text for the fields in `as_json`."""
    fields = record.model_dump(mode="json", exclude=set(leave_out))
    return {
        name: text(canonical(value).decode()) if name in as_json else _scalar(name, value)
        for name, value in fields.items()
        if value is not None
    }


def decode(item: Mapping[str, Any], kind: type[R], *, as_json: frozenset[str] = frozenset(), **known: str) -> R:
    """Read a record back. `known` are fields that the row's key tells; attributes that are no field are skipped.

    Raises:
        InvariantBroken: the row is not such a record.
    """
    try:
        fields: dict[str, Any] = {
            name: json.loads(read_text(item, name)) if name in as_json else _plain(item, name)
            for name in kind.model_fields
            if name in item
        }
        return kind.model_validate_json(json.dumps(fields | known))
    except (ValidationError, ValueError) as error:
        msg = f"a stored row is no {kind.__name__}"
        raise InvariantBroken(msg) from error


def _scalar(name: str, value: object) -> dict[str, str]:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return number(value)
    msg = f"{name} is neither text nor an integer"
    raise InvariantBroken(msg)


def _plain(item: Mapping[str, Any], name: str) -> str | int:
    return read_number(item, name) if "N" in item[name] else read_text(item, name)
