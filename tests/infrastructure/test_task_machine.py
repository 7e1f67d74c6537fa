"""The graph that is deployed: a hub, spokes that all return to it, and no state that can wait for ever."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stacks.task_graph import task_graph
from tests.infrastructure.synthesis import ROOT, Assembly

State = dict[str, Any]

# The word that Wake answers, and the state an operator then sees.
NEXT = {
    "propose": "Propose action",
    "await_approval": "Await approval",
    "await_input": "Await input",
    "await_event": "Await event",
    "await_child": "Await child task",
    "needs_review": "Needs review",
    "await_retry": "Await retry window",
    "perform": "Perform action",
    "reconcile": "Reconcile outcome",
    "compensate": "Compensate",
    "continue_as_new": "Continue as new",
    "completed": "Completed",
    "failed": "Failed",
    "canceled": "Canceled",
    "expired": "Expired",
    "superseded": "Superseded",
}
WAITING = {"Await approval", "Await input", "Await event", "Await child task", "Needs review"}
ACTING = {"Perform action", "Reconcile outcome", "Compensate"}
SUCCEEDS = {"Continue as new", "Completed", "Canceled", "Superseded"}
FAILS = {"Failed", "Expired", "Wake failed", "Unknown directive"}
SPOKES = {"Propose action", "Await retry window"} | WAITING | ACTING

IDENTIFIERS = {"tenant", "task_id", "run", "hops", "version", "wait_id", "correlation_id", "operation", "window"}


@pytest.fixture(scope="module")
def machine(production: Assembly) -> dict[str, Any]:
    """Properties of the deployed machine of the refund workflow."""
    return production.engine.properties("AWS::StepFunctions::StateMachine", StateMachineName="holdfast-prod-refund")


@pytest.fixture(scope="module")
def definition(machine: Mapping[str, Any]) -> dict[str, Any]:
    """Its definition with every placeholder filled in, as the service will read it."""
    text = machine["DefinitionString"]
    for name in machine["DefinitionSubstitutions"]:
        value = "aws" if name == "Partition" else f"arn:aws:lambda:eu-central-1:111122223333:function:{name}"
        text = text.replace(f"${{{name}}}", value)
    assert "${" not in text
    filled: dict[str, Any] = json.loads(text)
    return filled


@pytest.fixture(scope="module")
def states(definition: Mapping[str, Any]) -> dict[str, State]:
    """The machine's states by name."""
    found: dict[str, State] = definition["States"]
    return found


def catches_everything(state: State) -> dict[str, Any]:
    """The one Catch of a state, which has to take every error."""
    [catch] = state["Catch"]
    assert catch["ErrorEquals"] == ["States.ALL"]
    taken: dict[str, Any] = catch
    return taken


def test_the_graph_is_the_hub_its_choice_and_the_named_states(states: Mapping[str, State]) -> None:
    """What an operator can see is exactly this."""
    assert set(states) == {"Wake", "What next?"} | SPOKES | SUCCEEDS | FAILS


def test_every_word_of_wake_leads_to_its_state(states: Mapping[str, State]) -> None:
    """The choice only follows; a word it does not know ends the execution loudly."""
    choice = states["What next?"]

    assert {rule["StringEquals"]: rule["Next"] for rule in choice["Choices"]} == NEXT
    assert all(rule["Variable"] == "$.next" for rule in choice["Choices"])
    assert choice["Default"] == "Unknown directive"
    assert states["Wake"]["Next"] == "What next?"


def test_every_spoke_returns_to_wake(states: Mapping[str, State]) -> None:
    """Law 4: no path continues a task without passing the gates again, whether it went well or not."""
    for name in SPOKES:
        assert states[name]["Next"] == "Wake", name
        if states[name]["Type"] == "Task":
            assert catches_everything(states[name])["Next"] == "Wake", name


def test_endings_end(states: Mapping[str, State]) -> None:
    """An execution that failed is visible as failed; nothing else is."""
    assert {name for name, state in states.items() if state["Type"] == "Succeed"} == SUCCEEDS
    assert {name for name, state in states.items() if state["Type"] == "Fail"} == FAILS
    assert all(states[name]["Error"] and states[name]["Cause"] for name in FAILS)


