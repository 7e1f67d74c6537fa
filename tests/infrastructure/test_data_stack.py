"""What the data stack promises: nothing that cannot be made again is lost by a deployment or a deletion."""

import json
from typing import Any

import pytest

from tests.infrastructure.synthesis import Assembly, Resource

# Key attributes as the adapters use them: name and type of the partition key, then of the sort key.
TABLES = {
    "heads": [("task", "S")],
    "checkpoints": [("task", "S"), ("version", "N")],
    "waits": [("correlation", "S")],
    "tokens": [("wait", "S")],
    "actions": [("task", "S"), ("operation", "S")],
    "inbox": [("source", "S"), ("event_id", "S")],
    "outbox": [("task", "S"), ("message", "S")],
    "leases": [("task", "S")],
    "memory": [("scope", "S"), ("record", "S")],
    "authority": [("record", "S")],
}
PURGED = {"tokens", "inbox", "memory"}
BUCKETS = ("evidence", "artifacts", "logs")
KEPT = ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::KMS::Key")


def kept_resources(assembly: Assembly) -> dict[str, Resource]:
    """Everything of the data stack that holds data or opens it."""
    return {name: resource for name, resource in assembly.data.resources.items() if resource["Type"] in KEPT}


def bucket(assembly: Assembly, what: str) -> tuple[str, Resource]:
    """One bucket by the word in its name."""
    for name, resource in assembly.data.of_type("AWS::S3::Bucket"):
        if assembly.data.text(resource["Properties"]["BucketName"]).split("-")[2] == what:
            return name, resource
    raise AssertionError(what)


@pytest.mark.parametrize(("kind", "key"), TABLES.items())
def test_a_table_has_the_key_its_adapter_uses(production: Assembly, kind: str, key: list[tuple[str, str]]) -> None:
    """One table per kind of record, with the agreed key."""
    table = production.data.properties("AWS::DynamoDB::Table", TableName=f"holdfast-prod-{kind}")
    types = {attribute["AttributeName"]: attribute["AttributeType"] for attribute in table["AttributeDefinitions"]}

    assert [(part["AttributeName"], types[part["AttributeName"]]) for part in table["KeySchema"]] == key
    assert [part["KeyType"] for part in table["KeySchema"]] == ["HASH", "RANGE"][: len(key)]


def test_the_table_list_is_complete(production: Assembly) -> None:
    """No table without a row above."""
    names = {t["Properties"]["TableName"] for _, t in production.data.of_type("AWS::DynamoDB::Table")}

    assert names == {f"holdfast-prod-{kind}" for kind in TABLES}


@pytest.mark.parametrize("stage", ["production", "disposable", "local"])
def test_every_table_is_restorable_encrypted_and_on_demand(stage: str, request: pytest.FixtureRequest) -> None:
    """B76: point-in-time recovery in every stage, our own key, no capacity to run out of."""
    assembly: Assembly = request.getfixturevalue(stage)
    for _, table in assembly.data.of_type("AWS::DynamoDB::Table"):
        properties = table["Properties"]
        assert properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
        assert properties["BillingMode"] == "PAY_PER_REQUEST"
        assert properties["SSESpecification"]["SSEType"] == "KMS"
        assert assembly.data.text(properties["SSESpecification"]["KMSMasterKeyId"]) == "<KeysDataA2F7C5E6.Arn>"


def test_production_data_survives_the_stack(production: Assembly) -> None:
    """B76: tables, buckets and keys are retained, tables refuse deletion, and the stack itself does too."""
    for name, resource in kept_resources(production).items():
        assert resource["DeletionPolicy"] == "Retain", name
        assert resource["UpdateReplacePolicy"] == "Retain", name
    for _, table in production.data.of_type("AWS::DynamoDB::Table"):
        assert table["Properties"]["DeletionProtectionEnabled"] is True
    manifest = json.loads((production.directory / "manifest.json").read_text())
    assert manifest["artifacts"]["Holdfast-prod-Data"]["properties"]["terminationProtection"] is True


@pytest.mark.parametrize("stage", ["disposable", "local"])
def test_a_disposable_stage_can_be_destroyed(stage: str, request: pytest.FixtureRequest) -> None:
    """Only dev and local go when their stacks go."""
    assembly: Assembly = request.getfixturevalue(stage)
    for name, resource in kept_resources(assembly).items():
        assert resource["DeletionPolicy"] == "Delete", name
        assert resource["Properties"].get("DeletionProtectionEnabled", False) is False, name


def test_buckets_of_a_disposable_stage_are_emptied_first(disposable: Assembly, production: Assembly) -> None:
    """A bucket with objects cannot be deleted; emptying one is never offered where data is kept."""
    emptied = {
        disposable.data.text(found["Properties"]["BucketName"])
        for _, found in disposable.data.of_type("Custom::S3AutoDeleteObjects")
    }

    assert emptied == {f"<{bucket(disposable, what)[0]}>" for what in BUCKETS}
    assert not list(production.data.of_type("Custom::S3AutoDeleteObjects"))


def test_only_the_named_kinds_are_purged(production: Assembly) -> None:
    """B52: a time to live is housekeeping on the kinds that may lose a row, and on no other."""
    purged = {
        table["Properties"]["TableName"].removeprefix("holdfast-prod-")
        for _, table in production.data.of_type("AWS::DynamoDB::Table")
        if table["Properties"].get("TimeToLiveSpecification") == {"AttributeName": "purge_at", "Enabled": True}
    }
    with_any = {
        table["Properties"]["TableName"].removeprefix("holdfast-prod-")
        for _, table in production.data.of_type("AWS::DynamoDB::Table")
        if "TimeToLiveSpecification" in table["Properties"]
    }

    assert purged == with_any == PURGED


