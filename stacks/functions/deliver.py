"""Drain the outbox, at least once."""

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.acknowledge import acknowledge, acknowledge_wildcard
from stacks.alarms import ALARM_PERIOD
from stacks.python_function import Workshop, attention, python_function
from stacks.references import DataReferences, allow

# A message is tried this often before it is set aside: an hour of backoff outlasts an ordinary outage of a neighbour.
DELIVERY_ATTEMPTS_MAX: Final = 10
MESSAGE_AGE_MAX: Final = Duration.hours(1)

# One shard's messages in one call; more would only make a failed call repeat more.
BATCH_MAX: Final = 10

# Older than this, messages are late for people who wait on them.
ITERATOR_AGE_ALARM_MS: Final = 60_000


class DeliverFunction(Construct):
    """The function on the outbox's stream.

    May: start executions, answer task tokens, publish events, delete what it has delivered.
    May not: write any business record, write a token, call a tool or a model.
    """

    def __init__(
        self, scope: Construct, *, workshop: Workshop, data: DataReferences, event_bus: events.EventBus
    ) -> None:
        super().__init__(scope, "Deliver")
        self._machines: dict[str, str] = {}
        self.function = python_function(
            self,
            "deliver",
            workshop=workshop,
            does="Deliver the messages of the outbox: executions, answers, events",
            timeout=Duration.seconds(30),
            memory_mb=512,
            settings={**data.table_settings("outbox", "tokens", "waits"), "EVENT_BUS": event_bus.event_bus_name},
        )
        data.tables["outbox"].grant(self.function, "dynamodb:GetItem", "dynamodb:DeleteItem")
        data.tables["tokens"].grant(self.function, "dynamodb:GetItem")
        # A prompt goes out only while its wait is open.
        data.tables["waits"].grant(self.function, "dynamodb:GetItem")
        data.outbox.grant_reading(self.function)
        acknowledge_wildcard("*", on=self, because="Streams can be listed on no narrower resource.")
        allow(self.function, ("events:PutEvents",), event_bus.event_bus_arn)
        self.dead_letters = self._dead_letters(workshop)
        allow(self.function, ("sqs:SendMessage",), self.dead_letters.queue_arn)
        self._follow(data.outbox.stream_arn)
        self._watch(workshop)

    def allow_machine(self, workflow: str, machine_arn: str) -> None:
        """Let it start and answer executions of one workflow's machine."""
        self._machines[workflow] = machine_arn
        allow(self.function, ("states:StartExecution", "states:SendTaskSuccess"), machine_arn)
        self.function.add_environment("STATE_MACHINE_ARNS", self.function.stack.to_json_string(self._machines))

    def _dead_letters(self, workshop: Workshop) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=workshop.stage.named("deliver-dead-letters"),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            # The longest SQS keeps anything: time for people to come back from a holiday. The rows stay in the outbox.
            retention_period=Duration.days(14),
        )
        acknowledge(
            "AwsSolutions-SQS3", on=queue, because="This is the dead-letter queue, of the stream's event source."
        )
        return queue

    def _follow(self, stream_arn: str) -> None:
        lambda_.CfnEventSourceMapping(
            self,
            "OutboxStream",
            event_source_arn=stream_arn,
            function_name=self.function.function_arn,
            starting_position="TRIM_HORIZON",
            batch_size=BATCH_MAX,
            parallelization_factor=1,
            bisect_batch_on_function_error=True,
            function_response_types=["ReportBatchItemFailures"],
            maximum_retry_attempts=DELIVERY_ATTEMPTS_MAX,
            maximum_record_age_in_seconds=int(MESSAGE_AGE_MAX.to_seconds()),
            # Delivered rows are deleted; their removal is no message.
            filter_criteria=lambda_.CfnEventSourceMapping.FilterCriteriaProperty(
                # Only the sweep modifies a row, to put it before the stream again; a removal means delivery.
                filters=[lambda_.CfnEventSourceMapping.FilterProperty(pattern='{"eventName":["INSERT","MODIFY"]}')]
            ),
            destination_config=lambda_.CfnEventSourceMapping.DestinationConfigProperty(
                on_failure=lambda_.CfnEventSourceMapping.OnFailureProperty(destination=self.dead_letters.queue_arn)
            ),
        ).node.add_dependency(self.function)

    def _watch(self, workshop: Workshop) -> None:
        workshop.alarms.raise_when(
            "deliver-dead-letters",
            self.dead_letters.metric_approximate_number_of_messages_visible(period=ALARM_PERIOD),
            at_least=1,
            because="Messages could not be delivered. Their rows are still in the outbox; redrive them from there.",
        )
        workshop.alarms.raise_when(
            "deliver-lag",
            self.function.metric("IteratorAge", statistic="Maximum", period=ALARM_PERIOD),
            at_least=ITERATOR_AGE_ALARM_MS,
            because="The outbox is drained more than a minute late: executions start and waits resume late.",
        )
        workshop.alarms.raise_when(
            "deliver-needs-attention",
            attention("deliver", period=ALARM_PERIOD),
            at_least=1,
            because=(
                "A timer was refused for good: that wait goes by the sweep alone, some minutes late; or an "
                "answered wait had no token. Deliver's log says which wait and why."
            ),
        )
