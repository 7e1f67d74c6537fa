"""The stack that may be thrown away and built again: functions, machines, doors, alarms. It keeps nothing."""

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from shared.workflows.registry import discover
from stacks.alarms import Alarms
from stacks.functions.api import ApiFunction
from stacks.functions.deadline import DeadlineFunction
from stacks.functions.deliver import DeliverFunction
from stacks.functions.open_wait import OpenWaitFunction
from stacks.functions.perform import PerformFunction
from stacks.functions.propose import ProposeFunction
from stacks.functions.recover import RecoverFunction
from stacks.functions.wake import WakeFunction
from stacks.functions.webhook import WebhookFunction
from stacks.http_api import HttpApi
from stacks.identity import Identity, People
from stacks.model import Model
from stacks.notifications import Notifications
from stacks.python_function import Workshop
from stacks.references import DataReferences
from stacks.retention import require_retention
from stacks.runtime_target import RuntimeTarget, dependency_code, packages
from stacks.stage import Stage
from stacks.workflow import EngineParts
from stacks.workflows import discovered


class EngineStack(Stack):
    """Everything that runs. Deploys alone, as long as the stage's data stack exists in the same account and region."""

    def __init__(self, scope: Construct, *, stage: Stage) -> None:
        super().__init__(
            scope, stage.stack("Engine"), description=f"Holdfast {stage.name}: functions and task machines"
        )
        require_retention(discover().values())
        data = DataReferences.of(self, stage)
        model = Model(model_id=str(self.node.get_context("model_id")))
        workshop = self._workshop(stage)
        identity = self._identity(stage)
        event_bus = events.EventBus(self, "EventBus", event_bus_name=stage.named("events"))
        deadline = DeadlineFunction(self, workshop=workshop, data=data)

        engine = EngineParts(
            workshop=workshop,
            wake=WakeFunction(self, workshop=workshop, data=data, model_id=model.model_id),
            propose=ProposeFunction(self, workshop=workshop, data=data, model=model),
            open_wait=OpenWaitFunction(self, workshop=workshop, data=data),
            perform=PerformFunction(self, workshop=workshop, data=data),
            deliver=DeliverFunction(self, workshop=workshop, data=data, event_bus=event_bus),
        )
        deadline.allow_arming(engine.deliver.function)
        machines = {}
        for workflow in discovered():
            task_machine = workflow(self, engine=engine).task_machine
            machines[workflow.workflow] = task_machine.arn
            CfnOutput(self, f"{workflow.__name__}MachineArn", value=task_machine.machine.state_machine_arn)
        RecoverFunction(self, workshop=workshop, data=data).watch_machines(machines)

        api = ApiFunction(self, workshop=workshop, data=data, identity=identity, model_id=model.model_id)
        webhook = WebhookFunction(self, workshop=workshop, data=data)
        door = HttpApi(
            self,
            stage=stage,
            identity=identity,
            function=api.function,
            webhook=webhook.function,
            alarms=workshop.alarms,
        )
        notifications = Notifications(self, stage=stage, event_bus=event_bus, alarms=workshop.alarms)
        CfnOutput(self, "ApiUrl", value=door.url)
        CfnOutput(self, "ApiId", value=door.api.api_id)
        CfnOutput(self, "EventBusName", value=event_bus.event_bus_name)
        CfnOutput(self, "NoticeTopicArn", value=notifications.topic.topic_arn)
        CfnOutput(self, "AlarmTopicArn", value=workshop.alarms.topic.topic_arn)

    def _workshop(self, stage: Stage) -> Workshop:
        target = RuntimeTarget.of(stage.target)
        dependencies = lambda_.LayerVersion(
            self,
            "Dependencies",
            layer_version_name=stage.named("dependencies"),
            description="Locked third-party packages of the Holdfast functions",
            code=dependency_code(target),
            compatible_runtimes=[target.runtime],
            compatible_architectures=[target.architecture],
        )
        return Workshop(
            stage=stage,
            target=target,
            code=packages("functions", "shared"),
            dependencies=dependencies,
            alarms=Alarms(self, stage=stage),
        )

    def _identity(self, stage: Stage) -> Identity:
        """Use the issuer named in the context, or make a user pool."""
        issuer = self.node.try_get_context("oidc_issuer")
        client_id = self.node.try_get_context("oidc_client_id")
        if bool(issuer) != bool(client_id):
            raise ValueError("oidc_issuer and oidc_client_id go together: give both or neither")
        if issuer:
            return Identity(issuer=str(issuer), client_id=str(client_id))
        people = People(self, stage=stage)
        CfnOutput(self, "UserPoolId", value=people.pool.user_pool_id)
        CfnOutput(self, "UserPoolClientId", value=people.client.user_pool_client_id)
        return people.identity
