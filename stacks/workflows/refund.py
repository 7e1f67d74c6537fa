"""Refunds: one keyed payment tool."""

from collections.abc import Mapping
from typing import ClassVar

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.outside_provider import OutsideProvider
from stacks.python_function import Workshop, python_function
from stacks.references import allow
from stacks.workflow import Workflow


class Refund(Workflow):
    """Return money for an order, above a threshold only with a manager's approval."""

    workflow: ClassVar[str] = "refund"

    def tools(self, workshop: Workshop) -> Mapping[str, lambda_.Function]:
        """Make the one tool of this workflow."""
        return {"issue_refund": IssueRefundTool(self, workshop=workshop).function}


class IssueRefundTool(Construct):
    """Refunds at the payments provider.

    May: read the provider's API key, call the provider.
    May not: read or write anything of the engine's.
    """

    def __init__(self, scope: Construct, *, workshop: Workshop) -> None:
        super().__init__(scope, "IssueRefund")
        provider = OutsideProvider.of(self, workshop.stage, name="payments")
        self.function = python_function(
            self,
            "tool-issue_refund",
            workshop=workshop,
            does="Perform, look up or compensate one refund at the payments provider",
            handler="functions.tools.issue_refund.handler.handler",
            # Shorter than perform's own limit (20 s), which has to settle the answer.
            timeout=Duration.seconds(12),
            memory_mb=256,
            settings={"PAYMENTS_URL": provider.url, "PAYMENTS_SECRET_NAME": provider.secret_name},
        )
        # Secrets Manager ends every ARN with six characters of its own; the name before them is exact.
        allow(self.function, ("secretsmanager:GetSecretValue",), provider.secret_arns)