def test_a_wake_that_cannot_run_fails_the_execution(states: Mapping[str, State]) -> None:
    """The execution is disposable: it ends where the sweep finds the task, and never guesses on."""
    assert catches_everything(states["Wake"])["Next"] == "Wake failed"


def test_every_wait_for_a_token_has_an_end_and_a_way_on(states: Mapping[str, State]) -> None:
    """B15: a callback that never comes runs into the state's timeout and from there to Wake, which has an owner."""
    waiting = {name for name, state in states.items() if ".waitForTaskToken" in state.get("Resource", "")}

    assert waiting == WAITING
    for name in waiting:
        assert states[name]["TimeoutSecondsPath"] == "$.wait_seconds", name
        assert catches_everything(states[name])["Next"] == "Wake", name
        assert "Retry" not in states[name], "a second token for a wait that may already be answered"


def test_an_effect_is_retried_only_when_nothing_was_dispatched(states: Mapping[str, State]) -> None:
    """B22: no retry on timeouts or service errors, where the first try may still be running."""
    for name in ACTING:
        assert [rule["ErrorEquals"] for rule in states[name]["Retry"]] == [["Retry"]], name


def test_the_model_is_asked_again_only_when_it_was_busy(states: Mapping[str, State]) -> None:
    """B58: two more tries here; a model that stays away is Wake's to count and to schedule."""
    [rule] = states["Propose action"]["Retry"]

    assert rule["ErrorEquals"] == ["Retry"]
    assert rule["MaxAttempts"] == 2


def test_wake_is_repeated_on_every_blip_with_backoff(states: Mapping[str, State]) -> None:
    """Wake is safe to repeat: it decides on what it reads and commits under a condition."""
    rules = {tuple(rule["ErrorEquals"]): rule for rule in states["Wake"]["Retry"]}

    assert rules[("Retry",)]["MaxAttempts"] == 6
    assert rules[("Redecide",)]["MaxAttempts"] == 5
    [blips] = [rule for errors, rule in rules.items() if len(errors) > 1]
    assert blips["ErrorEquals"] == [
        "Lambda.ServiceException",
        "Lambda.AWSLambdaException",
        "Lambda.SdkClientException",
        "Lambda.TooManyRequestsException",
        "Lambda.Unknown",
        "Runtime.ExitError",
        "Sandbox.Timedout",
        "States.Timeout",
    ]
    for rule in rules.values():
        assert rule["JitterStrategy"] == "FULL"
        assert rule["BackoffRate"] == 2


def test_no_retry_takes_every_error(states: Mapping[str, State]) -> None:
    """B22: an error nobody thought of is never repeated blindly."""
    for name, state in states.items():
        for rule in state.get("Retry", []):
            assert not {"States.ALL", "States.TaskFailed"} & set(rule["ErrorEquals"]), name


def test_a_state_outlives_its_function_only_a_little(production: Assembly, states: Mapping[str, State]) -> None:
    """The function ends first and says why; the state's own limit only catches what hangs."""
    for function, names in {"wake": {"Wake"}, "propose": {"Propose action"}, "perform": ACTING}.items():
        own = production.engine.function(function)["Timeout"]
        for name in names:
            assert own < states[name]["TimeoutSeconds"] <= own + 10, name


def test_only_identifiers_and_references_are_passed_on(states: Mapping[str, State]) -> None:
    """B59: no state passes a body, so no payload can grow with the size of a task."""
    for name in SPOKES - {"Await retry window"}:
        payload = dict(states[name]["Parameters"]["Payload"])
        assert payload.pop("mode", "perform") in {"perform", "reconcile", "compensate"}
        assert payload.pop("token.$", "$$.Task.Token") == "$$.Task.Token"
        assert {key.removesuffix(".$") for key in payload} <= IDENTIFIERS, name
        assert all(path == f"$.{key.removesuffix('.$')}" for key, path in payload.items()), name


