"""Telling people that something waits for them: rules on the event bus, a topic, and a place for what it did not take.

A notice says what waits and where to log in. It never holds a link that decides anything, or a token: whoever reads
somebody else's mail can do nothing with it.
"""

import re
from collections.abc import Mapping
from string import Formatter
from typing import Final

from aws_cdk import Aws, Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from shared.domain.events import EVENTS, Envelope
from stacks.acknowledge import acknowledge
from stacks.alarms import ALARM_PERIOD, Alarms
from stacks.stage import Stage

# What is said about which event. A word in brackets is a field of the event: an identifier or a controlled word.
NOTICES: Final[Mapping[str, str]] = {
    "approval.requested": (
        "An approval by {role} is needed for version {request_version} of task {task_id} ({workflow}) of {tenant}."
    ),
    "input.requested": "A question to {role} is open: {wait} of task {task_id} ({workflow}) of {tenant}.",
    "wait.reminded": "Reminder for {to}: {wait} of task {task_id} ({workflow}) of {tenant} is still open.",
    "task.escalated": "Now with {to}: {wait} of task {task_id} ({workflow}) of {tenant} is still open.",
    "task.needs_review": "Task {task_id} ({workflow}) of {tenant} will not go on until an operator has looked at it.",
    "task.quarantined": "Task {task_id} of {tenant} is quarantined: its stored record is not trusted.",
    "task.closed": "Task {task_id} ({workflow}) of {tenant} has ended: {status}.",
}

# The address of a page to log in at; a place for the task's id may be left in it.
CONSOLE_URL: Final = re.compile(
    r"https://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~%/?=&#-]*(\{task_id\}[A-Za-z0-9._~%/?=&#-]*)?)?"
)

# A notice that is older is news for nobody: reminders come with the hours, and the queue always shows what waits.
NOTICE_AGE_MAX: Final = Duration.hours(1)
NOTICE_ATTEMPTS_MAX: Final = 10


class Notifications(Construct):
    """A topic that people subscribe to. A team adds targets of its own to a rule, or rules of its own to the bus."""

    def __init__(self, scope: Construct, *, stage: Stage, event_bus: events.IEventBus, alarms: Alarms) -> None:
        super().__init__(scope, "Notifications")
        self.topic = sns.Topic(
            self,
            "Notices",
            topic_name=stage.named("notices"),
            display_name=f"Holdfast {stage.name}",
            enforce_ssl=True,
        )
        self.undelivered = self._undelivered(stage)
        self.role = self._role(stage)
        console_url = self._console_url()
        self.rules = {
            name: self._rule(name, sentence, stage=stage, event_bus=event_bus, console_url=console_url)
            for name, sentence in NOTICES.items()
        }
        self._watch(alarms)

    def add_target(self, event: str, target: events.IRuleTarget) -> None:
        """Send an event to somebody else as well.

        Raises:
            KeyError: nobody is told about such an event; make a rule on the bus.
        """
        self.rules[event].add_target(target)

    def _rule(
        self, name: str, sentence: str, *, stage: Stage, event_bus: events.IEventBus, console_url: str | None
    ) -> events.Rule:
        words = name.replace(".", "-").replace("_", "-")
        told = sentence if console_url is None else f"{sentence} Log in at {console_url}"
        rule = events.Rule(
            self,
            "".join(word.capitalize() for word in words.split("-")),
            rule_name=stage.named(f"notify-{words}"),
            description=f"Tell people: {name}",
            event_bus=event_bus,
            event_pattern=events.EventPattern(source=["holdfast"], detail_type=[name]),
        )
        rule.add_target(
            targets.SnsTopic(
                self.topic,
                role=self.role,
                message=events.RuleTargetInput.from_text(_filled_in(name, told)),
                dead_letter_queue=self.undelivered,
                retry_attempts=NOTICE_ATTEMPTS_MAX,
                max_event_age=NOTICE_AGE_MAX,
            )
        )
        return rule

    def _role(self, stage: Stage) -> iam.Role:
        """The rules speak as this role. A topic that let the service in by name would take notices of any account's."""
        return iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "events.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
            ),
            description=f"Holdfast {stage.name}: notices",
        )

    def _undelivered(self, stage: Stage) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            "Undelivered",
            queue_name=stage.named("notices-dead-letters"),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
        )
        acknowledge("AwsSolutions-SQS3", on=queue, because="This is the dead-letter queue, of the notices' rules.")
        return queue

    def _console_url(self) -> str | None:
        configured = self.node.try_get_context("console_url")
        if not configured:
            return None
        if not CONSOLE_URL.fullmatch(str(configured)):
            raise ValueError("console_url has to be an https address, with {task_id} in it or without")
        return str(configured)

    def _watch(self, alarms: Alarms) -> None:
        alarms.raise_when(
            "notices-dead-letters",
            self.undelivered.metric_approximate_number_of_messages_visible(period=ALARM_PERIOD),
            at_least=1,
            because="Notices did not reach their topic. The tasks wait as before; people have to look at the queue.",
        )
        alarms.raise_when(
            "notices-failed",
            self.topic.metric_number_of_notifications_failed(period=ALARM_PERIOD),
            at_least=1,
            because="Notices did not reach a subscriber of their topic: an address is wrong, or its owner is away.",
        )


def _filled_in(event: str, sentence: str) -> str:
    """Put the event's fields in the places of their names.

    Raises:
        ValueError: the event has no such field; nothing is synthesised.
    """
    parts = []
    for text, field, _, _ in Formatter().parse(sentence):
        parts.append(text)
        if field is None:
            continue
        if field in Envelope.model_fields:
            parts.append(events.EventField.from_path(f"$.detail.{field}"))
        elif field in EVENTS[event].model_fields:
            parts.append(events.EventField.from_path(f"$.detail.detail.{field}"))
        else:
            raise ValueError(f"{event} has no {field}")
    return "".join(parts)
