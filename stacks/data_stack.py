"""The stack that is deployed once and kept: keys, record tables, buckets, and where to find them."""

from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from stacks.buckets import Buckets
from stacks.keys import Keys
from stacks.record_tables import RecordTables
from stacks.stage import Stage

SEAL_KEY_PARAMETER: Final = "seal_key_arn"
DATA_KEY_PARAMETER: Final = "data_key_arn"
OUTBOX_STREAM_PARAMETER: Final = "outbox_stream_arn"


class DataStack(Stack):
    """Everything whose loss cannot be repaired by deploying again.

    Outside the disposable stages all of it survives the deletion of the stack and refuses to be deleted by hand.
    What has no name that can be worked out (streams and keys) is published as SSM parameters.
    """

    def __init__(self, scope: Construct, *, stage: Stage) -> None:
        super().__init__(
            scope,
            stage.stack("Data"),
            description=f"Holdfast {stage.name}: durable records, evidence and keys",
            termination_protection=not stage.is_disposable,
        )
        self.keys = Keys(self, stage=stage)
        self.tables = RecordTables(self, stage=stage, data_key=self.keys.data)
        self.buckets = Buckets(self, stage=stage, data_key=self.keys.data)
        for name, value in (
            (SEAL_KEY_PARAMETER, self.keys.seal.key_arn),
            (DATA_KEY_PARAMETER, self.keys.data.key_arn),
            (OUTBOX_STREAM_PARAMETER, self.tables.outbox_stream_arn),
        ):
            ssm.StringParameter(
                self,
                "".join(word.capitalize() for word in name.split("_")),
                parameter_name=stage.parameter(name),
                string_value=value,
                description="Read by the Holdfast engine stack when it is deployed",
            )
