"""The doors: an HTTP API that lets people in with a valid token, and outside systems with a signature."""

import json
from collections.abc import Sequence
from typing import Final

from aws_cdk import Aws
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.acknowledge import acknowledge
from stacks.alarms import ALARM_PERIOD, Alarms
from stacks.identity import Identity
from stacks.log_group import own_log_group
from stacks.stage import Stage

GET: Final = apigateway.HttpMethod.GET
POST: Final = apigateway.HttpMethod.POST
PATCH: Final = apigateway.HttpMethod.PATCH

# What people may ask for. Nothing else reaches the function.
ROUTES: Final = (
    ("/tasks", (POST, GET)),
    ("/tasks/{task_id}", (GET, PATCH)),
    ("/tasks/{task_id}/approvals/{approval_id}", (GET,)),
    ("/tasks/{task_id}/approvals/{approval_id}/decision", (POST,)),
    ("/tasks/{task_id}/cancel", (POST,)),
    ("/tasks/{task_id}/waits/{wait_id}/answer", (POST,)),
    # What operators do.
    ("/tasks/{task_id}/record", (GET,)),
    ("/tasks/{task_id}/operations/retry", (POST,)),
    ("/tasks/{task_id}/operations/settle", (POST,)),
    ("/tasks/{task_id}/operations/release", (POST,)),
    ("/tasks/{task_id}/operations/close", (POST,)),
    ("/tasks/{task_id}/operations/quarantine", (POST,)),
    ("/tasks/{task_id}/operations/escalate", (POST,)),
)
# The description of the API holds nothing about anybody.
OPEN_ROUTES: Final = (("/openapi.json", (GET,)),)

# What outside systems may send. No token: the function verifies a signature over every byte.
WEBHOOK: Final = "/webhooks/{tenant}/{source}"

# People and their tools, not machines: far above what a team types, far below what would hurt the tables.
REQUESTS_PER_SECOND: Final = 50
REQUESTS_BURST: Final = 100
# Events of outside systems come one per wait; a sender that is told to wait comes again. This leaves room for people.
EVENTS_PER_SECOND: Final = 20
EVENTS_BURST: Final = 40

# Who called what, when and with which outcome. No bodies, no tokens, no names.
ACCESS_LOG_FIELDS: Final = {
    "request_id": "$context.requestId",
    "requested_at": "$context.requestTime",
    "source_ip": "$context.identity.sourceIp",
    "subject": "$context.authorizer.claims.sub",
    "method": "$context.httpMethod",
    "route": "$context.routeKey",
    "status": "$context.status",
    "error": "$context.error.message",
    "authorizer_error": "$context.authorizer.error",
    "latency_ms": "$context.responseLatency",
}


class HttpApi(Construct):
    """Routes, token check, throttling and access log in front of `api` and `webhook` (payload format 2.0)."""

    def __init__(
        self,
        scope: Construct,
        *,
        stage: Stage,
        identity: Identity,
        function: lambda_.Function,
        webhook: lambda_.Function,
        alarms: Alarms,
    ) -> None:
        super().__init__(scope, "HttpApi")
        self.api = apigateway.HttpApi(
            self,
            "Gateway",
            api_name=stage.named("api"),
            description=f"Holdfast {stage.name}: tasks and decisions",
            create_default_stage=False,
        )
        authorizer = authorizers.HttpJwtAuthorizer(
            "Token", identity.issuer, jwt_audience=[identity.client_id], authorizer_name=stage.named("token")
        )
        integration = integrations.HttpLambdaIntegration(
            "Function",
            function,
            payload_format_version=apigateway.PayloadFormatVersion.VERSION_2_0,
            scope_permission_to_route=False,
        )
        for path, methods in ROUTES:
            self.api.add_routes(path=path, methods=list(methods), integration=integration, authorizer=authorizer)
        for path, methods in OPEN_ROUTES:
            for route in self.api.add_routes(path=path, methods=list(methods), integration=integration):
                acknowledge(
                    "AwsSolutions-APIG4", on=route, because="The API's own description is the same for everyone."
                )
        [signed] = self._add_webhook(webhook)
        self.default_stage = default_stage(self, self.api, stage=stage, log_name=stage.named("api"))
        throttle(self.default_stage, signed, key=f"POST {WEBHOOK}", per_second=EVENTS_PER_SECOND, burst=EVENTS_BURST)
        alarms.raise_when(
            "api-server-errors",
            self.api.metric_server_error(period=ALARM_PERIOD, statistic="Sum"),
            at_least=1,
            because="The API answered a person with 5xx. The access log says whom, the function's log says why.",
        )

    def _add_webhook(self, webhook: lambda_.Function) -> Sequence[apigateway.HttpRoute]:
        integration = integrations.HttpLambdaIntegration(
            "WebhookFunction",
            webhook,
            payload_format_version=apigateway.PayloadFormatVersion.VERSION_2_0,
            scope_permission_to_route=False,
        )
        routes = self.api.add_routes(path=WEBHOOK, methods=[POST], integration=integration)
        for route in routes:
            acknowledge(
                "AwsSolutions-APIG4",
                on=route,
                because="Outside systems hold no token; the function refuses every byte that is not signed.",
            )
        return routes

    @property
    def url(self) -> str:
        """Base address, without a slash at the end."""
        return self.api.api_endpoint


def throttle(
    served: apigateway.HttpStage, route: apigateway.HttpRoute, *, key: str, per_second: int, burst: int
) -> None:
    """Give one route a limit of its own, within the limit of all."""
    stage = served.node.default_child
    if not isinstance(stage, apigateway.CfnStage):
        raise TypeError("an HTTP stage is expected to be one CloudFormation stage")
    stage.route_settings = {
        key: {"ThrottlingRateLimit": per_second, "ThrottlingBurstLimit": burst, "DetailedMetricsEnabled": True}
    }
    # A limit for a route that is not there yet is refused.
    served.node.add_dependency(route)


def default_stage(scope: Construct, api: apigateway.HttpApi, *, stage: Stage, log_name: str) -> apigateway.HttpStage:
    """Serve an HTTP API at its root, throttled, measured by route and with an access log."""
    log_group = own_log_group(scope, "AccessLog", f"/aws/vendedlogs/{log_name}", stage=stage)
    served = apigateway.HttpStage(
        scope,
        "Stage",
        http_api=api,
        stage_name="$default",
        auto_deploy=True,
        detailed_metrics_enabled=True,
        throttle=apigateway.ThrottleSettings(rate_limit=REQUESTS_PER_SECOND, burst_limit=REQUESTS_BURST),
    )
    resource = served.node.default_child
    if not isinstance(resource, apigateway.CfnStage):
        raise TypeError("an HTTP stage is expected to be one CloudFormation stage")
    resource.access_log_settings = apigateway.CfnStage.AccessLogSettingsProperty(
        destination_arn=f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:log-group:{log_group.log_group_name}",
        format=json.dumps(ACCESS_LOG_FIELDS),
    )
    return served
