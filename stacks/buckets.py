"""Buckets: outside words as evidence, the engine's own artifacts, and the log of who read them."""

from typing import Final

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from stacks.stage import Stage

# Windows and residue are model transcript: kept while an incident is likely to be looked into, then gone.
TRANSCRIPT_KEPT: Final = Duration.days(90)

# A replaced or deleted object stays readable by version this long, so that a mistake can be undone.
OLD_VERSIONS_KEPT: Final = Duration.days(30)

# Access logs answer "who read this evidence" for a year of audits.
ACCESS_LOGS_KEPT: Final = Duration.days(365)

WINDOWS_PREFIX: Final = "windows/"
RESIDUE_PREFIX: Final = "residue/"


class Buckets(Construct):
    """Versioned, TLS only, closed to the public, encrypted with our own key, reads logged."""

    def __init__(self, scope: Construct, *, stage: Stage, data_key: kms.IKey) -> None:
        super().__init__(scope, "Buckets")
        self._stage = stage
        self._data_key = data_key
        self.logs = self._logs()
        # Evidence versions never expire by themselves: decisions cite them by version for as long as they are kept.
        self.evidence = self._bucket("Evidence", "evidence", rules=[])
        self.artifacts = self._bucket(
            "Artifacts",
            "artifacts",
            rules=[
                s3.LifecycleRule(
                    id=f"expire-{prefix.strip('/')}",
                    prefix=prefix,
                    expiration=TRANSCRIPT_KEPT,
                    noncurrent_version_expiration=OLD_VERSIONS_KEPT,
                )
                for prefix in (WINDOWS_PREFIX, RESIDUE_PREFIX)
            ],
        )

    @property
    def _removal(self) -> RemovalPolicy:
        return RemovalPolicy.DESTROY if self._stage.is_disposable else RemovalPolicy.RETAIN

    def _name(self, what: str) -> str:
        return self._stage.bucket(what, account=Aws.ACCOUNT_ID, region=Aws.REGION)

    def _logs(self) -> s3.Bucket:
        return s3.Bucket(
            self,
            "Logs",
            bucket_name=self._name("logs"),
            # The log delivery service can write only to buckets encrypted with S3's own key.
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            versioned=True,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="expire-access-logs",
                    expiration=ACCESS_LOGS_KEPT,
                    noncurrent_version_expiration=OLD_VERSIONS_KEPT,
                )
            ],
            removal_policy=self._removal,
            auto_delete_objects=self._stage.empties_buckets,
        )

    def _bucket(self, construct_id: str, what: str, *, rules: list[s3.LifecycleRule]) -> s3.Bucket:
        return s3.Bucket(
            self,
            construct_id,
            bucket_name=self._name(what),
            encryption=s3.BucketEncryption.KMS,
            encryption_key=self._data_key,
            bucket_key_enabled=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            versioned=True,
            server_access_logs_bucket=self.logs,
            server_access_logs_prefix=f"{what}/",
            lifecycle_rules=[
                *rules,
                s3.LifecycleRule(
                    id="abort-unfinished-uploads", abort_incomplete_multipart_upload_after=Duration.days(1)
                ),
            ],
            removal_policy=self._removal,
            auto_delete_objects=self._stage.empties_buckets,
        )
