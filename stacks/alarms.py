"""Alarms for operators, each raised by the construct that knows what it means."""

from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from stacks.stage import Stage

# Short enough that people hear of it while they still remember what they did.
ALARM_PERIOD: Final = Duration.minutes(5)


class Alarms(Construct):
    """A topic that people subscribe to, and the only way to make an alarm that reaches it."""

    def __init__(self, scope: Construct, *, stage: Stage) -> None:
        super().__init__(scope, "Alarms")
        self._stage = stage
        self.topic = sns.Topic(
            self,
            "Operators",
            topic_name=stage.named("alarms"),
            display_name=f"Holdfast {stage.name} alarms",
            enforce_ssl=True,
        )
        # The policy that enforces TLS replaces the topic's own default, so alarms have to be let in by name.
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsOfThisAccount",
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            )
        )

    def raise_when(
        self, name: str, metric: cloudwatch.IMetric, *, at_least: float, because: str, periods: int = 1
    ) -> cloudwatch.Alarm:
        """Tell operators when a metric reaches a value.

        Args:
            name: words joined by hyphens, unique in the stage.
            metric: what is watched; no data is no alarm.
            at_least: the first value that alarms.
            because: what the reader of the alarm should understand and do.
            periods: how many of the metric's periods in a row it takes.
        """
        alarm = cloudwatch.Alarm(
            self,
            "".join(word.capitalize() for word in name.replace("_", "-").split("-")),
            alarm_name=self._stage.named(name),
            alarm_description=because,
            metric=metric,
            threshold=at_least,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=periods,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        alarm.add_alarm_action(actions.SnsAction(self.topic))
        return alarm
