"""Log groups: each belongs to one function, machine or door, and ends some day."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.stage import Stage


def own_log_group(scope: Construct, construct_id: str, name: str, *, stage: Stage) -> logs.LogGroup:
    """Make a log group that is kept as long as an incident in this stage is looked into."""
    return logs.LogGroup(
        scope,
        construct_id,
        log_group_name=name,
        # Disposable stages are looked at this week; production is asked about last quarter.
        retention=logs.RetentionDays.TWO_WEEKS if stage.is_disposable else logs.RetentionDays.THREE_MONTHS,
        # Kept when a stack goes, but not after a first deployment that failed: its name would block the second one.
        removal_policy=(RemovalPolicy.DESTROY if stage.is_disposable else RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE),
    )
