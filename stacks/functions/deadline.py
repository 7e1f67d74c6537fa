"""Act on a wait's ladder when its timer goes off."""

from aws_cdk import Aws, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from stacks.acknowledge import acknowledge_wildcard
from stacks.python_function import Workshop, python_function
from stacks.references import DataReferences, allow


class DeadlineFunction(Construct):
    """The function behind every wait's timer, and the group that the timers live in.

    May: read a wait, verify and commit its task: a reminder, an escalation, the end of exactly that wait.
    May not: decide an approval, call a tool or a model, see a task token, write an action of the ledger anew.
    """

    def __init__(self, scope: Construct, *, workshop: Workshop, data: DataReferences) -> None:
        super().__init__(scope, "Deadline")
        stage, tables = workshop.stage, data.tables
        self.function = python_function(
            self,
            "deadline",
            workshop=workshop,
            does="Remind, escalate or end a wait whose timer went off",
            timeout=Duration.seconds(20),
            memory_mb=512,
            settings={
                **data.table_settings("heads", "checkpoints", "waits", "actions", "inbox", "outbox"),
                "SEAL_KEY_ID": data.seal_key.arn,
            },
        )
        get = ("dynamodb:GetItem", "dynamodb:BatchGetItem")
        put, update = "dynamodb:PutItem", "dynamodb:UpdateItem"
        tables["heads"].grant(self.function, *get, put)
        tables["checkpoints"].grant(self.function, *get, put)
        tables["waits"].grant(self.function, "dynamodb:GetItem", put, update)
        tables["actions"].grant(self.function, put)
        tables["outbox"].grant(self.function, put)
        data.seal_key.grant(self.function, "kms:GenerateMac", "kms:VerifyMac")
        self.group = scheduler.CfnScheduleGroup(self, "Timers", name=stage.named("deadlines"))
        self.role = iam.Role(
            self,
            "TimerRole",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
            ),
            description=f"Holdfast {stage.name}: timers of waits",
        )
        self.role.add_to_policy(
            iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[self.function.function_arn])
        )

    def allow_arming(self, function: lambda_.Function) -> None:
        """Let a function set and remove timers of this group, with this target and no other."""
        group = str(self.group.name)
        schedules = f"arn:{Aws.PARTITION}:scheduler:{Aws.REGION}:{Aws.ACCOUNT_ID}:schedule/{group}/wai_*"
        allow(function, ("scheduler:CreateSchedule", "scheduler:UpdateSchedule", "scheduler:DeleteSchedule"), schedules)
        acknowledge_wildcard(
            schedules,
            on=function.role or function,
            because="A timer is named after its wait, which is made at run time; the group is ours.",
        )
        function.add_to_role_policy(
            iam.PolicyStatement(
                actions=["iam:PassRole"],
                resources=[self.role.role_arn],
                conditions={"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}},
            )
        )
        function.add_environment("SCHEDULE_GROUP", group)
        function.add_environment("DEADLINE_FUNCTION_ARN", self.function.function_arn)
        function.add_environment("SCHEDULE_ROLE_ARN", self.role.role_arn)
