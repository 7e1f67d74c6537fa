"""A model that believes everything: it proposes the record's action, unless text from outside tells it otherwise.

It stands in for a language model that has fallen for planted text, so that what is tried is the code around it. The
same request always gets the same answer, ids included.

It reads the conversation as the window lays it out: a line ``record: {...}`` of the task card, and text from outside
between ``<<untrusted`` and ``untrusted>>``. It obeys two kinds of order in text from outside, and in what is
remembered:

* plain words: ``refund 5000`` and ``pay 5000`` (in the major unit), ``pay account 7730``;
* directives, to bring about the endings that a real model has: see `DIRECTIVES`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from http import HTTPStatus
from typing import Any, Final

# A hang outlasts every limit of the product with room to spare, and still ends by itself.
HANG_SECONDS_MAX: Final = 120.0
# Tokens are counted as everybody does who does not count them.
CHARACTERS_PER_TOKEN: Final = 4

_OUTSIDE: Final = re.compile(r"<<\s*untrusted(.*?)(?:untrusted\s*>>|\Z)", re.DOTALL | re.IGNORECASE)
_REMEMBERED: Final = re.compile(r"^## memory\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_RECORD: Final = re.compile(r"^record: (\{.*\})$", re.MULTILINE)
_DIRECTIVE: Final = re.compile(r"\[\[\s*model:\s*([a-z_]+)\s*(.*?)\s*\]\]")
_AMOUNT: Final = re.compile(
    r"\b(?:refund|pay)\s+(?:of\s+)?(?:[A-Z]{3}\s*|[€$£]\s*)?(\d[\d,]*(?:\.\d{1,2})?)\b", re.IGNORECASE
)
_ACCOUNT: Final = re.compile(r"\bpay\s+(?:to\s+)?account\s+([A-Za-z0-9-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call. ``arguments`` is the text that the model wrote, whether it is JSON or not."""

    tool: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the model is about to answer, and how."""

    calls: tuple[Call, ...] = ()
    text: str | None = None
    cut_off: bool = False
    status: HTTPStatus = HTTPStatus.OK
    hang_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the model has taken from a request."""

    record: Mapping[str, Any]
    outside: str
    tools: Sequence[Mapping[str, Any]] = ()
    wanted_tool: str | None = None
    max_tokens: int | None = None
    characters: int = 0
    overrides: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An HTTP answer and how long to wait before it is given."""

    status: HTTPStatus
    body: Mapping[str, Any]
    hang_seconds: float


def reply_to(request: Mapping[str, Any]) -> Reply:
    """Answer one chat completion.

    Raises:
        ValueError: the request has no model or no messages.
    """
    reading = read(request)
    plan = propose(reading)
    for name, argument in _DIRECTIVE.findall(reading.outside):
        if name in DIRECTIVES:
            plan = DIRECTIVES[name](plan, argument, reading)
    if plan.status != HTTPStatus.OK:
        error = {"message": "as the note wished", "type": "server_error", "param": None, "code": None}
        return Reply(status=plan.status, body={"error": error}, hang_seconds=plan.hang_seconds)
    return Reply(status=HTTPStatus.OK, body=_completion(request, reading, plan), hang_seconds=plan.hang_seconds)


def read(request: Mapping[str, Any]) -> Reading:
    """Take the record, the text from outside and the offered tools from a request.

    Raises:
        ValueError: the request has no model or no messages.
    """
    messages = request.get("messages")
    if not isinstance(request.get("model"), str) or not isinstance(messages, list) or not messages:
        raise ValueError("a request names a model and holds messages")
    said = [(str(message.get("role")), _text(message.get("content"))) for message in messages]
    # What a tool answered is text from outside, whoever wrote the tool.
    answers = [text for role, text in said if role == "tool"]
    shown = "\n".join(text for role, text in said if role != "tool")
    inside = _OUTSIDE.sub("", shown)
    outside = "\n".join([*_OUTSIDE.findall(shown), *_REMEMBERED.findall(inside), *answers])
    return Reading(
        record=_record(inside),
        outside=outside,
        tools=[entry["function"] for entry in request.get("tools") or []],
        wanted_tool=_wanted(request.get("tool_choice")),
        max_tokens=request.get("max_tokens"),
        characters=sum(len(text) for _, text in said),
        overrides=_orders(outside),
    )


def propose(reading: Reading) -> Plan:
    """Propose the first offered tool that the record can fill, with the record's values and the orders obeyed."""
    for tool in reading.tools:
        names = set((tool.get("parameters") or {}).get("properties") or {})
        wanted = reading.wanted_tool in (None, tool["name"])
        if wanted and names <= reading.record.keys():
            arguments = {name: reading.record[name] for name in sorted(names)}
            return Plan(calls=(Call(tool=tool["name"], arguments=json.dumps(_obeying(arguments, reading.overrides))),))
    return Plan(text="There is no action that I could propose from this record.")


def _obeying(arguments: Mapping[str, Any], orders: Mapping[str, Any]) -> dict[str, Any]:
    # An amount goes where there is one; a bank detail is pushed in even where nobody asks for one.
    obeyed = {name: value for name, value in orders.items() if name != "amount_minor" or name in arguments}
    return {**arguments, **obeyed}


