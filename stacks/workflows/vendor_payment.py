"""Vendor payments: a read, two keyed effects with their undos, and a notice that cannot be taken back."""

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
    "read_vendor": "Read one vendor from the vendor master",
    "reserve_budget": "Reserve budget for a payment, or look a reservation up",
    "release_budget": "Release reserved budget, or look a release up",
    "create_payment": "Create a payment to a vendor, or look a payment up",
    "cancel_payment": "Cancel a payment that has not settled, or look a cancellation up",
    "notify_vendor": "Tell a vendor about a payment",
}


class VendorPayment(Workflow):
    """Pay a vendor's invoice, with two approvers and the account of the vendor master."""

    workflow: ClassVar[str] = "vendor_payment"

    def tools(self, workshop: Workshop) -> Mapping[str, lambda_.Function]:
        """Make a function for every tool: each can do one thing, and has its own role, log and alarm."""
        provider = OutsideProvider.of(self, workshop.stage, name="payments")
        return {
            tool: VendorPaymentTool(self, tool, does=does, workshop=workshop, provider=provider).function
            for tool, does in _DOES.items()
        }


class VendorPaymentTool(Construct):
    """One operation at the payments provider.

    May: read the provider's API key, call the provider.
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
            settings={"PAYMENTS_URL": provider.url, "PAYMENTS_SECRET_NAME": provider.secret_name},
        )
        # Secrets Manager ends every ARN with six characters of its own; the name before them is exact.
        allow(self.function, ("secretsmanager:GetSecretValue",), provider.secret_arns)
