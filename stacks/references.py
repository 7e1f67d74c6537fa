"""How the engine speaks of the data stack's resources: by name, with grants that list their actions.

A grant gives a function exactly the actions written at the call and the use of the data key that the service
needs to answer them, and that only through the service.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from stacks.data_stack import DATA_KEY_PARAMETER, OUTBOX_STREAM_PARAMETER, SEAL_KEY_PARAMETER
from stacks.records import RECORD_KINDS, Index
from stacks.stage import Stage

# What a service asks of the key on behalf of whoever reads, and of whoever writes.
KEY_USE_TO_READ: Final = ("kms:Decrypt", "kms:DescribeKey")
KEY_USE_TO_WRITE: Final = (
    *KEY_USE_TO_READ,
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
READING_ACTIONS: Final = frozenset(
    {
        "dynamodb:BatchGetItem",
        "dynamodb:DescribeStream",
        "dynamodb:GetItem",
        "dynamodb:GetRecords",
        "dynamodb:GetShardIterator",
        "dynamodb:Query",
        "s3:GetObject",
        "s3:GetObjectVersion",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SealKey:
    """The HMAC key of the checkpoint seals."""

    arn: str

    def grant(self, function: lambda_.Function, *actions: str) -> None:
        """Allow exactly these MAC operations with this key."""
        allow(function, actions, self.arn)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataKey:
    """The key that encrypts records and objects; usable only through the service that holds them."""

    arn: str

    def allow_use(self, function: lambda_.Function, actions: tuple[str, ...], *, through: str) -> None:
        """Let a service use the key in this function's name, as far as those actions on its data need it."""
        reads_only = READING_ACTIONS.issuperset(actions)
        allow(
            function,
            KEY_USE_TO_READ if reads_only else KEY_USE_TO_WRITE,
            self.arn,
            conditions={"StringEquals": {"kms:ViaService": f"{through}.{Aws.REGION}.{Aws.URL_SUFFIX}"}},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A record table of the data stack."""

    name: str
    arn: str
    data_key: DataKey

    def grant(self, function: lambda_.Function, *actions: str) -> None:
        """Allow exactly these actions on the table's own items, not on its indexes."""
        allow(function, actions, self.arn)
        self.data_key.allow_use(function, actions, through="dynamodb")

    def grant_index(self, function: lambda_.Function, index: Index) -> None:
        """Allow to query one index, and only that."""
        allow(function, ("dynamodb:Query",), f"{self.arn}/index/{index.name}")
        self.data_key.allow_use(function, ("dynamodb:Query",), through="dynamodb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A bucket of the data stack."""

    name: str
    arn: str
    data_key: DataKey

    def grant(self, function: lambda_.Function, *actions: str, under: str = "") -> None:
        """Allow exactly these actions on the objects below a prefix; listing is not among them."""
        allow(function, actions, f"{self.arn}/{under}*")
        self.data_key.allow_use(function, actions, through="s3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbox:
    """The outbox's stream of committed messages."""

    stream_arn: str
    data_key: DataKey

    def grant_reading(self, function: lambda_.Function) -> None:
        """Allow what an event source mapping needs to follow the stream."""
        actions = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator")
        allow(function, actions, self.stream_arn)
        # Lists streams by table and accepts no resource.
        allow(function, ("dynamodb:ListStreams",), "*")
        self.data_key.allow_use(function, actions, through="dynamodb")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataReferences:
    """All of the data stack that the engine may speak of."""

    tables: Mapping[str, Table]
    evidence: Bucket
    artifacts: Bucket
    seal_key: SealKey
    outbox: Outbox

    @classmethod
    def of(cls, scope: Construct, stage: Stage) -> "DataReferences":
        """Work out names from the stage; keys and stream come from SSM when the engine is deployed."""

        def published(name: str) -> str:
            return ssm.StringParameter.value_for_string_parameter(scope, stage.parameter(name))

        data_key = DataKey(arn=published(DATA_KEY_PARAMETER))
        return cls(
            tables={kind.name: _table(stage.named(kind.name), data_key) for kind in RECORD_KINDS},
            evidence=_bucket(stage, "evidence", data_key),
            artifacts=_bucket(stage, "artifacts", data_key),
            seal_key=SealKey(arn=published(SEAL_KEY_PARAMETER)),
            outbox=Outbox(stream_arn=published(OUTBOX_STREAM_PARAMETER), data_key=data_key),
        )

    def table_settings(self, *kinds: str) -> dict[str, str]:
        """Environment variables that name the tables of these kinds."""
        return {kind.setting: self.tables[kind.name].name for kind in RECORD_KINDS if kind.name in kinds}


def allow(
    function: lambda_.Function,
    actions: tuple[str, ...],
    *resources: str,
    conditions: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Add one statement to a function's own policy, with nothing implied."""
    function.add_to_role_policy(
        iam.PolicyStatement(actions=list(actions), resources=list(resources), conditions=dict(conditions or {}))
    )


def _table(name: str, data_key: DataKey) -> Table:
    arn = f"arn:{Aws.PARTITION}:dynamodb:{Aws.REGION}:{Aws.ACCOUNT_ID}:table/{name}"
    return Table(name=name, arn=arn, data_key=data_key)


def _bucket(stage: Stage, what: str, data_key: DataKey) -> Bucket:
    name = stage.bucket(what, account=Aws.ACCOUNT_ID, region=Aws.REGION)
    return Bucket(name=name, arn=f"arn:{Aws.PARTITION}:s3:::{name}", data_key=data_key)
