"""Logical ids of everything that holds something: a changed id is a deleted resource and an empty new one."""

import pytest

from tests.infrastructure.synthesis import Assembly

HOLDS_SOMETHING = {
    "AWS::Cognito::UserPool",
    "AWS::Cognito::UserPoolClient",
    "AWS::DynamoDB::GlobalTable",
    "AWS::DynamoDB::Table",
    "AWS::KMS::Alias",
    "AWS::KMS::Key",
    "AWS::S3::Bucket",
    "AWS::SSM::Parameter",
    "AWS::SecretsManager::Secret",
}

# Never edit a line to make the test pass. If an id has to change, move the data first and say how in the changelog.
PINNED = {
    "Data": {
        "KeysSeal44E72624": "AWS::KMS::Key",
        "KeysSealAlias6A141487": "AWS::KMS::Alias",
        "KeysDataA2F7C5E6": "AWS::KMS::Key",
        "KeysDataAlias6A8CADEB": "AWS::KMS::Alias",
        "RecordsHeadsCBA0A7BA": "AWS::DynamoDB::Table",
        "RecordsCheckpoints0A0BF4C9": "AWS::DynamoDB::Table",
        "RecordsWaitsECBD8D96": "AWS::DynamoDB::Table",
        "RecordsTokensF76860FF": "AWS::DynamoDB::Table",
        "RecordsActions2A6E2B77": "AWS::DynamoDB::Table",
        "RecordsInboxAD4C2AE5": "AWS::DynamoDB::Table",
        "RecordsOutboxA7E42197": "AWS::DynamoDB::Table",
        "RecordsLeases19671EA9": "AWS::DynamoDB::Table",
        "RecordsMemory1E773150": "AWS::DynamoDB::Table",
        "RecordsAuthority5B02ABF8": "AWS::DynamoDB::Table",
        "BucketsLogsF3E46FAF": "AWS::S3::Bucket",
        "BucketsEvidenceA42FFF81": "AWS::S3::Bucket",
        "BucketsArtifactsB9EE6400": "AWS::S3::Bucket",
        "SealKeyArn645F7759": "AWS::SSM::Parameter",
        "DataKeyArnFA826E80": "AWS::SSM::Parameter",
        "OutboxStreamArnF8D31D0B": "AWS::SSM::Parameter",
    },
    "Engine": {
        "PeoplePoolC64A4D1E": "AWS::Cognito::UserPool",
        "PeoplePoolClientECD71F90": "AWS::Cognito::UserPoolClient",
    },
}


@pytest.mark.parametrize("part", PINNED)
@pytest.mark.parametrize("stage", ["production", "disposable", "local"])
def test_stateful_logical_ids_are_pinned(part: str, stage: str, request: pytest.FixtureRequest) -> None:
    """No refactoring of the constructs may replace what holds data; the ids are the same in every stage."""
    assembly: Assembly = request.getfixturevalue(stage)
    found = {
        name: resource["Type"]
        for name, resource in assembly.templates[part].resources.items()
        if resource["Type"] in HOLDS_SOMETHING
    }

    assert found == PINNED[part]
