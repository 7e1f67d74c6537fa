"""Who may do what: every role of every stack, as one table that a reviewer reads.

A new permission, a wider resource or a lost condition is a difference here.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tests.infrastructure.synthesis import Assembly, Template, synthesise

Statement = dict[str, Any]

GET = {"dynamodb:GetItem"}
READ = {"dynamodb:GetItem", "dynamodb:BatchGetItem"}
PUT = {"dynamodb:PutItem"}
UPDATE = {"dynamodb:UpdateItem"}
READ_OBJECT = {"s3:GetObject", "s3:GetObjectVersion"}
PUT_OBJECT = {"s3:PutObject"}
ANSWER = {"states:SendTaskSuccess"}

# What a service asks of the data key when a function reads, or reads and writes, encrypted items and objects.
KEY_TO_READ = {"kms:Decrypt", "kms:DescribeKey"}
KEY_TO_WRITE = KEY_TO_READ | {
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
}

# Every function writes its own log and its traces.
OF_EVERY_FUNCTION = {
    "own log": {"logs:CreateLogStream", "logs:PutLogEvents"},
    "*": {"xray:PutTraceSegments", "xray:PutTelemetryRecords"},
}

GRANTS: dict[str, dict[str, set[str]]] = {
    "api": {
        "table heads": READ | PUT | UPDATE,
        "table heads, index queue": {"dynamodb:Query"},
        "table checkpoints": READ | PUT,
        "table waits": READ | PUT | UPDATE,
        "table waits, index task": {"dynamodb:Query"},
        "table inbox": GET | PUT,
        "table outbox": PUT,
        "table actions": GET | PUT | UPDATE | {"dynamodb:Query"},
        "table authority": READ,
        "data key through dynamodb": KEY_TO_WRITE,
        "seal key": {"kms:GenerateMac", "kms:VerifyMac"},
        "bucket evidence, *": READ_OBJECT | PUT_OBJECT,
        "data key through s3": KEY_TO_WRITE,
    },
    "wake": {
        "table heads": READ | PUT | UPDATE,
        "table checkpoints": READ | PUT,
        "table waits": GET | PUT | UPDATE,
        "table actions": GET | PUT | UPDATE,
        "table inbox": PUT | {"dynamodb:Query"},
        "table outbox": PUT,
        "table leases": GET | UPDATE,
        "table authority": READ,
        "table memory": {"dynamodb:Query"},
        "data key through dynamodb": KEY_TO_WRITE,
        "seal key": {"kms:GenerateMac", "kms:VerifyMac"},
        "bucket evidence, *": READ_OBJECT,
        "bucket artifacts, residue/*": READ_OBJECT,
        "bucket artifacts, windows/*": PUT_OBJECT,
        "data key through s3": KEY_TO_WRITE,
    },
    "propose": {
        "bucket artifacts, windows/*": READ_OBJECT,
        "bucket artifacts, residue/*": PUT_OBJECT,
        "data key through s3": KEY_TO_WRITE,
        "model amazon.nova-pro-v1:0": {"bedrock:InvokeModel"},
    },
    "open_wait": {
        "table tokens": PUT,
        "table waits": GET,
        "table heads": GET,
        "data key through dynamodb": KEY_TO_WRITE,
        "machine goods_return": ANSWER,
        "machine onboarding": ANSWER,
        "machine refund": ANSWER,
        "machine vendor_payment": ANSWER,
    },
    "perform": {
        "table heads": READ,
        "table checkpoints": READ,
        "table actions": GET | UPDATE,
        "table authority": READ,
        "data key through dynamodb": KEY_TO_WRITE,
        "seal key": {"kms:VerifyMac"},
        "function tool-issue_refund": {"lambda:InvokeFunction"},
        "function tool-read_vendor": {"lambda:InvokeFunction"},
        "function tool-reserve_budget": {"lambda:InvokeFunction"},
        "function tool-release_budget": {"lambda:InvokeFunction"},
        "function tool-create_payment": {"lambda:InvokeFunction"},
        "function tool-cancel_payment": {"lambda:InvokeFunction"},
        "function tool-notify_vendor": {"lambda:InvokeFunction"},
        "function tool-send_welcome_packet": {"lambda:InvokeFunction"},
        "function tool-order_equipment": {"lambda:InvokeFunction"},
    },
    "deliver": {
        "outbox stream": {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"},
        "*": {"dynamodb:ListStreams"},
        "table outbox": GET | {"dynamodb:DeleteItem"},
        "table tokens": GET,
        "table waits": GET,
        "data key through dynamodb": KEY_TO_WRITE,
        "machine goods_return": {"states:StartExecution", "states:SendTaskSuccess"},
        "machine onboarding": {"states:StartExecution", "states:SendTaskSuccess"},
        "machine refund": {"states:StartExecution", "states:SendTaskSuccess"},
        "machine vendor_payment": {"states:StartExecution", "states:SendTaskSuccess"},
        "event bus": {"events:PutEvents"},
        "dead letters": {"sqs:SendMessage"},
        "timers wai_*": {"scheduler:CreateSchedule", "scheduler:UpdateSchedule", "scheduler:DeleteSchedule"},
        "role of timers, for scheduler": {"iam:PassRole"},
    },
    "deadline": {
        "table heads": READ | PUT,
        "table checkpoints": READ | PUT,
        "table waits": GET | PUT | UPDATE,
        "table actions": PUT,
        "table outbox": PUT,
        "data key through dynamodb": KEY_TO_WRITE,
        "seal key": {"kms:GenerateMac", "kms:VerifyMac"},
    },
    "webhook": {
        "table heads": READ | PUT,
        "table checkpoints": READ | PUT,
        "table waits": GET | PUT | UPDATE,
        "table actions": PUT,
        "table inbox": GET | PUT | {"dynamodb:Query"},
        "table outbox": PUT,
        "data key through dynamodb": KEY_TO_WRITE,
        "seal key": {"kms:GenerateMac", "kms:VerifyMac"},
        "secrets webhook/*": {"secretsmanager:GetSecretValue"},
    },
    "recover": {
        "table heads": READ | PUT | UPDATE,
        "table heads, index watch": {"dynamodb:Query"},
        "table checkpoints": READ | PUT,
        "table waits": GET | PUT | UPDATE,
        "table actions": PUT,
        "table outbox": PUT | UPDATE | {"dynamodb:Scan"},
        "data key through dynamodb": KEY_TO_WRITE,
        "seal key": {"kms:GenerateMac", "kms:VerifyMac"},
        "executions of goods_return": {"states:DescribeExecution"},
        "executions of onboarding": {"states:DescribeExecution"},
        "executions of refund": {"states:DescribeExecution"},
        "executions of vendor_payment": {"states:DescribeExecution"},
    },
    "tool-issue_refund": {
        "secret payments-api-key": {"secretsmanager:GetSecretValue"},
    },
    "tool-read_vendor": {
        "secret payments-api-key": {"secretsmanager:GetSecretValue"},
    },
    "tool-reserve_budget": {
        "secret payments-api-key": {"secretsmanager:GetSecretValue"},
    },
    "tool-release_budget": {
        "secret payments-api-key": {"secretsmanager:GetSecretValue"},
    },
    "tool-create_payment": {
        "secret payments-api-key": {"secretsmanager:GetSecretValue"},
    },
    "tool-cancel_payment": {
        "secret payments-api-key": {"secretsmanager:GetSecretValue"},
    },
    "tool-notify_vendor": {
        "secret payments-api-key": {"secretsmanager:GetSecretValue"},
    },
    # The sandbox plays every provider under one key; with an address of their own the office's services have a secret.
    "tool-send_welcome_packet": {
        "secret payments-api-key": {"secretsmanager:GetSecretValue"},
    },
    "tool-order_equipment": {
        "secret payments-api-key": {"secretsmanager:GetSecretValue"},
    },
}

# Step Functions, for one workflow's machine.
MACHINE_GRANTS: dict[str, set[str]] = {
    "function wake": {"lambda:InvokeFunction"},
    "function propose": {"lambda:InvokeFunction"},
    "function open_wait": {"lambda:InvokeFunction"},
    "function perform": {"lambda:InvokeFunction"},
    "*": {
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
    },
}

# EventBridge Scheduler, when a wait's timer goes off.
TIMER_GRANTS: dict[str, set[str]] = {"function deadline": {"lambda:InvokeFunction"}}

# EventBridge, when it tells people of an event.
NOTICE_GRANTS: dict[str, set[str]] = {"notices": {"sns:Publish"}}

SANDBOX_GRANTS: dict[str, set[str]] = {
    "own log": {"logs:CreateLogStream", "logs:PutLogEvents"},
    "sandbox ledger": GET | PUT | UPDATE | {"dynamodb:DeleteItem", "dynamodb:Query"},
    "sandbox secret": {"secretsmanager:GetSecretValue"},
}

ACCOUNT = r"arn:<AWS::Partition>:{service}:<AWS::Region>:<AWS::AccountId>:"
WORDS = [
    (ACCOUNT.format(service="dynamodb") + r"table/holdfast-prod-(\w+)/index/(\w+)", r"table \1, index \2"),
    (ACCOUNT.format(service="dynamodb") + r"table/holdfast-prod-(\w+)", r"table \1"),
    (r"arn:<AWS::Partition>:s3:::holdfast-prod-(\w+)-<AWS::AccountId>-<AWS::Region>/(.*)", r"bucket \1, \2"),
    (ACCOUNT.format(service="states") + r"stateMachine:holdfast-prod-(\w+)", r"machine \1"),
    (ACCOUNT.format(service="states") + r"execution:holdfast-prod-(\w+):\*", r"executions of \1"),
    (ACCOUNT.format(service="secretsmanager") + r"secret:holdfast-prod-([\w-]+)-\?{6}", r"secret \1"),
    (ACCOUNT.format(service="secretsmanager") + r"secret:holdfast-prod-webhook/\*", "secrets webhook/*"),
    (ACCOUNT.format(service="scheduler") + r"schedule/holdfast-prod-deadlines/(.*)", r"timers \1"),
    (r"<DeadlineTimerRole\w+\.Arn>", "role of timers"),
    (r"arn:<AWS::Partition>:bedrock:<AWS::Region>::foundation-model/(.*)", r"model \1"),
    (r"</holdfast/prod/seal_key_arn>", "seal key"),
    (r"</holdfast/prod/data_key_arn>", "data key"),
    (r"</holdfast/prod/outbox_stream_arn>", "outbox stream"),
    (r"<EventBus\w+\.Arn>", "event bus"),
    (r"<NotificationsNotices\w+>", "notices"),
    (r"<DeliverDeadLetters\w+\.Arn>", "dead letters"),
    (r"<Ledger\w+\.Arn>", "sandbox ledger"),
    (r"<ApiKey\w+>", "sandbox secret"),
    (r"\*", "*"),
]


def in_words(template: Template, resource: object, role_of: str) -> str:
    """Name a resource of a policy as the tables above do."""
    text = template.text(resource)
    if text == f"{ACCOUNT.format(service='logs')}log-group:/aws/lambda/holdfast-prod-{role_of}:*":
        return "own log"
    if match := re.fullmatch(r"<(\w+)\.Arn>", text):
        found = template.resources[match[1]]
        if found["Type"] == "AWS::Lambda::Function":
            return f"function {found['Properties']['FunctionName'].removeprefix('holdfast-prod-')}"
    for pattern, words in WORDS:
        if re.fullmatch(pattern, text):
            return re.sub(pattern, words, text)
    raise AssertionError(f"{role_of} is granted something on {text}, which no table here has a word for")


def conditions_in_words(template: Template, statement: Statement) -> str:
    """Name the condition of a statement: the service that uses a key, or that a role may be handed to."""
    match statement.get("Condition"):
        case None:
            return ""
        case {"StringEquals": {"kms:ViaService": via}} as condition if len(condition) == 1:
            service = re.fullmatch(r"(\w+)\.<AWS::Region>\.<AWS::URLSuffix>", template.text(via))
            assert service
            return f" through {service[1]}"
        case {"StringEquals": {"iam:PassedToService": str(service)}} as condition if len(condition) == 1:
            return f", for {service.removesuffix('.amazonaws.com')}"
    raise AssertionError(f"unexpected condition: {statement}")


def grants_of(template: Template, role: str, role_of: str) -> dict[str, set[str]]:
    """Collect what every policy of a role allows, by resource in words."""
    granted: dict[str, set[str]] = defaultdict(set)
    for statement in statements_of(template, role):
        assert statement["Effect"] == "Allow"
        for resource in as_list(statement["Resource"]):
            words = in_words(template, resource, role_of) + conditions_in_words(template, statement)
            granted[words].update(as_list(statement["Action"]))
    return dict(granted)


def statements_of(template: Template, role: str) -> Iterator[Statement]:
    """Every statement attached to a role, whichever way it is attached."""
    properties = template.resources[role]["Properties"]
    assert "ManagedPolicyArns" not in properties, f"{role} has a managed policy, whose content others decide"
    for policy in properties.get("Policies", []):
        yield from policy["PolicyDocument"]["Statement"]
    for _, policy in template.of_type("AWS::IAM::Policy"):
        if {"Ref": role} in policy["Properties"]["Roles"]:
            yield from policy["Properties"]["PolicyDocument"]["Statement"]


def as_list(value: Any) -> list[Any]:
    """IAM writes one of anything without a list."""
    return value if isinstance(value, list) else [value]


def role_of(properties: dict[str, object]) -> str:
    """Logical id of the role of a function or machine."""
    match properties.get("Role") or properties["RoleArn"]:
        case {"Fn::GetAtt": [str(role), "Arn"]}:
            return role
    raise AssertionError(f"a role from outside the stack: {properties}")


@pytest.mark.parametrize("name", GRANTS)
def test_a_function_has_exactly_the_grants_in_the_table(production: Assembly, name: str) -> None:
    """B76: each function may do what its row says and nothing else; the right that is missing is the proof."""
    expected: dict[str, set[str]] = defaultdict(set)
    for grants in (GRANTS[name], OF_EVERY_FUNCTION):
        for resource, actions in grants.items():
            expected[resource] |= actions

    actual = grants_of(production.engine, role_of(production.engine.function(name)), name)

    assert actual == expected


def test_the_table_names_every_function(production: Assembly) -> None:
    """A function without a row would have grants nobody has read."""
    deployed = {
        properties["Properties"]["FunctionName"].removeprefix("holdfast-prod-")
        for _, properties in production.engine.of_type("AWS::Lambda::Function")
    }

    assert deployed == set(GRANTS)


def test_a_machine_may_invoke_its_four_functions_and_nothing_else(production: Assembly) -> None:
    """B76: no grant points back from the functions' stack to a wildcard of functions."""
    machines = list(production.engine.of_type("AWS::StepFunctions::StateMachine"))
    assert machines
    for _, machine in machines:
        role = role_of(machine["Properties"])
        assert grants_of(production.engine, role, "machine") == MACHINE_GRANTS


