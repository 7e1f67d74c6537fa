"""The AwsSolutions rules: no finding is open, and no acknowledgement stands for nothing."""

import re
from collections.abc import Iterator

import pytest
from aws_cdk import App, Stack, Validations
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks
from constructs import IConstruct

from app import build
from tests.infrastructure.synthesis import Assembly, context

STAGES = ["production", "disposable", "local"]


def findings(scope: IConstruct) -> list[str]:
    """Every finding that nobody acknowledged, with the resource it is about."""
    report = AwsSolutionsChecks().validate_scope(scope)
    return [
        f"{violation.rule_name} on {resource.construct_path}"
        for violation in report.violations
        for resource in violation.violating_resources
    ]


def acknowledgements(scope: IConstruct) -> Iterator[tuple[str, str, str]]:
    """Every acknowledgement with its place and its reason."""
    for construct in scope.node.find_all():
        for entry in construct.node.metadata:
            if entry.type == Validations.ACKNOWLEDGED_RULES_METADATA_KEY:
                for rule, reason in entry.data.items():
                    yield construct.node.path, re.sub("^annotation::", "", rule, flags=re.IGNORECASE), reason


@pytest.mark.parametrize("stage", STAGES)
def test_no_finding_is_open(stage: str, request: pytest.FixtureRequest) -> None:
    """Every stage is clean: what a rule finds is mended, or acknowledged at its resource."""
    assembly: Assembly = request.getfixturevalue(stage)

    assert findings(assembly.app) == []


def test_the_rules_are_really_applied() -> None:
    """The check is not blind: a bare bucket has findings."""
    app = App()
    s3.Bucket(Stack(app, "Probe"), "Bare")

    assert any("AwsSolutions-S10" in finding for finding in findings(app))


@pytest.mark.parametrize("stage", STAGES)
def test_every_acknowledgement_gives_its_reason_at_its_resource(stage: str, request: pytest.FixtureRequest) -> None:
    """An auditor reads a sentence; nothing is acknowledged for a whole stack."""
    assembly: Assembly = request.getfixturevalue(stage)
    found = list(acknowledgements(assembly.app))

    assert found
    for path, rule, reason in found:
        assert "/" in path, f"{rule} is acknowledged for all of {path}"
        assert reason.endswith("."), f"{rule} on {path}: {reason}"
        assert len(reason.split()) >= 5, f"{rule} on {path}: {reason}"


def test_no_acknowledgement_stands_for_nothing(production: Assembly, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is mended or gone takes its acknowledgement along; a stale one would hide the next finding."""
    monkeypatch.setattr(Validations, "acknowledge", lambda *_rules: None)
    bare = App(context=context(stage="prod", sandbox="true"))
    build(bare)
    found = {
        (violation.rule_name, resource.construct_path)
        for violation in AwsSolutionsChecks().validate_scope(bare).violations
        for resource in violation.violating_resources
    }

    stale = [
        f"{rule} on {path}"
        for path, rule, _ in acknowledgements(production.app)
        if not any(rule == name and f"{where}/".startswith(f"{path}/") for name, where in found)
    ]

    assert found
    assert stale == []
