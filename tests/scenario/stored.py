"""Looking into the tables of the deployed system, and turning one wait's clock back by hand."""

from datetime import datetime, timedelta
from typing import Any

from local.instance import Instance
from shared.adapters.dynamodb.items import instant


def rows(deployed: Instance, kind: str, task_id: str) -> list[dict[str, Any]]:
    """What a table holds of a task of acme, read consistently."""
    found = deployed.aws.client("dynamodb").query(
        TableName=f"holdfast-local-{kind}",
        KeyConditionExpression="task = :task",
        ExpressionAttributeValues={":task": {"S": f"acme#{task_id}"}},
        ConsistentRead=True,
    )
    return list(found["Items"])


def version(deployed: Instance, task_id: str) -> int:
    """How far the task's record has come."""
    return int(rows(deployed, "heads", task_id)[0]["version"]["N"])


def timer_of(deployed: Instance, wait_id: str) -> str:
    """What the schedule of a wait sends when it goes off."""
    client = deployed.aws.client("scheduler")
    return str(client.get_schedule(GroupName="holdfast-local-deadlines", Name=wait_id)["Target"]["Input"])


def faults_left(deployed: Instance) -> int:
    """How many of the bank's next requests will still go wrong."""
    place = {"collection": {"S": "faults"}, "record": {"S": "ordered"}}
    found = deployed.aws.client("dynamodb").get_item(
        TableName="holdfast-local-sandbox-ledger", Key=place, ConsistentRead=True
    )
    return int(found["Item"]["times"]["N"])


def open_earlier(deployed: Instance, task_id: str, by: timedelta) -> None:
    """Let a task's open wait have been opened earlier, as far as its row says."""
    dynamodb = deployed.aws.client("dynamodb")
    found = dynamodb.scan(TableName="holdfast-local-waits", ConsistentRead=True)["Items"]
    [row] = [row for row in found if row["task"]["S"] == f"acme#{task_id}" and row["status"]["S"] == "open"]
    opened = datetime.fromisoformat(row["opened_at"]["S"]) - by
    dynamodb.put_item(TableName="holdfast-local-waits", Item={**row, "opened_at": instant(opened)})
