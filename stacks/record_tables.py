"""One DynamoDB table per kind of record."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks.records import PURGE_ATTRIBUTE, RECORD_KINDS, TEXT, RecordKind
from stacks.stage import Stage


class RecordTables(Construct):
    """Every table on demand, encrypted with our own key, restorable to any second of the last 35 days."""

    def __init__(self, scope: Construct, *, stage: Stage, data_key: kms.IKey) -> None:
        super().__init__(scope, "Records")
        self.by_kind = {kind.name: self._table(kind, stage=stage, data_key=data_key) for kind in RECORD_KINDS}

    @property
    def outbox_stream_arn(self) -> str:
        """Stream of committed messages, which `deliver` drains."""
        stream_arn = self.by_kind["outbox"].table_stream_arn
        if stream_arn is None:
            raise RuntimeError("the outbox has no stream: nothing it stages would ever be delivered")
        return stream_arn

    def _table(self, kind: RecordKind, *, stage: Stage, data_key: kms.IKey) -> dynamodb.Table:
        table = dynamodb.Table(
            self,
            kind.construct_id,
            table_name=stage.named(kind.name),
            partition_key=dynamodb.Attribute(name=kind.partition, type=TEXT),
            sort_key=dynamodb.Attribute(name=kind.sort.name, type=kind.sort.kind) if kind.sort else None,
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED,
            encryption_key=data_key,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_attribute=PURGE_ATTRIBUTE if kind.is_purged else None,
            stream=dynamodb.StreamViewType.NEW_IMAGE if kind.has_stream else None,
            deletion_protection=not stage.is_disposable,
            removal_policy=RemovalPolicy.DESTROY if stage.is_disposable else RemovalPolicy.RETAIN,
        )
        for index in kind.indexes:
            table.add_global_secondary_index(
                index_name=index.name,
                partition_key=dynamodb.Attribute(name=index.partition, type=TEXT),
                sort_key=dynamodb.Attribute(name=index.sort, type=TEXT),
                projection_type=dynamodb.ProjectionType.INCLUDE if index.shows else dynamodb.ProjectionType.KEYS_ONLY,
                non_key_attributes=list(index.shows) or None,
            )
        return table
