"""What people are told, of which events, and what happens to what they could not be told."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from shared.domain.events import EVENTS, Envelope
from stacks.notifications import NOTICES
from tests.infrastructure.synthesis import ROOT, Assembly, Template, synthesise

# Nobody asks people anything without these, and an end is told to whoever waits for it.
ASKING = {
    "approval.requested",
    "input.requested",
    "wait.reminded",
    "task.escalated",
    "task.needs_review",
    "task.quarantined",
    "task.closed",
}
COUNT = """
import json
from shared.runtime.observability import alarm, metrics
alarm("a test wanted it so")
print(json.dumps(metrics.serialize_metric_set()))
"""
COUNT_FAULT = """
import json
from shared.adapters.cedar.authoriser import PolicyFault
from shared.runtime.observability import audit_policy_fault, metrics
audit_policy_fault(PolicyFault(operation="read", principal="p", tenant="t", workflow="w", task_id="i", detail="d"))
print(json.dumps(metrics.serialize_metric_set()))
"""
CONSOLE = "https://desk.test/login?next=/tasks/{task_id}"
# Words that would let whoever reads a notice do something, and words of strangers.
NEVER = ("decision", "token", "approval_id", "wait_id", "reason", "outcome", "because", "correlation")


def notices(template: Template) -> dict[str, dict[str, Any]]:
    """The rules that tell people, by the event."""
    rules = [rule["Properties"] for _, rule in template.of_type("AWS::Events::Rule")]
    return {rule["EventPattern"]["detail-type"][0]: rule for rule in rules if "EventBusName" in rule}


def filled_in(rule: dict[str, Any], event: dict[str, Any]) -> str:
    """What the bus makes of an event by a rule's transformer."""
    transformer = rule["Targets"][0]["InputTransformer"]
    text = str(json.loads(transformer["InputTemplate"]))
    for name, path in transformer["InputPathsMap"].items():
        value: Any = event
        for step in path.removeprefix("$.").split("."):
            value = value[step]
        text = text.replace(f"<{name}>", str(value))
    return text


def an_event(name: str) -> dict[str, Any]:
    """Make an event of a name as the bus carries it, with a telling value in every field."""
    detail = {field: f"[{field}]" for field in EVENTS[name].model_fields}
    envelope = {field: f"[{field}]" for field in Envelope.model_fields}
    return {"source": "holdfast", "detail-type": name, "detail": {**envelope, "detail": detail}}


def test_people_are_told_of_what_waits_for_them(production: Assembly) -> None:
    """Law 8: every event that asks somebody for something has a rule from the engine's own bus to one topic."""
    rules = notices(production.engine)
    topic = next(
        name
        for name, found in production.engine.of_type("AWS::SNS::Topic")
        if found["Properties"]["TopicName"] == "holdfast-prod-notices"
    )

    assert set(rules) == ASKING == set(NOTICES)
    for rule in rules.values():
        assert rule["EventPattern"]["source"] == ["holdfast"]
        assert rule["State"] == "ENABLED"
        assert [target["Arn"] for target in rule["Targets"]] == [{"Ref": topic}]


@pytest.mark.parametrize("name", sorted(ASKING))
def test_a_notice_is_a_sentence_that_names_the_task(production: Assembly, name: str) -> None:
    """B72: an identifier to look up after logging in; nothing that decides, nothing that a stranger wrote."""
    text = filled_in(notices(production.engine)[name], an_event(name))

    assert "[task_id]" in text
    assert text.endswith(".")
    assert "<" not in text
    assert not [word for word in NEVER if f"[{word}]" in text]
    assert "http" not in text


@pytest.mark.parametrize(
    ("console_url", "link"),
    [("https://desk.test/login", "https://desk.test/login"), (CONSOLE, CONSOLE.replace("{task_id}", "[task_id]"))],
)
def test_a_notice_may_lead_to_the_log_in_page(console_url: str, link: str) -> None:
    """B02, B72: a link to where people log in, never one that decides."""
    engine = synthesise("desk", console_url=console_url, payments_url="https://bank.test").engine

    for name, rule in notices(engine).items():
        assert filled_in(rule, an_event(name)).endswith(f" Log in at {link}")


@pytest.mark.parametrize(
    "console_url",
    [
        "http://desk.test",
        "desk.test",
        "javascript:x",
        'https://desk.test/"',
        "https://desk.test/{approval_id}",
        "https://",
    ],
)
def test_a_console_of_another_form_is_refused(console_url: str) -> None:
    """Bad input: nothing is synthesised that would send people somewhere odd."""
    with pytest.raises(ValueError, match="console_url"):
        synthesise("desk", console_url=console_url)


