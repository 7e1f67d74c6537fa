"""The tools of an onboarding, by their real functions, against the real sandbox: no keys, but references."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from functions.tools import provider as wiring
from functions.tools.order_equipment import handler as order_equipment
from functions.tools.send_welcome_packet import handler as send_welcome_packet
from sandbox.resources import RESOURCES
from shared.domain.errors import OutcomeUnknown
from shared.workflows.registry import discover
from tests.unit.sandbox.conftest import Bank, bank, cloud
from tests.unit.tools.test_issue_refund_on_sandbox import settings

__all__ = ["bank", "cloud", "settings"]

PACKET = {"recipient": "E-123", "template": "welcome", "start_on": "2026-12-01"}
ORDER = {
    "employee": "E-123",
    "keyboard": "compact",
    "screen": "two",
    "deliver_to": "BER-2-114",
    "needed_on": "2026-12-01",
}
TOOLS = [(send_welcome_packet, PACKET), (order_equipment, ORDER)]
KEY = "acme:tsk_00112233445566778899aabbccddeeff:v1:1:some_tool"


@pytest.fixture
def office(settings: Bank, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bank]:
    """Point the tools' own settings at the sandbox."""
    for setting in ("URL", "SECRET_NAME"):
        monkeypatch.setenv(f"OFFICE_{setting}", _setting(f"PAYMENTS_{setting}"))
        monkeypatch.delenv(f"PAYMENTS_{setting}")
    wiring.provider.cache_clear()
    yield settings
    wiring.provider.cache_clear()


def _setting(name: str) -> str:
    import os  # noqa: PLC0415 - read when the fixture has set it

    return os.environ[name]


def call(tool: ModuleType, operation: str, arguments: dict[str, Any], *, key: str = KEY) -> dict[str, Any]:
    """Call a tool's function."""
    handler: Callable[..., dict[str, Any]] = tool.handler
    return handler({"operation": operation, "key": key, "arguments": arguments}, object())


@pytest.mark.parametrize(("tool", "arguments"), TOOLS)
def test_what_was_done_is_found_by_its_key(office: Bank, tool: ModuleType, arguments: dict[str, Any]) -> None:
    """B01: the key travels as our reference, so that the look-up finds this action's record and no other's."""
    assert call(tool, "lookup", arguments)["outcome"] == "absent"

    done = call(tool, "perform", arguments)

    assert done["outcome"] == "done"
    assert call(tool, "lookup", arguments) == done
    assert call(tool, "lookup", arguments, key=KEY.replace(":v1:", ":v2:"))["outcome"] == "absent"
    [row] = office.ledger(tool.TOOL.collection)
    assert (row["id"], row["reference"]) == (done["reference"], KEY)


@pytest.mark.parametrize(("tool", "arguments"), TOOLS)
def test_a_lost_answer_is_found_again(office: Bank, tool: ModuleType, arguments: dict[str, Any]) -> None:
    """C-C: it was recorded and the answer is an error; the look-up finds it, and nothing is sent again."""
    office.ask("PUT", "/faults", {"answer_status_after_recording": 500, "times": 1})

    with pytest.raises(OutcomeUnknown):
        call(tool, "perform", arguments)

    assert call(tool, "lookup", arguments)["outcome"] == "done"
    assert len(office.ledger(tool.TOOL.collection)) == 1


@pytest.mark.parametrize(("tool", "arguments"), TOOLS)
def test_two_records_under_one_key_are_for_a_person(office: Bank, tool: ModuleType, arguments: dict[str, Any]) -> None:
    """B01: the provider acts on every call; that it did so twice is no success to be reported."""
    for _ in range(2):
        call(tool, "perform", arguments)

    with pytest.raises(OutcomeUnknown, match="2 records"):
        call(tool, "lookup", arguments)


@pytest.mark.parametrize(("tool", "arguments"), TOOLS)
def test_a_record_of_something_else_is_no_success(office: Bank, tool: ModuleType, arguments: dict[str, Any]) -> None:
    """B17: what stands under our reference has to be what was asked for, field by field."""
    call(tool, "perform", arguments)
    field = next(iter(arguments))

    with pytest.raises(OutcomeUnknown, match=field):
        call(tool, "lookup", {**arguments, field: "E-124"})


@pytest.mark.parametrize(("tool", "arguments"), TOOLS)
@pytest.mark.parametrize("body", ["{", {}])
def test_the_refusals_that_a_tool_believes_are_the_provider_s(
    office: Bank, tool: ModuleType, arguments: dict[str, Any], body: object
) -> None:
    """B27: each of them is made before anything is recorded."""
    answer = office.ask("POST", f"/{tool.TOOL.collection}", body)

    assert (answer.status, answer.body["code"]) in {(each.status, each.code) for each in tool.TOOL.refusals}
    assert office.ledger(tool.TOOL.collection) == []


@pytest.mark.parametrize(("tool", "arguments"), TOOLS)
def test_tool_provider_and_workflow_speak_of_the_same_fields(
    office: Bank, tool: ModuleType, arguments: dict[str, Any]
) -> None:
    """Three parts agree: what code normalises, what the tool accepts, and what the provider takes."""
    resource = RESOURCES[tool.TOOL.collection]
    fields = set(tool.TOOL.arguments.model_fields)

    assert fields | {"reference"} == set(resource.fields)
    assert fields == set(discover()["onboarding"].tools[tool.TOOL.name].arguments.model_fields)
    assert discover()["onboarding"].tools[tool.TOOL.name].normalise(arguments).arguments == arguments
    assert resource.status in tool.TOOL.statuses


@pytest.mark.parametrize(("tool", "arguments"), TOOLS)
def test_a_day_that_is_none_is_sent_to_nobody(office: Bank, tool: ModuleType, arguments: dict[str, Any]) -> None:
    """B27: the tool refuses before anything leaves it."""
    day = "start_on" if "start_on" in arguments else "needed_on"

    answer = call(tool, "perform", {**arguments, day: "soon"})

    assert answer["outcome"] == "failed"
    assert office.ledger(tool.TOOL.collection) == []
