"""One Standard state machine per workflow, so that operators have a list, alarms and permissions per kind of task."""

import json
from dataclasses import dataclass

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from stacks.acknowledge import acknowledge_wildcard
from stacks.alarms import ALARM_PERIOD
from stacks.log_group import own_log_group
from stacks.python_function import Workshop
from stacks.task_graph import task_graph


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFunctions:
    """The functions behind the states."""

    wake: lambda_.Function
    propose: lambda_.Function
    open_wait: lambda_.Function
    perform: lambda_.Function


class TaskMachine(Construct):
    """A machine that may invoke its four functions and write its log, and nothing else."""

    def __init__(self, scope: Construct, *, workflow: str, functions: MachineFunctions, workshop: Workshop) -> None:
        super().__init__(scope, "Machine")
        stage = workshop.stage
        self.name = stage.named(workflow)
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("states.amazonaws.com"),
            description=f"Holdfast {stage.name}: executions of {workflow}",
        )
        invoked = {
            "WakeArn": functions.wake.function_arn,
            "ProposeArn": functions.propose.function_arn,
            "OpenWaitArn": functions.open_wait.function_arn,
            "PerformArn": functions.perform.function_arn,
        }
        role.add_to_policy(iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=list(invoked.values())))
        self.machine = stepfunctions.StateMachine(
            self,
            "StateMachine",
            state_machine_name=self.name,
            state_machine_type=stepfunctions.StateMachineType.STANDARD,
            comment=f"Holdfast tasks of {workflow}",
            definition_body=stepfunctions.DefinitionBody.from_string(json.dumps(task_graph(workflow))),
            definition_substitutions={"Partition": Aws.PARTITION, **invoked},
            role=role,
            tracing_enabled=True,
            logs=stepfunctions.LogOptions(
                destination=own_log_group(self, "Log", f"/aws/vendedlogs/states/{self.name}", stage=stage),
                level=stepfunctions.LogLevel.ALL,
                # Documents hold identifiers only, and in production not even those belong into a log.
                include_execution_data=stage.is_disposable,
            ),
        )
        acknowledge_wildcard(
            "*", on=role, because="Log delivery and X-Ray accept no narrower resource; functions are named one by one."
        )
        self._watch(workflow, workshop)

    @property
    def arn(self) -> str:
        """The machine's ARN, worked out from its name: its functions are made before it and may not depend on it."""
        return f"arn:{Aws.PARTITION}:states:{Aws.REGION}:{Aws.ACCOUNT_ID}:stateMachine:{self.name}"

    def _watch(self, workflow: str, workshop: Workshop) -> None:
        workshop.alarms.raise_when(
            f"{workflow}-executions-failed",
            self.machine.metric_failed(period=ALARM_PERIOD, statistic="Sum"),
            at_least=1,
            because=f"Executions of {workflow} failed. Failed and Expired are endings; Wake failed is not: recover.",
        )
        workshop.alarms.raise_when(
            f"{workflow}-executions-timed-out",
            self.machine.metric_timed_out(period=ALARM_PERIOD, statistic="Sum"),
            at_least=1,
            because=f"Executions of {workflow} reached the limit of a year. Their tasks are intact; look at them.",
        )
