"""The published form of every business event, as JSON Schema: the whole `detail` of the event on the bus."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from tooling.drawings import table

if TYPE_CHECKING:
    from shared.domain.events import EventDetail

# What holds nothing further stands on one line.
_LEAF: Final = re.compile(r"[\[{][^\[\]{}]*[\]}]")


def drawn() -> str:
    """Write a section for every event: what it says, its fields, its schema."""
    from shared.domain.events import EVENTS  # noqa: PLC0415 - the code is loaded when it is drawn

    return "\n\n".join(_section(name, form) for name, form in EVENTS.items())


def envelope() -> str:
    """List the fields that all events have in common."""
    from shared.domain.events import Envelope  # noqa: PLC0415 - the code is loaded when it is drawn

    return _fields(Envelope.model_json_schema()["properties"])


def schema_of(form: type[EventDetail]) -> dict[str, Any]:
    """The schema of a whole event: the envelope with this event's name, version and fields in it."""
    from shared.domain.events import Envelope  # noqa: PLC0415 - the code is loaded when it is drawn

    schema = _plain(Envelope.model_json_schema())
    properties: dict[str, Any] = schema["properties"]
    properties["event"] = {"const": form.event}
    properties["schema_version"] = {"const": form.schema_version}
    properties["detail"] = _plain(form.model_json_schema())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:holdfast:event:{form.event}:{form.schema_version}",
        **schema,
    }


def _section(name: str, form: type[EventDetail]) -> str:
    words = " ".join((form.__doc__ or "").split())
    schema = _LEAF.sub(lambda leaf: " ".join(leaf.group().split()), json.dumps(schema_of(form), indent=2))
    fields = _fields(form.model_json_schema()["properties"])
    return f"### {name}\n\nVersion {form.schema_version}. {words}\n\n{fields}\n\n```json\n{schema}\n```"


def _fields(properties: dict[str, Any]) -> str:
    rows = [
        (f"`{field}`", _type_of(promised), promised.get("description", "")) for field, promised in properties.items()
    ]
    return table(("field", "type", "what it is"), rows)


def _type_of(promised: dict[str, Any]) -> str:
    if "enum" in promised:
        return " or ".join(f"`{value}`" for value in promised["enum"])
    return str(promised.get("type", "object"))


def _plain(value: Any) -> Any:  # noqa: ANN401 - any part of a schema
    """Leave out the words that repeat a field's name, and descriptions, which the table above has."""
    if isinstance(value, dict):
        names = value.get("properties", {})
        kept = {k: _plain(v) for k, v in value.items() if k not in {"title", "description"} or value is names}
        if names:
            kept["properties"] = {name: _plain(promised) for name, promised in names.items()}
        return kept
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value
