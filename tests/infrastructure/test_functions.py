"""Settings and limits of the functions, and how the outbox reaches `deliver`."""

import json
import platform
import sys

import pytest

from shared.runtime import settings
from shared.runtime.settings import Settings
from tests.infrastructure.synthesis import Assembly

COMMON = {"HOLDFAST_STAGE", "POWERTOOLS_SERVICE_NAME", "POWERTOOLS_LOG_LEVEL", "POWERTOOLS_METRICS_NAMESPACE"}
TIMEOUT_SECONDS = {
    "api": 15,
    "wake": 20,
    "propose": 60,
    "open_wait": 10,
    "perform": 20,
    "deliver": 30,
    "deadline": 20,
    "recover": 120,
    "webhook": 15,
    "tool-issue_refund": 12,
    "tool-read_vendor": 12,
    "tool-reserve_budget": 12,
    "tool-release_budget": 12,
    "tool-create_payment": 12,
    "tool-cancel_payment": 12,
    "tool-notify_vendor": 12,
    "tool-send_welcome_packet": 12,
    "tool-order_equipment": 12,
}
SETTINGS = {
    "api": {
        "HEADS_TABLE",
        "CHECKPOINTS_TABLE",
        "WAITS_TABLE",
        "ACTIONS_TABLE",
        "INBOX_TABLE",
        "OUTBOX_TABLE",
        "AUTHORITY_TABLE",
        "EVIDENCE_BUCKET",
        "SEAL_KEY_ID",
        "MODEL_ID",
        "OIDC_ISSUER",
        "OIDC_CLIENT_ID",
    },
    "wake": {
        "HEADS_TABLE",
        "CHECKPOINTS_TABLE",
        "WAITS_TABLE",
        "ACTIONS_TABLE",
        "INBOX_TABLE",
        "OUTBOX_TABLE",
        "LEASES_TABLE",
        "MEMORY_TABLE",
        "AUTHORITY_TABLE",
        "EVIDENCE_BUCKET",
        "ARTIFACTS_BUCKET",
        "SEAL_KEY_ID",
        "MODEL_ID",
    },
    "propose": {"ARTIFACTS_BUCKET", "MODEL_ID"},
    "open_wait": {"TOKENS_TABLE", "WAITS_TABLE", "HEADS_TABLE"},
    "perform": {
        "HEADS_TABLE",
        "CHECKPOINTS_TABLE",
        "ACTIONS_TABLE",
        "AUTHORITY_TABLE",
        "SEAL_KEY_ID",
        "TOOL_FUNCTIONS",
    },
    "deliver": {
        "OUTBOX_TABLE",
        "TOKENS_TABLE",
        "WAITS_TABLE",
        "EVENT_BUS",
        "STATE_MACHINE_ARNS",
        "SCHEDULE_GROUP",
        "DEADLINE_FUNCTION_ARN",
        "SCHEDULE_ROLE_ARN",
    },
    "deadline": {
        "HEADS_TABLE",
        "CHECKPOINTS_TABLE",
        "WAITS_TABLE",
        "ACTIONS_TABLE",
        "INBOX_TABLE",
        "OUTBOX_TABLE",
        "SEAL_KEY_ID",
    },
    "webhook": {
        "HEADS_TABLE",
        "CHECKPOINTS_TABLE",
        "WAITS_TABLE",
        "ACTIONS_TABLE",
        "INBOX_TABLE",
        "OUTBOX_TABLE",
        "SEAL_KEY_ID",
        "WEBHOOK_SECRET_PREFIX",
    },
    "recover": {
        "HEADS_TABLE",
        "CHECKPOINTS_TABLE",
        "WAITS_TABLE",
        "ACTIONS_TABLE",
        "INBOX_TABLE",
        "OUTBOX_TABLE",
        "SEAL_KEY_ID",
        "STATE_MACHINE_ARNS",
    },
    "tool-issue_refund": {"PAYMENTS_URL", "PAYMENTS_SECRET_NAME"},
    "tool-read_vendor": {"PAYMENTS_URL", "PAYMENTS_SECRET_NAME"},
    "tool-reserve_budget": {"PAYMENTS_URL", "PAYMENTS_SECRET_NAME"},
    "tool-release_budget": {"PAYMENTS_URL", "PAYMENTS_SECRET_NAME"},
    "tool-create_payment": {"PAYMENTS_URL", "PAYMENTS_SECRET_NAME"},
    "tool-cancel_payment": {"PAYMENTS_URL", "PAYMENTS_SECRET_NAME"},
    "tool-notify_vendor": {"PAYMENTS_URL", "PAYMENTS_SECRET_NAME"},
    "tool-send_welcome_packet": {"OFFICE_URL", "OFFICE_SECRET_NAME"},
    "tool-order_equipment": {"OFFICE_URL", "OFFICE_SECRET_NAME"},
}
FUNCTIONS = sorted(TIMEOUT_SECONDS)
WORKFLOWS = ("goods_return", "onboarding", "refund", "vendor_payment")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_gets_only_the_settings_it_uses(production: Assembly, name: str) -> None:
    """What a function is not told about it cannot reach for by accident."""
    variables = production.engine.function(name)["Environment"]["Variables"]

    assert set(variables) == COMMON | SETTINGS[name]
    assert variables["HOLDFAST_STAGE"] == "prod"
    assert variables["POWERTOOLS_METRICS_NAMESPACE"] == "Holdfast"


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if not name.startswith("tool-")])
def test_what_is_deployed_is_what_the_code_reads(production: Assembly, name: str) -> None:
    """A setting that is renamed on one side only would stop the function at its first call."""
    reader: type[Settings] = getattr(settings, f"{''.join(word.capitalize() for word in name.split('_'))}Settings")
    variables = production.engine.function(name)["Environment"]["Variables"]

    reader.read({key: production.engine.text(value) for key, value in variables.items()})

    assert {field.upper() for field in reader.model_fields} == SETTINGS[name] | {"HOLDFAST_STAGE"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_limited_traced_and_logs_into_its_own_group(production: Assembly, name: str) -> None:
    """Law 7: every limit is set; every function's log is its own and ends some day."""
    engine = production.engine
    function = engine.function(name)
    group = engine.resources[function["LoggingConfig"]["LogGroup"]["Ref"]]

    assert function["Timeout"] == TIMEOUT_SECONDS[name]
    assert function["TracingConfig"] == {"Mode": "Active"}
    assert group["Properties"]["LogGroupName"] == f"/aws/lambda/holdfast-prod-{name}"
    assert group["Properties"]["RetentionInDays"] == 90


def test_limits_are_nested(production: Assembly) -> None:
    """B58: whoever calls outlives what is called, so that an answer is always settled by the one who asked."""
    limits = {name: production.engine.function(name)["Timeout"] for name in FUNCTIONS}
    gateway_waits_seconds = 30

    assert all(limits[name] < limits["perform"] for name in FUNCTIONS if name.startswith("tool-"))
    assert limits["api"] < gateway_waits_seconds


@pytest.mark.parametrize("name", FUNCTIONS)
def test_cloud_functions_run_where_their_wheels_do(production: Assembly, name: str) -> None:
    """B76: interpreter and architecture are those of the bundle."""
    function = production.engine.function(name)

    assert function["Runtime"] == "python3.13"
    assert function["Architectures"] == ["arm64"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_local_functions_run_on_this_machine(local: Assembly, name: str) -> None:
    """The local AWS runs functions under the interpreter that synthesised them."""
    function = local.engine.function(name)
    machine = "arm64" if platform.machine().lower() in {"arm64", "aarch64"} else "x86_64"

    assert function["Runtime"] == f"python{sys.version_info.major}.{sys.version_info.minor}"
    assert function["Architectures"] == [machine]


def test_the_outbox_is_drained_in_order_and_nothing_is_dropped_in_silence(production: Assembly) -> None:
    """B66: only the failed message of a batch comes again, and what never succeeds is kept aside."""
    engine = production.engine
    source = engine.properties("AWS::Lambda::EventSourceMapping")

    assert engine.text(source["EventSourceArn"]) == "</holdfast/prod/outbox_stream_arn>"
    # A row that the sweep has touched comes again; a removed one was delivered.
    assert source["FilterCriteria"] == {"Filters": [{"Pattern": '{"eventName":["INSERT","MODIFY"]}'}]}
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert source["BatchSize"] == 10
    assert source["BisectBatchOnFunctionError"] is True
    assert source["MaximumRetryAttempts"] == 10
    assert source["MaximumRecordAgeInSeconds"] == 3600
    assert source["ParallelizationFactor"] == 1
    assert source["StartingPosition"] == "TRIM_HORIZON"
    queue = engine.resources[source["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]]
    assert queue["Properties"]["SqsManagedSseEnabled"] is True
    assert queue["Properties"]["MessageRetentionPeriod"] == 14 * 24 * 3600


def test_machines_and_tools_are_told_by_name(production: Assembly) -> None:
    """`deliver` finds a workflow's machine and `perform` a tool's function by the names the rules use."""
    engine = production.engine
    machines = engine.text(engine.function("deliver")["Environment"]["Variables"]["STATE_MACHINE_ARNS"])
    tools = engine.text(engine.function("perform")["Environment"]["Variables"]["TOOL_FUNCTIONS"])
    deployed = {
        found["Properties"]["FunctionName"].removeprefix("holdfast-prod-tool-"): f"<{name}>"
        for name, found in engine.of_type("AWS::Lambda::Function")
        if found["Properties"]["FunctionName"].startswith("holdfast-prod-tool-")
    }

    assert json.loads(machines) == {
        workflow: f"arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:stateMachine:holdfast-prod-{workflow}"
        for workflow in WORKFLOWS
    }
    assert json.loads(tools) == deployed


def test_the_end_of_an_execution_and_the_clock_wake_recover(production: Assembly) -> None:
    """B60, O3: errors that no Catch can see end in a rule, and what no rule saw is found by the sweep."""
    engine = production.engine
    rules = {
        rule["Properties"]["Name"]: rule["Properties"]
        for _, rule in engine.of_type("AWS::Events::Rule")
        if "EventBusName" not in rule["Properties"]
    }
    recover = next(
        name
        for name, found in engine.of_type("AWS::Lambda::Function")
        if found["Properties"]["FunctionName"] == "holdfast-prod-recover"
    )
    pattern = rules["holdfast-prod-execution-ended"]["EventPattern"]

    assert set(rules) == {"holdfast-prod-execution-ended", "holdfast-prod-sweep"}
    assert all(rule["Targets"][0]["Arn"] == {"Fn::GetAtt": [recover, "Arn"]} for rule in rules.values())
    assert rules["holdfast-prod-sweep"]["ScheduleExpression"] == "rate(5 minutes)"
    assert set(pattern["detail"]["status"]) == {"FAILED", "TIMED_OUT", "ABORTED"}
    assert [engine.text(arn) for arn in pattern["detail"]["stateMachineArn"]] == [
        f"arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:stateMachine:holdfast-prod-{workflow}"
        for workflow in WORKFLOWS
    ]


ALARMS = {
    *(f"holdfast-prod-{name}-errors" for name in FUNCTIONS),
    "holdfast-prod-deliver-dead-letters",
    "holdfast-prod-deliver-lag",
    "holdfast-prod-deliver-needs-attention",
    "holdfast-prod-notices-dead-letters",
    "holdfast-prod-notices-failed",
    "holdfast-prod-wake-needs-attention",
    "holdfast-prod-webhook-needs-attention",
    *(f"holdfast-prod-{name}-policy-faults" for name in ("api", "wake", "perform")),
    *(f"holdfast-prod-{workflow}-executions-{ending}" for workflow in WORKFLOWS for ending in ("failed", "timed-out")),
    "holdfast-prod-api-server-errors",
}


def test_what_operators_are_told(production: Assembly) -> None:
    """Law 8: failures are loud. Every alarm reaches the topic and says what to do."""
    engine = production.engine
    alarms = [alarm["Properties"] for _, alarm in engine.of_type("AWS::CloudWatch::Alarm")]
    [topic] = [
        name
        for name, found in engine.of_type("AWS::SNS::Topic")
        if found["Properties"]["TopicName"] == "holdfast-prod-alarms"
    ]

    assert {alarm["AlarmName"] for alarm in alarms} == ALARMS
    for alarm in alarms:
        assert alarm["AlarmActions"] == [{"Ref": topic}]
        assert alarm["AlarmDescription"].endswith(".")
        assert alarm["TreatMissingData"] == "notBreaching"