def test_the_sandbox_reaches_only_its_own_table_and_key(production: Assembly) -> None:
    """The pretend provider is an outsider: it has no right on anything of the product."""
    function = production.sandbox.function("sandbox")

    assert grants_of(production.sandbox, role_of(function), "sandbox") == SANDBOX_GRANTS


def test_every_role_belongs_to_one_function_or_machine(production: Assembly) -> None:
    """No role is shared, and none lies about unused with rights that nobody compares."""
    for template in (production.engine, production.sandbox):
        roles = {name for name, _ in template.of_type("AWS::IAM::Role")}
        owners = [
            role_of(resource["Properties"])
            for kind in ("AWS::Lambda::Function", "AWS::StepFunctions::StateMachine")
            for _, resource in template.of_type(kind)
        ]
        assert sorted(owners) == sorted(roles - timer_roles(template) - notice_roles(template))


def timer_roles(template: Template) -> set[str]:
    """Roles that EventBridge Scheduler takes; its schedules are made at run time and are in no template."""
    return roles_of_service(template, "scheduler.amazonaws.com")


def notice_roles(template: Template) -> set[str]:
    """Roles that EventBridge takes when a rule sends a notice."""
    return roles_of_service(template, "events.amazonaws.com")


def roles_of_service(template: Template, service: str) -> set[str]:
    """Roles that a service takes."""
    return {
        name
        for name, role in template.of_type("AWS::IAM::Role")
        if role["Properties"]["AssumeRolePolicyDocument"]["Statement"][0]["Principal"] == {"Service": service}
    }


