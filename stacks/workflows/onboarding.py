"""Onboarding: two tools of the office's services, one that posts and one that orders."""

from collections.abc import Mapping
from typing import ClassVar, Final

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.outside_provider import OutsideProvider
from stacks.python_function import Workshop, python_function
from stacks.references import allow
from stacks.workflow import Workflow

_DOES: Final[Mapping[str, str]] = {
    "send_welcome_packet": "Post one welcome packet, or look up whether it was posted",
    "order_equipment": "Order the equipment of one desk, or look an order up",
}


class Onboarding(Workflow):
    """Welcome a new employee: packet, signed document, choice of equipment, order."""

    workflow: ClassVar[str] = "onboarding"

    def tools(self, workshop: Workshop) -> Mapping[str, lambda_.Function]:
        """Make a function for every tool: each can do one thing, and has its own role, log and alarm."""
        provider = OutsideProvider.of(self, workshop.stage, name="office")
        return {
            tool: OnboardingTool(self, tool, does=does, workshop=workshop, provider=provider).function
            for tool, does in _DOES.items()
        }


class OnboardingTool(Construct):
    """One operation at the office's services.

    May: read the services' API key, call the services.
    May not: read or write anything of the engine's.
    """

    def __init__(
        self, scope: Construct, tool: str, *, does: str, workshop: Workshop, provider: OutsideProvider
    ) -> None:
        super().__init__(scope, "".join(word.capitalize() for word in tool.split("_")))
        self.function = python_function(
            self,
            f"tool-{tool}",
            workshop=workshop,
            does=does,
            handler=f"functions.tools.{tool}.handler.handler",
            # Shorter than perform's own limit (20 s), which has to settle the answer.
            timeout=Duration.seconds(12),
            memory_mb=256,
            settings={"OFFICE_URL": provider.url, "OFFICE_SECRET_NAME": provider.secret_name},
        )
        # Secrets Manager ends every ARN with six characters of its own; the name before them is exact.
        allow(self.function, ("secretsmanager:GetSecretValue",), provider.secret_arns)
