"""B76: synthesis works anywhere, deploys in order, and grants nothing by wildcard that matters."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

from tests.infrastructure.synthesis import ROOT, Assembly, Template, context, synthesise

STAGES = ["production", "disposable", "local"]

# Runs the CDK app in a Python that has no sockets. The node process below it gets the same from its own preload.
WITHOUT_SOCKETS = """
import runpy, socket
def refused(*_arguments, **_options):
    raise AssertionError("synthesis asked for the network")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refused
runpy.run_path("app.py", run_name="__main__")
"""
NODE_WITHOUT_SOCKETS = """
const refused = () => { throw new Error("synthesis asked for the network"); };
const net = require("net");
net.Socket.prototype.connect = refused;
require("dns").lookup = refused;
require("dgram").createSocket = refused;
globalThis.fetch = refused;
"""

# Reads about what has no name before it exists: streams, and the executions of one machine.
BELOW_A_NAME = {"dynamodb:ListStreams", "states:DescribeExecution"}

# The only actions that may be granted on every resource: those for which AWS knows no narrower one.
WITHOUT_A_RESOURCE = {
    "dynamodb:ListStreams",
    "logs:CreateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:DescribeLogGroups",
    "logs:DescribeResourcePolicies",
    "logs:GetLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:UpdateLogDelivery",
    "xray:GetSamplingRules",
    "xray:GetSamplingTargets",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
}


def every_template(request: pytest.FixtureRequest) -> Iterator[Template]:
    """All stacks of all stages."""
    for stage in STAGES:
        assembly: Assembly = request.getfixturevalue(stage)
        yield from assembly.templates.values()


def allowed(template: Template) -> Iterator[tuple[str, str]]:
    """Every pair of action and resource that an identity policy allows."""
    for _, policy in template.of_type("AWS::IAM::Policy"):
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            actions, resources = statement["Action"], statement["Resource"]
            for action in actions if isinstance(actions, list) else [actions]:
                for resource in resources if isinstance(resources, list) else [resources]:
                    yield action, template.text(resource)


def references(value: object) -> Iterator[str]:
    """Logical ids that a part of a template refers to."""
    match value:
        case {"Ref": str(name)}:
            yield name
        case {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case dict():
            for part in value.values():
                yield from references(part)
        case list():
            for part in value:
                yield from references(part)


def strings(value: object, key: str) -> Iterator[Any]:
    """Every value under a key, at any depth."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            if name == key:
                yield part
            yield from strings(part, key)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part, key)


def without_contents(template: str) -> Any:
    """A template without the digests of the files it uploads: somebody may be editing them right now."""
    return json.loads(re.sub(r"[0-9a-f]{64}\.zip", "contents.zip", template))


def test_synthesis_needs_no_account_no_network_and_no_docker(tmp_path: Path, production: Assembly) -> None:
    """B76: an empty home, no credentials, no sockets and no docker on the path give the same templates."""
    blocker = tmp_path / "no-network.cjs"
    blocker.write_text(NODE_WITHOUT_SOCKETS)
    out = tmp_path / "cdk.out"
    environment = {
        "PATH": str(Path(sys.prefix) / "bin"),
        "HOME": str(tmp_path),
        "NODE_OPTIONS": f"--require {blocker}",
        "CDK_OUTDIR": str(out),
        "CDK_CONTEXT_JSON": json.dumps(context(stage="prod", sandbox="true")),
    }

    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SOCKETS],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )

    assert done.returncode == 0, done.stderr[-2000:]
    for part, template in production.templates.items():
        written = (out / f"Holdfast-prod-{part}.template.json").read_text()
        assert without_contents(written) == without_contents(json.dumps(template.body)), part


def test_the_stacks_are_deployed_in_order_and_share_no_exports(request: pytest.FixtureRequest) -> None:
    """B76: data and engine are tied by names only, so each can be rolled back or deleted without the other."""
    for template in every_template(request):
        assert not list(strings(template.body, "Fn::ImportValue")), template.part
        assert not list(strings(template.body, "Fn::GetStackOutput")), template.part
        assert not [name for name, output in template.body.get("Outputs", {}).items() if "Export" in output]


def test_the_engine_comes_after_what_it_looks_up(production: Assembly) -> None:
    """The data stack depends on nothing; the engine waits for it."""
    artifacts = json.loads((production.directory / "manifest.json").read_text())["artifacts"]

    def stacks_before(name: str) -> set[str]:
        return {found for found in artifacts[name]["dependencies"] if not found.endswith(".assets")}

    assert stacks_before("Holdfast-prod-Data") == set()
    assert stacks_before("Holdfast-prod-Sandbox") == set()
    assert stacks_before("Holdfast-prod-Engine") == {"Holdfast-prod-Data", "Holdfast-prod-Sandbox"}


def test_no_stack_has_a_cycle(request: pytest.FixtureRequest) -> None:
    """B76: functions, machines and their grants refer to one another in one direction only."""
    for template in every_template(request):
        graph = {
            name: {found for found in references(resource) if found in template.resources}
            | {*([depends] if isinstance(depends := resource.get("DependsOn", []), str) else depends)}
            for name, resource in template.resources.items()
        }

        assert len(list(TopologicalSorter(graph).static_order())) == len(graph)


def test_no_action_is_granted_by_wildcard(request: pytest.FixtureRequest) -> None:
    """B76: every action is written out."""
    for template in every_template(request):
        assert not [action for action, _ in allowed(template) if "*" in action]


def test_every_resource_is_granted_by_name(request: pytest.FixtureRequest) -> None:
    """B76: the star stands alone only where AWS knows nothing narrower."""
    for template in every_template(request):
        assert {action for action, resource in allowed(template) if resource == "*"} <= WITHOUT_A_RESOURCE


def test_answers_starts_and_keys_are_never_granted_widely(request: pytest.FixtureRequest) -> None:
    """B76: a callback right holds for one machine, a key right for one key."""
    for template in every_template(request):
        for action, resource in allowed(template):
            if action.startswith(("states:", "kms:", "lambda:", "dynamodb:", "events:")):
                assert "*" not in resource or action in BELOW_A_NAME, (action, resource)


def test_the_stage_s_name_has_to_fit_into_every_name(tmp_path: Path) -> None:
    """Bad input: a stage that could not be deployed is refused before anything is written."""
    for name in ("P", "prod_eu", "Prod", "a" * 17, "prod-", "1st"):
        with pytest.raises(ValueError, match="stage"):
            synthesise(name)


def test_half_an_issuer_is_refused() -> None:
    """Bad input: an issuer without its client would let tokens of other applications in."""
    with pytest.raises(ValueError, match="oidc_client_id"):
        synthesise("halfway", oidc_issuer="https://login.test", payments_url="https://bank.test")
