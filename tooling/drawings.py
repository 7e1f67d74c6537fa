"""Pictures and tables that the code knows better than any author: markdown drawn from what runs.

Every function returns the text of one block; the same code gives the same text. Imports of the drawn code stand inside
the functions, because some of it (the CDK) takes seconds to import.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any


def task_machine() -> str:
    """Draw the state machine of a task: the hub, its spokes and its ends."""
    from stacks.task_graph import task_graph

    graph = task_graph("any")
    states: dict[str, dict[str, Any]] = graph["States"]
    lines = ["flowchart LR", f'  begin(["start"]) --> {_id(graph["StartAt"])}']
    lines += [f"  {_shape(name, state)}" for name, state in states.items()]
    for name, state in states.items():
        lines += [f"  {_id(name)} {arrow} {_id(target)}" for arrow, target in _edges(state)]
    return _mermaid(lines)


def stages() -> str:
    """Draw the stages of every workflow and the moves between them."""
    from shared.workflows.registry import discover

    parts = []
    for workflow in discover().values():
        lines = ["stateDiagram-v2", f"  [*] --> {workflow.first_stage}"]
        for name, stage in workflow.stages.items():
            following = sorted(stage.next) or ["[*]"]
            lines += [f"  {name} --> {after}" for after in following]
        parts.append(f"{workflow.title} (`{workflow.name}`):\n\n{_mermaid(lines)}")
    return "\n\n".join(parts)


def statuses() -> str:
    """List every status with those that may follow it; all the waits at once are one word."""
    from shared.domain.status import NEXT, TERMINAL, WAITING, Status

    rows = []
    for status in Status:
        others = NEXT[status] - {status}
        any_wait = WAITING - {status} <= others
        following = ["`waiting_*`"] if any_wait else []
        following += [f"`{after}`" for after in Status if after in others and not (any_wait and after in WAITING)]
        rows.append((f"`{status}`", "nothing: the task has ended" if status in TERMINAL else ", ".join(following)))
    return table(("status", "may become"), rows)


def gates() -> str:
    """List the rules of the resume protocol in the order in which they are asked."""
    from shared.domain.resume import RULES

    rows = [(str(place), f"`{rule.__name__}`", first_line(rule.__doc__)) for place, rule in enumerate(RULES, start=1)]
    return table(("order", "rule", "what it says"), rows)


def ledger() -> str:
    """List what the action ledger allows after an unclear outcome, by effect class and kind of provider.

    The cells are the answers of the rule itself for a first attempt whose lease has lapsed.
    """
    from datetime import UTC, datetime, timedelta

    from shared.domain.action import ActionRow, ActionStatus, EffectClass, EffectRules, next_ledger_step

    now = datetime(2026, 1, 1, tzinfo=UTC)
    rows = []
    for effect in EffectClass:
        row = ActionRow(
            tenant="acme",
            task_id=f"tsk_{'0' * 32}",
            operation="one",
            tool="tool",
            effect=effect,
            digest="",
            version=1,
            status=ActionStatus.IN_FLIGHT,
            attempts=1,
            fence=1,
            first_sent_at=now - timedelta(minutes=1),
            lease_ends_at=now - timedelta(seconds=1),
            intended_at=now - timedelta(minutes=1),
        )
        verbs = [
            next_ledger_step(row, EffectRules(effect=effect, can_look_up=can_look_up), now=now)
            for can_look_up in (True, False)
        ]
        rows.append((f"`{effect}`", *(f"`{step.verb}`: {step.reason}" for step in verbs)))
    return table(("effect class", "provider can be asked", "provider cannot be asked"), rows)


def errors() -> str:
    """List every error by code, with what the caller has to do and the HTTP status that it has at the API."""
    from shared.domain import errors as module
    from shared.domain.errors import Disposition, EngineError
    from shared.runtime.api import meaning_of

    found = [
        error
        for error in vars(module).values()
        if isinstance(error, type) and issubclass(error, EngineError) and error is not EngineError
    ]
    rows = []
    for error in found:
        # A crash tells its caller nothing about itself; its own code is for the log.
        code = "internal_error" if error.disposition is Disposition.CRASH else error.code
        status = f"{int(meaning_of(error).status)} `{code}`"
        rows.append((f"`{error.code}`", f"`{error.disposition}`", status, first_line(error.__doc__)))
    return table(("code", "disposition", "at the API", "meaning"), rows)


def routes() -> str:
    """List the operations of the API as they are registered, with the statuses they answer."""
    from functions.api.application import application
    from functions.api.operations import OPERATIONS

    summaries = {
        operation["operationId"]: operation["summary"]
        for methods in json.loads(application.get_openapi_json_schema())["paths"].values()
        for operation in methods.values()
    }
    rows = []
    for name, known in OPERATIONS.items():
        statuses = ", ".join(str(status) for status in sorted({known.status, *known.also}))
        path = known.path.replace("<", "{").replace(">", "}")
        rows.append((f"`{known.method} {path}`", summaries.get(name, "This description, open to everyone"), statuses))
    return table(("operation", "what it does", "answers, beside 400, 401, 403, 500, 503"), rows)


def events() -> str:
    """List the business events with the fields that each brings beside the envelope's."""
    from shared.domain.events import EVENTS

    rows = []
    for name, form in EVENTS.items():
        fields = ", ".join(f"`{field}`" for field in form.model_fields)
        rows.append((f"`{name}`", str(form.schema_version), first_line(form.__doc__), fields))
    return table(("event", "form", "what it says", "`detail` holds"), rows)


