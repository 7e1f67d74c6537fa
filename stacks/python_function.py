"""How every function of the engine is made: own role, own log group, traced, watched, and nothing unasked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.acknowledge import acknowledge, acknowledge_wildcard
from stacks.alarms import ALARM_PERIOD, Alarms
from stacks.log_group import own_log_group
from stacks.runtime_target import RuntimeTarget
from stacks.stage import Stage, Target

METRICS_NAMESPACE: Final = "Holdfast"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What every function of a stack is made with."""

    stage: Stage
    target: RuntimeTarget
    code: lambda_.Code
    dependencies: lambda_.ILayerVersion
    alarms: Alarms


def python_function(
    scope: Construct,
    name: str,
    *,
    workshop: Workshop,
    does: str,
    timeout: Duration,
    memory_mb: int,
    settings: Mapping[str, str],
    handler: str | None = None,
) -> lambda_.Function:
    """Make one function with a role that can write its own log and its traces; everything else is granted beside it.

    Args:
        scope: the construct that holds the function and its grants.
        name: folder of the function below `functions/`, which is also its name in the account.
        workshop: stage, runtime, code and dependencies.
        does: one sentence for the console.
        timeout: hard end of one invocation.
        memory_mb: memory, and with it the share of a processor.
        settings: the environment variables it reads, and no others.
        handler: entry point where it does not follow from the name.
    """
    stage = workshop.stage
    function_name = stage.named(name)
    log_group = own_log_group(scope, "Log", f"/aws/lambda/{function_name}", stage=stage)
    role = iam.Role(
        scope,
        "Role",
        assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        description=f"Holdfast {stage.name}: {name}",
    )
    function = lambda_.Function(
        scope,
        "Function",
        function_name=function_name,
        description=does,
        runtime=workshop.target.runtime,
        architecture=workshop.target.architecture,
        handler=handler or f"functions.{name}.handler.handler",
        code=workshop.code,
        layers=[workshop.dependencies],
        role=role,
        timeout=timeout,
        memory_size=memory_mb,
        tracing=lambda_.Tracing.ACTIVE,
        log_group=log_group,
        environment={
            "HOLDFAST_STAGE": stage.name,
            "POWERTOOLS_SERVICE_NAME": name,
            "POWERTOOLS_LOG_LEVEL": "INFO",
            "POWERTOOLS_METRICS_NAMESPACE": METRICS_NAMESPACE,
            **settings,
        },
    )
    allow_own_log(role, function_name)
    workshop.alarms.raise_when(
        f"{name}-errors",
        function.metric_errors(period=ALARM_PERIOD),
        at_least=1,
        because=f"{name} ended with an error. Its log group says which; tasks it left are found by their next wake-up.",
    )
    acknowledge_wildcard("*", on=role, because="X-Ray accepts trace segments on no narrower resource.")
    pin_runtime(function, stage=stage)
    return function


def attention(name: str, *, period: Duration) -> cloudwatch.Metric:
    """What a function counts when something needs a person although nothing is lost."""
    return _counted("NeedsAttention", name, period=period)


def watch_policies(name: str, *, workshop: Workshop) -> None:
    """Tell operators when a function had to deny because the policies could not answer it (B04)."""
    workshop.alarms.raise_when(
        f"{name}-policy-faults",
        _counted("PolicyFaults", name, period=ALARM_PERIOD),
        at_least=1,
        because=(
            f"Policies could not answer what {name} asked, so it was denied. "
            "The function's log says which workflow's and why; mend them with a release."
        ),
    )


def _counted(metric: str, name: str, *, period: Duration) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=METRICS_NAMESPACE,
        metric_name=metric,
        dimensions_map={"service": name},
        statistic="Sum",
        period=period,
    )


def allow_own_log(role: iam.Role, function_name: str) -> None:
    """Let a function write into its own log group, and accept the wildcard that its log streams take."""
    log_streams = f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:log-group:/aws/lambda/{function_name}:*"
    role.add_to_policy(
        iam.PolicyStatement(actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[log_streams])
    )
    acknowledge_wildcard(
        log_streams, on=role, because="The function names its own log streams; the group is its own and no other."
    )


def pin_runtime(function: lambda_.Function, *, stage: Stage) -> None:
    """Accept that a function does not run on whatever Python is newest."""
    acknowledge(
        "AwsSolutions-L1",
        on=function,
        because=(
            "Python 3.13 is the version the locked wheels and the tests are for; a newer one is taken up on purpose."
            if stage.target is Target.CLOUD
            else "The local AWS runs functions under this machine's own interpreter."
        ),
    )
