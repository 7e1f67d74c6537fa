"""The history of an execution stays under the service's limit, whatever a legal task goes through."""

from typing import Any

import pytest

from shared.domain.resume import HOPS_MAX
from stacks.task_graph import CHOICE, HUB, task_graph

# Step Functions ends a Standard execution at this many events, and no Catch sees it.
EVENTS_MAX = 25_000
# Entered and exited.
PASSED = 2
# Scheduled, started, succeeded; a wait for a token is also submitted.
TASK, TOKEN_TASK = 3, 4
# Scheduled, started, failed.
FAILED_TRY = 3

STATES: dict[str, dict[str, Any]] = task_graph("refund")["States"]
SPOKES = sorted(name for name, state in STATES.items() if state.get("Next") == HUB)


def events_of(state: dict[str, Any]) -> int:
    """The most events that one visit of a state adds: every retry of every rule used up, and then it succeeds."""
    if state["Type"] != "Task":
        return PASSED
    tries = sum(int(rule["MaxAttempts"]) for rule in state.get("Retry", []))
    task = TOKEN_TASK if state["Resource"].endswith(".waitForTaskToken") else TASK
    return PASSED + task + tries * FAILED_TRY


def events_of_hop(spoke: str) -> int:
    """The most events of one pass: the hub, its choice, and one spoke."""
    return sum(events_of(STATES[name]) for name in (HUB, CHOICE, spoke))


@pytest.mark.parametrize("spoke", SPOKES)
def test_an_execution_hands_over_before_the_limit(spoke: str) -> None:
    """B71: even if every pass used up every retry, the hand-over comes before the service's limit."""
    assert HOPS_MAX * events_of_hop(spoke) < EVENTS_MAX


def test_no_wait_polls() -> None:
    """B71: waiting adds nothing to the history; only the retry window is timed, and its pauses grow."""
    waits = [name for name, state in STATES.items() if state.get("Resource", "").endswith(".waitForTaskToken")]

    assert waits
    assert all(events_of(STATES[name]) == PASSED + TOKEN_TASK for name in waits)


def test_the_worst_legal_task_is_a_handful_of_executions() -> None:
    """B71: 20 re-approvals and 500 model turns; 90 days of daily reminders move only the wait, never the machine."""
    hops_of_approval, hops_of_turn = len(["Await approval"]), len(["Propose action", "Perform action"])
    hops = 20 * hops_of_approval + 500 * hops_of_turn + 1

    executions = -(-hops // HOPS_MAX)

    assert executions < 10