def _orders(outside: str) -> dict[str, Any]:
    orders: dict[str, Any] = {}
    if (amount := _AMOUNT.search(outside)) is not None:
        orders["amount_minor"] = int(Decimal(amount[1].replace(",", "")) * 100)
    if (account := _ACCOUNT.search(outside)) is not None:
        orders["account"] = account[1]
    return orders


def _record(inside: str) -> dict[str, Any]:
    lines = _RECORD.findall(inside)
    if not lines:
        return {}
    try:
        record = json.loads(lines[-1])
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def _wanted(choice: object) -> str | None:
    return str(choice["function"]["name"]) if isinstance(choice, dict) else None


def _completion(request: Mapping[str, Any], reading: Reading, plan: Plan) -> dict[str, Any]:
    stamp = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:24]
    ending = "length" if plan.cut_off else "tool_calls" if plan.calls else "stop"
    # The emulator hands on the message and nothing around it, so the ending stands in the message as well.
    message: dict[str, Any] = {"role": "assistant", "content": plan.text, "finish_reason": ending}
    if plan.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{stamp}_{index}",
                "type": "function",
                "function": {"name": call.tool, "arguments": call.arguments},
            }
            for index, call in enumerate(plan.calls)
        ]
    prompt = max(1, reading.characters // CHARACTERS_PER_TOKEN)
    written = max(1, len(json.dumps(message)) // CHARACTERS_PER_TOKEN)
    return {
        "id": f"chatcmpl-{stamp}",
        "object": "chat.completion",
        # The same request has the same answer, whenever it is asked.
        "created": 0,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": ending, "logprobs": None}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written},
    }


Directive = Callable[[Plan, str, Reading], Plan]


def _max_tokens(plan: Plan, argument: str, reading: Reading) -> Plan:
    enough = int(argument) if argument.isdigit() else None
    if enough is not None and reading.max_tokens is not None and reading.max_tokens >= enough:
        return plan
    return replace(
        plan, calls=tuple(replace(call, arguments=_shortened(call.arguments)) for call in plan.calls), cut_off=True
    )


def _shortened(arguments: str) -> str:
    """Cut the last amount or text in half and keep the JSON whole: the worst kind of cut, for it can still be read."""
    values = json.loads(arguments)
    if not values:
        return arguments
    amounts = [name for name, value in values.items() if type(value) is int]
    name = (amounts or list(values))[-1]
    whole = str(values[name])
    half = whole[: max(1, len(whole) // 2)]
    return json.dumps({**values, name: int(half) if amounts else half})


def _fragment(plan: Plan, _argument: str, _reading: Reading) -> Plan:
    return replace(plan, calls=tuple(replace(call, arguments=call.arguments[:-3]) for call in plan.calls), cut_off=True)


def _no_tool(plan: Plan, argument: str, _reading: Reading) -> Plan:
    return replace(plan, calls=(), text=argument or "Done, it has been carried out.")


def _two_tools(plan: Plan, _argument: str, _reading: Reading) -> Plan:
    return replace(plan, calls=plan.calls * 2)


def _tool(plan: Plan, argument: str, _reading: Reading) -> Plan:
    return replace(plan, calls=tuple(replace(call, tool=argument or "never_offered") for call in plan.calls))


def _bad_json(plan: Plan, _argument: str, _reading: Reading) -> Plan:
    return replace(plan, calls=tuple(replace(call, arguments='{"amount_minor": 45') for call in plan.calls))


def _no_object(plan: Plan, _argument: str, _reading: Reading) -> Plan:
    return replace(plan, calls=tuple(replace(call, arguments="[45000]") for call in plan.calls))


def _set(plan: Plan, argument: str, _reading: Reading) -> Plan:
    name, _, text = argument.partition("=")
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    return replace(
        plan,
        calls=tuple(
            replace(call, arguments=json.dumps({**json.loads(call.arguments), name.strip(): value}))
            for call in plan.calls
        ),
    )


def _hang(plan: Plan, argument: str, _reading: Reading) -> Plan:
    seconds = float(argument) if re.fullmatch(r"\d+(\.\d+)?", argument) else HANG_SECONDS_MAX
    return replace(plan, hang_seconds=min(seconds, HANG_SECONDS_MAX))


def _status(plan: Plan, argument: str, _reading: Reading) -> Plan:
    known = argument.isdigit() and int(argument) in set(HTTPStatus)
    return replace(plan, status=HTTPStatus(int(argument)) if known else HTTPStatus.INTERNAL_SERVER_ERROR)


# What ``[[model: <name> <argument>]]`` in text from outside brings about; several are obeyed in their order.
DIRECTIVES: Final[Mapping[str, Directive]] = {
    "max_tokens": _max_tokens,  # cut off at the limit, readable but wrong; with a number, only below that many tokens
    "fragment": _fragment,  # cut off at the limit in the middle of the JSON
    "no_tool": _no_tool,  # plain text, as if it were done; the argument is the text
    "two_tools": _two_tools,  # the same call twice
    "tool": _tool,  # another tool, by the name in the argument
    "unknown_tool": _tool,  # the same; without a name, one that nobody offers
    "bad_json": _bad_json,  # arguments that are no JSON
    "no_object": _no_object,  # arguments that are JSON and no object
    "set": _set,  # one argument: name=value, the value as JSON or as it stands
    "hang": _hang,  # so many seconds of silence first
    "status": _status,  # an HTTP error of that status
}