def test_what_cannot_be_told_is_kept_aside_and_alarms(production: Assembly) -> None:
    """A failing topic loses nothing: what the rule could not send waits in a queue that only the rules may fill."""
    engine = production.engine
    rules = notices(engine)
    [queue] = {rule["Targets"][0]["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0] for rule in rules.values()}
    alarms = {
        alarm["Properties"]["AlarmName"]: alarm["Properties"] for _, alarm in engine.of_type("AWS::CloudWatch::Alarm")
    }

    assert engine.resources[queue]["Properties"]["MessageRetentionPeriod"] == 14 * 24 * 3600
    [policy] = [
        p["Properties"]["PolicyDocument"]["Statement"]
        for _, p in engine.of_type("AWS::SQS::QueuePolicy")
        if p["Properties"]["Queues"] == [{"Ref": queue}]
    ]
    senders = [s for s in policy if s["Effect"] == "Allow"]
    assert len(senders) == len(rules)
    assert all(s["Principal"] == {"Service": "events.amazonaws.com"} and "Condition" in s for s in senders)
    waiting = alarms["holdfast-prod-notices-dead-letters"]
    assert waiting["MetricName"] == "ApproximateNumberOfMessagesVisible"
    assert waiting["Dimensions"][0]["Value"] == {"Fn::GetAtt": [queue, "QueueName"]}
    assert alarms["holdfast-prod-notices-failed"]["MetricName"] == "NumberOfNotificationsFailed"


def test_only_encrypted_connections_reach_the_topic(production: Assembly) -> None:
    """Nobody is let in by name: the rules have a role, and anybody else's rule has none."""
    statements = [
        s
        for _, policy in production.engine.of_type("AWS::SNS::TopicPolicy")
        if "Notices" in json.dumps(policy["Properties"]["Topics"])
        for s in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    assert [(s["Effect"], s["Condition"]) for s in statements] == [("Deny", {"Bool": {"aws:SecureTransport": "false"}})]


@pytest.mark.parametrize("function", ["deliver", "wake", "webhook"])
def test_what_needs_a_person_alarms(production: Assembly, function: str) -> None:
    """B15, B67: the alarm watches the very metric that the function counts, under the function's own name."""
    assert_watched(production.engine, function, f"{function}-needs-attention", counting=COUNT)


@pytest.mark.parametrize("function", ["api", "wake", "perform"])
def test_a_policy_that_errors_alarms(production: Assembly, function: str) -> None:
    """B04, A5: whoever asks the policies has an alarm on what it counts when they cannot answer."""
    assert_watched(production.engine, function, f"{function}-policy-faults", counting=COUNT_FAULT)


def test_everybody_who_asks_the_policies_is_watched(production: Assembly) -> None:
    """B04: a function that reads rights and has no such alarm is found here."""
    engine = production.engine
    asking = {
        str(found["Properties"]["FunctionName"])
        for _, found in engine.of_type("AWS::Lambda::Function")
        if "AUTHORITY_TABLE" in found["Properties"].get("Environment", {}).get("Variables", {})
    }
    names = {str(found["Properties"]["AlarmName"]) for _, found in engine.of_type("AWS::CloudWatch::Alarm")}

    assert asking
    assert {f"{name}-policy-faults" for name in asking} == {name for name in names if name.endswith("-policy-faults")}


def assert_watched(engine: Template, function: str, name: str, *, counting: str) -> None:
    """Count something in the function's own environment, and compare it with what the alarm watches."""
    [alarm] = [
        found["Properties"]
        for _, found in engine.of_type("AWS::CloudWatch::Alarm")
        if found["Properties"]["AlarmName"] == f"holdfast-prod-{name}"
    ]
    variables = engine.function(function)["Environment"]["Variables"]
    told = {name: value for name, value in variables.items() if name.startswith("POWERTOOLS_")}
    counted = subprocess.run(
        [sys.executable, "-c", counting], cwd=ROOT, env=told, capture_output=True, text=True, check=True, timeout=60
    )
    [emitted] = json.loads(counted.stdout.splitlines()[-1])["_aws"]["CloudWatchMetrics"]

    assert emitted["Namespace"] == alarm["Namespace"]
    assert [metric["Name"] for metric in emitted["Metrics"]] == [alarm["MetricName"]]
    assert emitted["Dimensions"] == [[dimension["Name"] for dimension in alarm["Dimensions"]]] == [["service"]]
    assert alarm["Dimensions"][0]["Value"] == told["POWERTOOLS_SERVICE_NAME"]
    assert alarm["Threshold"] == 1
    assert re.search(r"log says", alarm["AlarmDescription"])
