"""A small deployment by hand: one function of several moods, one state machine a test, on an emulator with IAM."""

import io
import json
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from local.aws import ACCOUNT, REGION, LocalAws

if TYPE_CHECKING:
    from mypy_boto3_iam import IAMClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_stepfunctions import SFNClient

WAIT_SECONDS_MAX: Final = 30.0

# What a function does is said in its event, so that one function serves every test.
CODE: Final = '''
import json, os, time
import boto3
from botocore.config import Config

class Park(Exception):
    """One of the engine's error names."""

def handler(event, context):
    mood = event.get("mood")
    if "Records" in event:
        return consume(event["Records"])
    if mood == "raise":
        raise Park(json.dumps({"code": "gate_failed", "message": "no"}))
    if mood == "exit":
        os._exit(1)
    if mood == "sleep":
        table().put_item(Item={"id": event["id"]})
        time.sleep(event["seconds"])
    if mood == "keep":
        table().put_item(Item={"id": event["id"], "token": event["token"]})
    if mood == "answer":
        item = table().get_item(Key={"id": event["id"]}, ConsistentRead=True)["Item"]
        boto3.client("stepfunctions").send_task_success(taskToken=item["token"], output=json.dumps({"by": "hand"}))
    if mood == "ask":
        conversation = [{"role": "user", "content": [{"text": "hello"}]}]
        once = Config(retries={"total_max_attempts": 1})
        boto3.client("bedrock-runtime", config=once).converse(modelId=event["model"], messages=conversation)
    if mood == "store":
        boto3.client("s3").put_object(Bucket=event["bucket"], Key="k", Body=b"v")
    return {"mood": mood}

def table():
    return boto3.resource("dynamodb").Table("probe-kept")

def consume(records):
    """Fail each record the first time it is seen; count in the other table."""
    failed = []
    for record in records:
        key = record["dynamodb"]["Keys"]["id"]["S"]
        counted = boto3.resource("dynamodb").Table("probe-counted").update_item(
            Key={"id": key}, UpdateExpression="ADD seen :one", ExpressionAttributeValues={":one": 1},
            ReturnValues="ALL_NEW",
        )
        if counted["Attributes"]["seen"] == 1:
            failed.append({"itemIdentifier": record["dynamodb"]["SequenceNumber"]})
    return {"batchItemFailures": failed}
'''


def arn(service: str, resource: str) -> str:
    """The ARN of a resource of this account and region."""
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulated:
    """The emulator and what is deployed to it."""

    aws: LocalAws

    def add_function(self, name: str, *, grants: Mapping[str, str], timeout_seconds: int = 10) -> str:
        """Add a function with its own role and exactly these grants (action to resource); answer its ARN."""
        iam: IAMClient = self.aws.client("iam")
        trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
        role = iam.create_role(RoleName=f"{name}-role", AssumeRolePolicyDocument=_policy(trust))["Role"]["Arn"]
        for number, (action, resource) in enumerate(grants.items()):
            statement = {"Effect": "Allow", "Action": action, "Resource": resource}
            iam.put_role_policy(RoleName=f"{name}-role", PolicyName=f"p{number}", PolicyDocument=_policy(statement))
        lambda_: LambdaClient = self.aws.client("lambda")
        return lambda_.create_function(
            FunctionName=name,
            Runtime="python3.13",
            Role=role,
            Handler="moods.handler",
            Code={"ZipFile": _zipped()},
            Timeout=timeout_seconds,
        )["FunctionArn"]

    def invoke(self, name: str, event: Mapping[str, object]) -> tuple[str | None, Any]:
        """Call a function; answer how it failed, if it did, and what it said."""
        lambda_: LambdaClient = self.aws.client("lambda")
        answer = lambda_.invoke(FunctionName=name, Payload=json.dumps(event).encode())
        return answer.get("FunctionError"), json.loads(answer["Payload"].read())

    def add_machine(self, name: str, states: Mapping[str, object]) -> str:
        """Add a Standard state machine that starts at ``Start``; answer its ARN."""
        iam: IAMClient = self.aws.client("iam")
        trust = {"Effect": "Allow", "Principal": {"Service": "states.amazonaws.com"}, "Action": "sts:AssumeRole"}
        role = iam.create_role(RoleName=f"{name}-role", AssumeRolePolicyDocument=_policy(trust))["Role"]["Arn"]
        machines: SFNClient = self.aws.client("stepfunctions")
        definition = json.dumps({"StartAt": "Start", "States": states})
        return machines.create_state_machine(name=name, definition=definition, roleArn=role)["stateMachineArn"]

    def start(self, machine: str, document: Mapping[str, object]) -> str:
        """Start an execution and answer its ARN."""
        machines: SFNClient = self.aws.client("stepfunctions")
        return machines.start_execution(stateMachineArn=machine, input=json.dumps(document))["executionArn"]

    def await_output(self, execution: str) -> Any:
        """Wait for an execution to succeed and answer its output."""
        machines: SFNClient = self.aws.client("stepfunctions")
        ends_at = time.monotonic() + WAIT_SECONDS_MAX
        while (found := machines.describe_execution(executionArn=execution))["status"] == "RUNNING":
            if time.monotonic() > ends_at:
                pytest.fail(f"{execution} still runs after {WAIT_SECONDS_MAX} s")
            time.sleep(0.05)
        assert found["status"] == "SUCCEEDED", found
        return json.loads(found["output"])


def _policy(statement: Mapping[str, object]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _zipped() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("moods.py", CODE)
    return content.getvalue()
