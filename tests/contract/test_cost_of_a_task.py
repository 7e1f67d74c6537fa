"""What one approved refund costs, counted as the benchmark counts it. A figure is raised here or nowhere."""

from typing import TYPE_CHECKING

from benchmarks.refund import measure_refund
from local.dynamodb_local import DynamoDbLocal

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# Four commits; a kilobyte more in each version, or one more projected column that every commit changes, is felt here.
WRITE_UNITS_MAX = 57
STORE_CALLS_MAX = 31
# Two write units outside a transaction, four in it.
CHECKPOINT_BYTES_MAX = 2_048


def test_an_approved_refund_costs_no_more_than_it_did(database: DynamoDbLocal, dynamodb: "DynamoDBClient") -> None:
    """From request to closed, with identifiers as long as Cognito's, KMS's and Bedrock's are."""
    cost = measure_refund(database.client(), dynamodb)

    assert cost["write_units"] <= WRITE_UNITS_MAX, cost["write_units_by_table"]
    assert cost["store_calls"] <= STORE_CALLS_MAX, cost["store_calls_by_operation"]
    assert max(cost["checkpoint_bytes"].values()) <= CHECKPOINT_BYTES_MAX, cost["checkpoint_bytes"]
    assert len(cost["checkpoint_bytes"]) == 4