def test_the_document_is_replaced_by_every_wake(states: Mapping[str, State]) -> None:
    """B59: what spokes leave behind does not pile up; Wake's answer is the whole next document."""
    assert states["Wake"]["OutputPath"] == "$.Payload"
    assert "ResultPath" not in states["Wake"]
    for name in SPOKES - {"Await retry window"}:
        assert states[name]["ResultPath"] == "$.result", name
        assert catches_everything(states[name])["ResultPath"] == "$.error", name


def test_of_the_model_s_answer_only_a_reference_travels(states: Mapping[str, State]) -> None:
    """M5, B59: nothing that the model wrote is in the document of the execution."""
    assert states["Propose action"]["ResultSelector"] == {
        "residue.$": "$.Payload.residue",
        "stop_reason.$": "$.Payload.stop_reason",
    }


def test_of_an_action_only_its_status_travels(states: Mapping[str, State]) -> None:
    """B59: facts and reasons of a tool stay in the ledger, where Wake reads them."""
    for name in ACTING:
        assert states[name]["ResultSelector"] == {"operation.$": "$.Payload.operation", "status.$": "$.Payload.status"}


def test_every_state_says_what_it_is_for(states: Mapping[str, State]) -> None:
    """An operator reads the graph in the console, without this repository."""
    assert all(state["Comment"].endswith(".") for state in states.values())


def test_the_definition_is_the_same_every_time() -> None:
    """Two syntheses of the same code deploy the same machine, byte for byte."""
    assert json.dumps(task_graph("refund")) == json.dumps(task_graph("refund"))


def test_one_machine_per_workflow_found(production: Assembly) -> None:
    """A workflow is deployed because its modules are there; no list is edited."""
    modules = {path.stem for path in (ROOT / "stacks" / "workflows").glob("*.py")} - {"__init__"}
    rules = {path.parent.name for path in (ROOT / "shared" / "workflows").glob("*/__init__.py")}
    deployed = {
        machine["Properties"]["StateMachineName"].removeprefix("holdfast-prod-")
        for _, machine in production.engine.of_type("AWS::StepFunctions::StateMachine")
    }

    assert deployed == modules
    assert rules <= modules, "a workflow has rules but no construct that deploys it"


def test_executions_are_logged_and_traced_without_their_data(disposable: Assembly, machine: Mapping[str, Any]) -> None:
    """O5: every transition is on record; in production its data is not."""
    tried_out = disposable.engine.properties("AWS::StepFunctions::StateMachine", StateMachineName="holdfast-dev-refund")

    assert machine["StateMachineType"] == "STANDARD"
    assert machine["TracingConfiguration"] == {"Enabled": True}
    assert machine["LoggingConfiguration"]["Level"] == "ALL"
    assert machine["LoggingConfiguration"]["IncludeExecutionData"] is False
    assert tried_out["LoggingConfiguration"]["IncludeExecutionData"] is True


class TestAmazonStatesLanguage:
    """The definition as a validator of the language sees it."""

    @pytest.fixture
    def validate(self, tmp_path: Path) -> Any:
        """Run the validator that `make setup` installs on one definition."""
        validator = ROOT / "node_modules" / "asl-validator" / "dist" / "bin" / "asl-validator.js"
        if not validator.exists():
            pytest.skip("asl-validator is installed by `make setup`")

        def run(definition: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
            path = tmp_path / "definition.json"
            path.write_text(json.dumps(definition))
            node = Path(sys.prefix) / "bin" / "node"
            return subprocess.run(
                [node, validator, "--json-path", path], capture_output=True, text=True, check=False, timeout=60
            )

        return run

    def test_the_definition_is_valid(self, validate: Any, definition: Mapping[str, Any]) -> None:
        """What the service would refuse at deployment is refused here first."""
        checked = validate(definition)

        assert checked.returncode == 0, checked.stdout + checked.stderr

    def test_a_dangling_transition_is_found(self, validate: Any, definition: Mapping[str, Any]) -> None:
        """The validator is really asked: a broken copy of the same definition fails."""
        broken = json.loads(json.dumps(definition))
        broken["States"]["Await approval"]["Next"] = "Nowhere"

        assert validate(broken).returncode != 0