def test_the_outbox_streams_what_is_staged(production: Assembly) -> None:
    """The stream carries the new row and nothing else does: only the outbox has one."""
    streams = {
        table["Properties"]["TableName"]: table["Properties"]["StreamSpecification"]["StreamViewType"]
        for _, table in production.data.of_type("AWS::DynamoDB::Table")
        if "StreamSpecification" in table["Properties"]
    }

    assert streams == {"holdfast-prod-outbox": "NEW_IMAGE"}


def indexes_of(assembly: Assembly, kind: str) -> dict[str, dict[str, Any]]:
    """The indexes of a kind's table by their names."""
    table = assembly.data.properties("AWS::DynamoDB::Table", TableName=f"holdfast-prod-{kind}")
    return {index["IndexName"]: index for index in table.get("GlobalSecondaryIndexes", [])}


def test_the_queue_index_holds_what_an_operator_lists(production: Assembly) -> None:
    """O1: tasks by tenant and status in the order of their age, with whose they are, until when, and why."""
    queue = indexes_of(production, "heads")["queue"]

    assert [part["AttributeName"] for part in queue["KeySchema"]] == ["queue", "since"]
    assert queue["Projection"]["ProjectionType"] == "INCLUDE"
    assert set(queue["Projection"]["NonKeyAttributes"]) == {"workflow", "stage", "owner", "due_at", "reason"}


def test_the_watch_index_names_tasks_and_says_nothing_about_them(production: Assembly) -> None:
    """B65, O3: the sweep finds whom to look at here, and has to read the record itself before it acts."""
    watch = indexes_of(production, "heads")["watch"]

    assert [part["AttributeName"] for part in watch["KeySchema"]] == ["watch", "check_at"]
    assert watch["Projection"] == {"ProjectionType": "KEYS_ONLY"}


def test_the_index_of_waits_names_them_and_says_nothing_about_them(production: Assembly) -> None:
    """B19: what a distrusted task has waited for is found here, and has to be read itself."""
    waits = indexes_of(production, "waits")["task"]

    assert [part["AttributeName"] for part in waits["KeySchema"]] == ["task", "opened_at"]
    assert waits["Projection"] == {"ProjectionType": "KEYS_ONLY"}


def test_nothing_else_is_listed(production: Assembly) -> None:
    """Every other kind is reached by its key alone."""
    indexed = {kind: set(indexes_of(production, kind)) for kind in TABLES}

    assert indexed == {kind: set() for kind in TABLES} | {"heads": {"queue", "watch"}, "waits": {"task"}}


@pytest.mark.parametrize("what", BUCKETS)
def test_a_bucket_is_versioned_private_and_speaks_tls_only(production: Assembly, what: str) -> None:
    """Evidence, artifacts and the log of their readers are closed to everyone who is not granted them."""
    name, resource = bucket(production, what)
    properties = resource["Properties"]
    [policy] = [
        found["Properties"]["PolicyDocument"]["Statement"]
        for _, found in production.data.of_type("AWS::S3::BucketPolicy")
        if found["Properties"]["Bucket"] == {"Ref": name}
    ]

    assert production.data.text(properties["BucketName"]) == f"holdfast-prod-{what}-<AWS::AccountId>-<AWS::Region>"
    assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
    assert all(properties["PublicAccessBlockConfiguration"].values())
    assert len(properties["PublicAccessBlockConfiguration"]) == 4
    assert any(
        statement["Effect"] == "Deny"
        and statement["Action"] == "s3:*"
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        for statement in policy
    )


@pytest.mark.parametrize("what", ["evidence", "artifacts"])
def test_reads_of_a_bucket_are_encrypted_and_logged(production: Assembly, what: str) -> None:
    """Objects are under our own key, and who read them is on record."""
    _, resource = bucket(production, what)
    [rule] = resource["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"]

    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    assert rule["BucketKeyEnabled"] is True
    assert resource["Properties"]["LoggingConfiguration"]["DestinationBucketName"] == {
        "Ref": bucket(production, "logs")[0]
    }


def test_transcript_is_dropped_early_and_evidence_never_by_itself(production: Assembly) -> None:
    """O6: windows and residue expire; an evidence object that a decision cites does not."""
    _, artifacts = bucket(production, "artifacts")
    _, evidence = bucket(production, "evidence")

    def expiring(resource: Resource) -> set[str]:
        rules = resource["Properties"]["LifecycleConfiguration"]["Rules"]
        return {rule.get("Prefix", "everything") for rule in rules if "ExpirationInDays" in rule}

    assert expiring(artifacts) == {"windows/", "residue/"}
    assert expiring(evidence) == set()


def test_the_two_keys(production: Assembly) -> None:
    """The seal key can only make and check MACs; the data key is rotated by itself."""
    seal = production.data.resources["KeysSeal44E72624"]["Properties"]
    data = production.data.resources["KeysDataA2F7C5E6"]["Properties"]

    assert (seal["KeySpec"], seal["KeyUsage"]) == ("HMAC_256", "GENERATE_VERIFY_MAC")
    assert data["EnableKeyRotation"] is True


def test_what_has_no_name_is_published(production: Assembly) -> None:
    """The engine finds keys and stream under these parameters, and only under these."""
    published = {
        found["Properties"]["Name"]: production.data.text(found["Properties"]["Value"])
        for _, found in production.data.of_type("AWS::SSM::Parameter")
    }

    assert published == {
        "/holdfast/prod/seal_key_arn": "<KeysSeal44E72624.Arn>",
        "/holdfast/prod/data_key_arn": "<KeysDataA2F7C5E6.Arn>",
        "/holdfast/prod/outbox_stream_arn": "<RecordsOutboxA7E42197.StreamArn>",
    }
