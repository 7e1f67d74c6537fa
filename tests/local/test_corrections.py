"""What the emulator answers with its corrections in place is what AWS answers.

Each test fails on the emulator as it comes, except where a line says otherwise.
"""

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from local import emulator
from local.corrections._seam import OutOfDate, module, replace_text, wrap
from local.differences import DIFFERENCES
from local.http_client import HttpClient
from local.places import Place
from tests.local.emulated import WAIT_SECONDS_MAX, Emulated, arn

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient

MODEL = "amazon.nova-pro-v1:0"
INVOKE = "arn:aws:states:::lambda:invoke"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One emulator serves the module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("local.places.STATE", tmp_path_factory.mktemp("state"))
        yield Place(name="corrections")


@pytest.fixture(scope="module")
def emulated(place: Place) -> Iterator[Emulated]:
    """The emulator with two tables, a moody function that may do all of it, and one that may do nothing."""
    running = Emulated(aws=emulator.start(place, port=None, model_url=None))
    try:
        tables: DynamoDBClient = running.aws.client("dynamodb")
        for name in ("probe-kept", "probe-counted"):
            tables.create_table(
                TableName=name,
                KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
                StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
            )
        grants = {
            "dynamodb:*": arn("dynamodb", "table/probe-*"),
            "s3:PutObject": "arn:aws:s3:::probe-sealed/*",
            "states:SendTaskSuccess": arn("states", "stateMachine:token"),
            "bedrock:InvokeModel": f"arn:aws:bedrock:us-east-1::foundation-model/{MODEL}",
        }
        running.add_function("moody", grants=grants, timeout_seconds=8)
        running.add_function("powerless", grants={})
        yield running
    finally:
        emulator.stop(place)


@pytest.fixture(scope="module")
def errors(emulated: Emulated) -> str:
    """A machine that catches one name of ours and everything else apart from each other."""
    state = {
        "Type": "Task",
        "Resource": INVOKE,
        "Parameters": {"FunctionName": "moody", "Payload.$": "$"},
        "ResultPath": "$.result",
        "Catch": [
            {"ErrorEquals": ["Park"], "ResultPath": "$.error", "Next": "Parked"},
            {"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Other"},
        ],
        "End": True,
    }
    marks = {
        name: {"Type": "Pass", "Result": name, "ResultPath": "$.caught", "End": True} for name in ("Parked", "Other")
    }
    return emulated.add_machine("errors", {"Start": state, **marks})


@pytest.fixture(scope="module")
def token(emulated: Emulated) -> str:
    """A machine that hands its task token to the function and waits for the answer."""
    state = {
        "Type": "Task",
        "Resource": f"{INVOKE}.waitForTaskToken",
        "Parameters": {
            "FunctionName": "moody",
            "Payload": {"mood.$": "$.mood", "id.$": "$.id", "token.$": "$$.Task.Token"},
        },
        "TimeoutSecondsPath": "$.wait_seconds",
        "ResultPath": "$.result",
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Caught"}],
        "End": True,
    }
    return emulated.add_machine("token", {"Start": state, "Caught": {"Type": "Pass", "End": True}})


def test_an_exception_is_caught_by_the_name_of_its_class(emulated: Emulated, errors: str) -> None:
    """The graph's one rule per disposition matches, and the cause carries the message."""
    output = emulated.await_output(emulated.start(errors, {"mood": "raise"}))

    assert output["caught"] == "Parked"
    cause = json.loads(output["error"]["Cause"])
    assert cause["errorType"] == "Park"
    assert json.loads(cause["errorMessage"]) == {"code": "gate_failed", "message": "no"}


def test_a_caller_of_a_failing_function_reads_the_name_of_the_class(emulated: Emulated) -> None:
    """The same name reaches a caller that is no state machine."""
    failed, said = emulated.invoke("moody", {"mood": "raise"})

    assert failed == "Unhandled"
    assert said["errorType"] == "Park"


def test_a_worker_killed_in_the_middle_of_a_call_is_an_exit(emulated: Emulated, errors: str, place: Place) -> None:
    """Losing the process has the name that the Lambda runtime gives it, and the next call works."""
    emulated.invoke("moody", {"mood": "warm"})
    (worker,) = emulator.worker_pids(place, "moody")
    execution = emulated.start(errors, {"mood": "sleep", "seconds": 7, "id": "asleep"})
    _await_row(emulated, "asleep")

    os.kill(worker, signal.SIGKILL)
    output = emulated.await_output(execution)

    assert output["caught"] == "Other"
    assert output["error"]["Error"] == "Runtime.ExitError"
    assert emulated.invoke("moody", {"mood": "calm"}) == (None, {"mood": "calm"})
    assert emulator.worker_pids(place, "moody") != [worker]


