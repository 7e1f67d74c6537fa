"""A pretend provider of outside effects, deployed only on request, to try Holdfast end to end."""

from typing import Final

from aws_cdk import CfnOutput, Duration, RemovalPolicy, Stack
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from stacks.acknowledge import acknowledge
from stacks.http_api import default_stage
from stacks.log_group import own_log_group
from stacks.outside_provider import SANDBOX_API_KEY_SECRET, SANDBOX_URL_PARAMETER
from stacks.python_function import allow_own_log, pin_runtime
from stacks.references import allow
from stacks.runtime_target import RuntimeTarget, packages
from stacks.stage import Stage

# Faults on order hold an answer for up to 25 s; the gateway itself gives up at 30 s.
ANSWER_SECONDS_MAX: Final = 30


class SandboxStack(Stack):
    """One function, one table, one API key, one address. Everything in it goes when the stack goes."""

    def __init__(self, scope: Construct, *, stage: Stage) -> None:
        super().__init__(
            scope, stage.stack("Sandbox"), description=f"Holdfast {stage.name}: a pretend payments provider"
        )
        self._stage = stage
        self.ledger = dynamodb.Table(
            self,
            "Ledger",
            table_name=stage.named("sandbox-ledger"),
            partition_key=dynamodb.Attribute(name="collection", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="record", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.api_key = self._api_key()
        self.function = self._function()
        url = self._open()
        ssm.StringParameter(
            self,
            "PaymentsUrlParameter",
            parameter_name=stage.parameter(SANDBOX_URL_PARAMETER),
            string_value=url,
            description="Address of the sandbox's payments provider, read by the engine stack when it is deployed",
        )
        CfnOutput(self, "PaymentsUrl", value=url)
        CfnOutput(self, "LedgerUrl", value=f"{url}/refunds")

    def _api_key(self) -> secretsmanager.Secret:
        api_key = secretsmanager.Secret(
            self,
            "ApiKey",
            secret_name=self._stage.named(SANDBOX_API_KEY_SECRET),
            description="API key of the sandbox's payments provider",
            generate_secret_string=secretsmanager.SecretStringGenerator(exclude_punctuation=True, password_length=40),
            removal_policy=RemovalPolicy.DESTROY,
        )
        acknowledge(
            "AwsSolutions-SMG4", on=api_key, because="The key guards pretend money and lives as long as the sandbox."
        )
        return api_key

    def _function(self) -> lambda_.Function:
        stage = self._stage
        target = RuntimeTarget.of(stage.target)
        name = stage.named("sandbox")
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group = own_log_group(self, "Log", f"/aws/lambda/{name}", stage=stage)
        function = lambda_.Function(
            self,
            "Function",
            function_name=name,
            description="A pretend payments provider that remembers what it was asked to do",
            runtime=target.runtime,
            architecture=target.architecture,
            handler="sandbox.handler.handler",
            code=packages("sandbox"),
            role=role,
            timeout=Duration.seconds(ANSWER_SECONDS_MAX),
            memory_size=256,
            log_group=log_group,
            environment={
                "SANDBOX_TABLE": self.ledger.table_name,
                "SANDBOX_SECRET_NAME": stage.named(SANDBOX_API_KEY_SECRET),
            },
        )
        allow(
            function,
            (
                "dynamodb:DeleteItem",
                "dynamodb:GetItem",
                "dynamodb:PutItem",
                "dynamodb:Query",
                "dynamodb:UpdateItem",
            ),
            self.ledger.table_arn,
        )
        allow(function, ("secretsmanager:GetSecretValue",), self.api_key.secret_arn)
        allow_own_log(role, name)
        pin_runtime(function, stage=stage)
        return function

    def _open(self) -> str:
        api = apigateway.HttpApi(
            self,
            "HttpApi",
            api_name=self._stage.named("sandbox"),
            description="A pretend payments provider",
            create_default_stage=False,
        )
        for route in api.add_routes(
            path="/{proxy+}",
            methods=[apigateway.HttpMethod.ANY],
            integration=integrations.HttpLambdaIntegration("Provider", self.function),
        ):
            acknowledge(
                "AwsSolutions-APIG4",
                on=route,
                because="The provider checks its own API key, as an outside system would; it holds pretend money only.",
            )
        default_stage(self, api, stage=self._stage, log_name=self._stage.named("sandbox"))
        return api.api_endpoint