def test_a_timer_may_do_nothing_but_go_off(production: Assembly) -> None:
    """B67: whatever is armed, it can only wake the one function that looks at the wait before it acts."""
    [role] = timer_roles(production.engine)
    [trust] = production.engine.resources[role]["Properties"]["AssumeRolePolicyDocument"]["Statement"]

    assert grants_of(production.engine, role, "timer") == TIMER_GRANTS
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_a_notice_may_do_nothing_but_be_sent(production: Assembly) -> None:
    """B72: a rule can publish to the one topic, and nobody else's rule can take its role."""
    [role] = notice_roles(production.engine)
    [trust] = production.engine.resources[role]["Properties"]["AssumeRolePolicyDocument"]["Statement"]

    assert grants_of(production.engine, role, "notices") == NOTICE_GRANTS
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_the_data_stack_gives_nobody_a_right(production: Assembly) -> None:
    """Rights stand beside the functions; the data stack has no role of its own in a stage that is kept."""
    assert not list(production.data.of_type("AWS::IAM::Role"))
    assert not list(production.data.of_type("AWS::IAM::Policy"))


def test_the_model_s_function_has_no_right_on_any_table(production: Assembly) -> None:
    """A4, law 2: whoever calls the model cannot read or write a record, see a task token or reach a tool."""
    granted = grants_of(production.engine, role_of(production.engine.function("propose")), "propose")
    services = {action.split(":")[0] for actions in granted.values() for action in actions}

    assert services == {"bedrock", "kms", "logs", "s3", "xray"}
    assert "data key through dynamodb" not in granted