def test_a_process_that_ends_itself_is_an_exit(emulated: Emulated, errors: str) -> None:
    """So is a function that leaves."""
    output = emulated.await_output(emulated.start(errors, {"mood": "exit"}))

    assert output["error"]["Error"] == "Runtime.ExitError"


def test_a_function_that_fails_fails_the_state_that_waits_for_its_token(emulated: Emulated, token: str) -> None:
    """Nobody waits for an answer to a token that was never passed on."""
    document = {"mood": "raise", "id": "lost", "wait_seconds": 20}

    output = emulated.await_output(emulated.start(token, document))

    assert output["error"]["Error"] == "Park"


def test_the_path_of_a_timeout_bounds_a_wait(emulated: Emulated, token: str) -> None:
    """A wait of a second ends after one."""
    output = emulated.await_output(emulated.start(token, {"mood": "keep", "id": "slow", "wait_seconds": 1}))

    assert output["error"]["Error"] == "States.Timeout"


def test_a_token_is_answered_with_a_grant_on_its_machine_alone(emulated: Emulated, token: str) -> None:
    """The grant names the state machine, as on AWS. A second answer is refused as unknown, not as forbidden."""
    execution = emulated.start(token, {"mood": "keep", "id": "t-1", "wait_seconds": 25})
    _await_row(emulated, "t-1")

    assert emulated.invoke("moody", {"mood": "answer", "id": "t-1"}) == (None, {"mood": "answer"})
    assert emulated.await_output(execution)["result"] == {"by": "hand"}
    failed, said = emulated.invoke("moody", {"mood": "answer", "id": "t-1"})
    assert failed == "Unhandled"
    assert "TaskDoesNotExist" in said["errorMessage"]


def test_without_the_grant_a_function_is_refused(emulated: Emulated) -> None:
    """IAM is enforced, with and without the corrections."""
    failed, said = emulated.invoke("powerless", {"mood": "keep", "id": "x", "token": "y"})

    assert failed == "Unhandled"
    assert "AccessDenied" in said["errorMessage"]


def test_the_right_to_invoke_the_model_is_the_right_to_converse(emulated: Emulated) -> None:
    """With the grant the call passes IAM and finds no model; without it, it is refused. It never invents an answer."""
    _, allowed = emulated.invoke("moody", {"mood": "ask", "model": MODEL})
    _, refused = emulated.invoke("powerless", {"mood": "ask", "model": MODEL})

    assert "ServiceUnavailableException" in allowed["errorMessage"]
    assert "AccessDenied" in refused["errorMessage"]


def test_a_bucket_that_demands_tls_can_be_used(emulated: Emulated) -> None:
    """Loopback counts as a secure transport, so the template keeps its policy."""
    bucket: S3Client = emulated.aws.client("s3")
    bucket.create_bucket(Bucket="probe-sealed")
    deny = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": ["arn:aws:s3:::probe-sealed", "arn:aws:s3:::probe-sealed/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    bucket.put_bucket_policy(Bucket="probe-sealed", Policy=json.dumps({"Version": "2012-10-17", "Statement": [deny]}))

    assert emulated.invoke("moody", {"mood": "store", "bucket": "probe-sealed"}) == (None, {"mood": "store"})
    assert bucket.get_object(Bucket="probe-sealed", Key="k")["Body"].read() == b"v"


def test_records_reported_as_failed_are_delivered_again(emulated: Emulated) -> None:
    """A consumer that fails every record once has seen each of them twice in the end."""
    tables: DynamoDBClient = emulated.aws.client("dynamodb")
    functions: LambdaClient = emulated.aws.client("lambda")
    stream = tables.describe_table(TableName="probe-kept")["Table"]["LatestStreamArn"]
    functions.create_event_source_mapping(
        EventSourceArn=stream,
        FunctionName="moody",
        StartingPosition="LATEST",
        BatchSize=10,
        FunctionResponseTypes=["ReportBatchItemFailures"],
    )

    ends_at = time.monotonic() + WAIT_SECONDS_MAX
    written = 0
    while not (seen := _counts(tables)) or min(seen.values()) < 2:
        assert time.monotonic() < ends_at, seen
        # The mapping starts at its own moment, so something is written until it has been noticed.
        if not seen:
            written += 1
            tables.put_item(TableName="probe-kept", Item={"id": {"S": f"row-{written}"}})
        time.sleep(0.1)


