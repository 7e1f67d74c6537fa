"""Values of a workflow's models: from the stories that are told of it, and from the models themselves."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Final

from hypothesis import find, settings
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from shared.domain.action import Arguments
from shared.domain.workflow import Workflow
from tests.fakes.downstream import Kind
from tests.recovery.story import Outside, stories_of

_QUIETLY: Final = settings(database=None, derandomize=True, max_examples=50, deadline=None)
# Texts whose form no schema describes, such as days and time zones, and texts that most patterns take.
_WELL_FORMED: Final = ("x", "2026-12-01", "Europe/Berlin", "A-1001", "ab")


def requests_of(workflow: Workflow) -> list[Arguments]:
    """Requests that a workflow takes: those of its stories, or what its model's own schema allows."""
    told = [_record_of(workflow, story.request) for story in _stories(workflow)]
    return _distinct(told) or examples(workflow.request)


def facts_of(workflow: Workflow, tool: str, arguments: Arguments) -> list[Arguments]:
    """What the system behind a tool may answer in a workflow's stories; nothing is always possible too."""
    told = [story.outside.get(tool, Outside(kind=Kind.HONOURS_KEYS)).facts(arguments) for story in _stories(workflow)]
    return _distinct([*told, {}])


@cache
def examples(model: type[BaseModel]) -> list[Arguments]:
    """Valid values of a model, from small to large, as far as its fields say what they take."""
    choices = {name: list(_choices(field)) for name, field in model.model_fields.items()}
    if not all(choices.values()):
        return []
    longest = max((len(each) for each in choices.values()), default=1)
    drafts = [{name: each[min(n, len(each) - 1)] for name, each in choices.items()} for n in range(longest)]
    drafts.append({name: each[-1] for name, each in choices.items()})
    valid = []
    for draft in drafts:
        try:
            valid.append(model.model_validate(draft, strict=True).model_dump(mode="json"))
        except ValidationError:
            # The fields are valid one by one and not together.
            continue
    return _distinct(valid)


def _choices(field: FieldInfo) -> Iterator[Any]:
    kind: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    for value in _candidates(adapter.json_schema()):
        try:
            adapter.validate_python(value, strict=True)
        except ValidationError:
            continue
        yield value


def _candidates(schema: Mapping[str, Any]) -> Iterator[Any]:
    for each in schema.get("anyOf", ()):
        yield from _candidates(each)
    if "const" in schema:
        yield schema["const"]
    yield from schema.get("enum", ())
    match schema.get("type"):
        case "integer":
            yield schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
            yield schema.get("maximum", schema.get("exclusiveMaximum", 2**53) - 1)
        case "boolean":
            yield from (False, True)
        case "null":
            yield None
        case "object":
            yield {"a": 1}
        case "string":
            fitting = [text for text in _WELL_FORMED if re.search(schema.get("pattern", ""), text)]
            yield from fitting or (_of_pattern(schema["pattern"]),)
            yield "x" * schema.get("maxLength", 1)


@cache
def _of_pattern(pattern: str) -> str:
    return find(st.from_regex(pattern, fullmatch=True), lambda _: True, settings=_QUIETLY)


def _stories(workflow: Workflow) -> list[Any]:
    try:
        return [story for story, told_of in stories_of(workflow.name).told if told_of.name == workflow.name]
    except LookupError:
        return []


def _record_of(workflow: Workflow, request: Mapping[str, object]) -> Arguments:
    fields = {name: value for name, value in request.items() if name != workflow.untrusted_field}
    return workflow.request.model_validate(fields, strict=True).model_dump(mode="json")


def _distinct(values: list[Arguments]) -> list[Arguments]:
    return [value for number, value in enumerate(values) if value not in values[:number]]
