"""Find live tasks without a next event, and give them one."""

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from stacks.acknowledge import acknowledge_wildcard
from stacks.python_function import Workshop, python_function
from stacks.records import WATCH
from stacks.references import DataReferences, allow

# A stranded task is found within this time; sooner would look at thousands of healthy ones for nothing.
SWEEP_EVERY = Duration.minutes(5)


class RecoverFunction(Construct):
    """The function behind the end of an execution, and behind the sweep.

    May: list what is due, verify and commit a task, ask how an execution stands, put stuck messages before the stream.
    May not: start or answer an execution, call a tool or a model, see a task token, guess an outcome.
    """

    def __init__(self, scope: Construct, *, workshop: Workshop, data: DataReferences) -> None:
        super().__init__(scope, "Recover")
        tables = data.tables
        self.function = python_function(
            self,
            "recover",
            workshop=workshop,
            does="Find live tasks without a next event and give them one",
            # Sixteen shards of at most 25 tasks, and a hundred messages; a task takes some 30 ms.
            timeout=Duration.seconds(120),
            memory_mb=512,
            settings={
                **data.table_settings("heads", "checkpoints", "waits", "actions", "inbox", "outbox"),
                "SEAL_KEY_ID": data.seal_key.arn,
            },
        )
        self._machines: dict[str, str] = {}
        get = ("dynamodb:GetItem", "dynamodb:BatchGetItem")
        put, update = "dynamodb:PutItem", "dynamodb:UpdateItem"
        # Marking a record that cannot be trusted updates the head it was found under.
        tables["heads"].grant(self.function, *get, put, update)
        tables["heads"].grant_index(self.function, WATCH)
        tables["checkpoints"].grant(self.function, *get, put)
        tables["waits"].grant(self.function, "dynamodb:GetItem", put, update)
        tables["actions"].grant(self.function, put)
        tables["outbox"].grant(self.function, "dynamodb:Scan", put, update)
        data.seal_key.grant(self.function, "kms:GenerateMac", "kms:VerifyMac")
        target = targets.LambdaFunction(self.function, retry_attempts=10, max_event_age=Duration.hours(1))
        events.Rule(
            self,
            "Sweep",
            rule_name=workshop.stage.named("sweep"),
            description="Look for tasks without a next event",
            schedule=events.Schedule.rate(SWEEP_EVERY),
            targets=[target],
        )
        self._target, self._stage = target, workshop.stage

    def watch_machines(self, machine_arns: dict[str, str]) -> None:
        """Be called when an execution of one of these machines ends without an answer, and let it ask about them."""
        events.Rule(
            self,
            "ExecutionEnded",
            rule_name=self._stage.named("execution-ended"),
            description="An execution failed, timed out or was aborted",
            event_pattern=events.EventPattern(
                source=["aws.states"],
                detail_type=["Step Functions Execution Status Change"],
                detail={
                    "status": ["FAILED", "TIMED_OUT", "ABORTED"],
                    "stateMachineArn": list(machine_arns.values()),
                },
            ),
            targets=[self._target],
        )
        executions = [f"{arn.replace(':stateMachine:', ':execution:', 1)}:*" for arn in machine_arns.values()]
        self._allow_asking(executions)
        self.function.add_environment("STATE_MACHINE_ARNS", self.function.stack.to_json_string(machine_arns))

    def _allow_asking(self, executions: Sequence[str]) -> None:
        for execution in executions:
            allow(self.function, ("states:DescribeExecution",), execution)
            acknowledge_wildcard(
                execution,
                on=self.function.role or self.function,
                because="Executions are named after their task, which is made at run time; the machine is named.",
            )