def test_a_template_gets_the_arn_of_its_secret_and_an_address_that_answers(emulated: Emulated) -> None:
    """``Ref`` of a secret is its ARN, its value has the alphabet asked for, and an API's endpoint is reachable."""
    stacks: CloudFormationClient = emulated.aws.client("cloudformation")
    secret = {"Name": "probe-key", "GenerateSecretString": {"ExcludePunctuation": True, "PasswordLength": 40}}
    template = {
        "Resources": {
            "Key": {"Type": "AWS::SecretsManager::Secret", "Properties": secret},
            "Api": {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"Name": "probe", "ProtocolType": "HTTP"}},
        },
        "Outputs": {"Key": {"Value": {"Ref": "Key"}}, "Address": {"Value": {"Fn::GetAtt": ["Api", "ApiEndpoint"]}}},
    }
    stacks.create_stack(StackName="probe", TemplateBody=json.dumps(template))
    stacks.get_waiter("stack_create_complete").wait(StackName="probe", WaiterConfig={"Delay": 1, "MaxAttempts": 20})
    outputs = stacks.describe_stacks(StackName="probe")["Stacks"][0]["Outputs"]
    values = {each["OutputKey"]: each["OutputValue"] for each in outputs}

    secrets: SecretsManagerClient = emulated.aws.client("secretsmanager")
    found = secrets.get_secret_value(SecretId=values["Key"])
    assert values["Key"] == found["ARN"]
    assert len(found["SecretString"]) == 40
    assert found["SecretString"].isalnum()
    assert HttpClient(base=values["Address"]).get("/nothing").status == 404

    stacks.delete_stack(StackName="probe")
    stacks.get_waiter("stack_delete_complete").wait(StackName="probe", WaiterConfig={"Delay": 1, "MaxAttempts": 20})
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        secrets.get_secret_value(SecretId=values["Key"])


def test_workers_share_what_lies_on_the_machine_once(emulated: Emulated, place: Place) -> None:
    """A new worker unpacks nothing that is there already; its code is where the package was unpacked first."""
    for name in ("first", "second"):
        emulated.add_function(name, grants={})
        assert emulated.invoke(name, {"mood": "fine"})[1] is not None

    code = [path for name in ("first", "second") for path in place.folder.glob(f"tmp/*-{name}-*/code/moods.py")]
    assert len(code) == 2
    assert len({path.resolve() for path in code}) == 1


def test_the_emulator_listens_on_loopback_only(emulated: Emulated) -> None:
    """Nothing that is started here is reachable from another machine."""
    with socket.socket() as neighbour:
        neighbour.bind(("127.0.0.2", emulated.aws.port))


def test_every_difference_is_corrected_or_has_a_consequence() -> None:
    """A departure from AWS that is merely known would be a trap."""
    for difference in DIFFERENCES:
        assert bool(difference.correction) != bool(difference.consequence), difference


def test_a_correction_refuses_an_emulator_that_it_does_not_fit() -> None:
    """A new version of the emulator is noticed at its start, not by tests that pass for the wrong reason."""
    runtime = module("core.lambda_runtime")

    with pytest.raises(OutOfDate):
        wrap(runtime, "no_such_function", lambda original: original)
    with pytest.raises(OutOfDate):
        replace_text(runtime, "_PYTHON_WORKER_SCRIPT", "no such passage", "")


def _await_row(emulated: Emulated, kept_as: str) -> None:
    """Wait until a function has written its row."""
    tables: DynamoDBClient = emulated.aws.client("dynamodb")
    ends_at = time.monotonic() + WAIT_SECONDS_MAX
    while "Item" not in tables.get_item(TableName="probe-kept", Key={"id": {"S": kept_as}}, ConsistentRead=True):
        assert time.monotonic() < ends_at, f"no row {kept_as}"
        time.sleep(0.05)


def _counts(tables: "DynamoDBClient") -> dict[str, int]:
    return {row["id"]["S"]: int(row["seen"]["N"]) for row in tables.scan(TableName="probe-counted")["Items"]}


def test_an_event_that_a_topic_does_not_take_is_kept(emulated: Emulated) -> None:
    """The queue that the target names gets the event itself, and only while the topic is away."""
    events, topics, queues = (emulated.aws.client(service) for service in ("events", "sns", "sqs"))
    url = queues.create_queue(QueueName="probe-dead-letters")["QueueUrl"]
    topic = topics.create_topic(Name="probe-notices")["TopicArn"]
    events.put_rule(Name="probe-tell", EventPattern=json.dumps({"source": ["probe"]}))
    kept = {"Arn": arn("sqs", "probe-dead-letters")}
    events.put_targets(Rule="probe-tell", Targets=[{"Id": "t", "Arn": topic, "DeadLetterConfig": kept, "Input": '"x"'}])

    def tell(number: int) -> list[object]:
        detail = json.dumps({"number": number})
        events.put_events(Entries=[{"Source": "probe", "DetailType": "told", "Detail": detail}])
        found = queues.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0)
        return [json.loads(message["Body"])["detail"]["number"] for message in found.get("Messages", [])]

    taken = tell(1)
    topics.delete_topic(TopicArn=topic)

    assert (taken, tell(2)) == ([], [2])