def test_only_two_functions_can_touch_a_task_token(production: Assembly) -> None:
    """`open_wait` writes tokens, `deliver` reads them, nobody does both."""
    holders = {name: grants["table tokens"] for name, grants in GRANTS.items() if "table tokens" in grants}
    answering = {name for name, grants in GRANTS.items() if ANSWER & set().union(*grants.values())}

    assert holders == {"open_wait": PUT, "deliver": GET}
    assert answering == {"open_wait", "deliver"}


def test_every_provider_has_its_own_address_and_secret() -> None:
    """Where there is no sandbox, a tool knows its own provider's key and nobody else's."""
    engine = synthesise("provider", payments_url="https://bank.test", office_url="https://post.test").engine
    expected = {"issue_refund": ("https://bank.test", "payments"), "order_equipment": ("https://post.test", "office")}

    for tool, (url, name) in expected.items():
        function = engine.function(f"tool-{tool}")
        [secret] = [
            engine.text(resource)
            for statement in statements_of(engine, role_of(function))
            if statement["Action"] == "secretsmanager:GetSecretValue"
            for resource in as_list(statement["Resource"])
        ]
        assert secret.endswith(f":secret:holdfast-provider-{name}-api-key-??????")
        assert url in function["Environment"]["Variables"].values()


def test_a_cross_region_profile_is_allowed_with_the_model_behind_it() -> None:
    """The configured id decides what `bedrock:InvokeModel` reaches: the profile, and its model where it routes."""
    engine = synthesise(
        "profile", model_id="eu.amazon.nova-pro-v1:0", payments_url="https://bank.test", office_url="https://post.test"
    ).engine
    role = role_of(engine.function("propose"))
    resources = [
        engine.text(resource)
        for statement in statements_of(engine, role)
        if statement["Action"] == "bedrock:InvokeModel"
        for resource in as_list(statement["Resource"])
    ]

    assert resources == [
        "arn:<AWS::Partition>:bedrock:<AWS::Region>:<AWS::AccountId>:inference-profile/eu.amazon.nova-pro-v1:0",
        "arn:<AWS::Partition>:bedrock:*::foundation-model/amazon.nova-pro-v1:0",
    ]