def people() -> str:
    """List who can log in to a local AWS."""
    from local.people import PEOPLE

    rows = [
        (f"`{each.name}`", each.tenant, ", ".join(f"`{role}`" for role in sorted(each.roles)), each.may)
        for each in PEOPLE.values()
    ]
    return table(("name", "tenant", "roles", "may"), rows)


def records() -> str:
    """List the record tables with their keys."""
    from stacks.records import RECORD_KINDS

    rows = []
    for kind in RECORD_KINDS:
        notes = [
            *(f"index `{index.name}` on `{index.partition}`, `{index.sort}`" for index in kind.indexes),
            "stream" if kind.has_stream else "",
            "rows past `purge_at` may be dropped" if kind.is_purged else "",
        ]
        key = f"`{kind.partition}`" + (f", `{kind.sort.name}`" if kind.sort else "")
        rows.append((f"`{kind.name}`", key, "; ".join(note for note in notes if note)))
    return table(("table", "key", "beside it"), rows)


def differences() -> str:
    """List where the local AWS departs from AWS, and what follows."""
    from local.differences import DIFFERENCES

    rows = [(each.on_aws, each.here, each.consequence or "corrected in the emulator") for each in DIFFERENCES]
    return table(("on AWS", "in the emulator as it comes", "here"), rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a markdown table."""
    lines = [_row(head), _row(["---"] * len(head)), *(_row(row) for row in rows)]
    return "\n".join(lines)


def first_line(docstring: str | None) -> str:
    """Return the first sentence or sentences of a docstring: everything up to its first blank line, as one line."""
    return " ".join((docstring or "").strip().split("\n\n", maxsplit=1)[0].split())


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _mermaid(lines: Sequence[str]) -> str:
    return "\n".join(["```mermaid", *lines, "```"])


def _id(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name.lower())


def _shape(name: str, state: dict[str, Any]) -> str:
    opening, closing = {"Choice": ("{", "}"), "Succeed": ("([", "])"), "Fail": ("([", "])")}.get(
        state["Type"], ("[", "]")
    )
    return f'{_id(name)}{opening}"{name}"{closing}'


def _edges(state: dict[str, Any]) -> Iterable[tuple[str, str]]:
    for choice in state.get("Choices", ()):
        yield f"-- {choice['StringEquals']} -->", choice["Next"]
    if "Default" in state:
        yield "-- anything else -->", state["Default"]
    if "Next" in state:
        yield "-->", state["Next"]
    # A caught error usually leads where success leads; only another way is worth an arrow of its own.
    for catch in state.get("Catch", ()):
        if catch["Next"] != state.get("Next"):
            yield "-. error .->", catch["Next"]
