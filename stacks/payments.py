"""Where the payments provider is found and what it takes to speak to it."""

from dataclasses import dataclass
from typing import Final

from aws_cdk import Annotations, Aws
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from stacks.stage import Stage

URL_PARAMETER: Final = "payments_url"
API_KEY_SECRET: Final = "payments-api-key"  # noqa: S105 - the name of a secret, not one

# Reserved for addresses that can never exist: a stage without a provider fails, and visibly so.
NO_PROVIDER: Final = "https://payments.invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentsProvider:
    """An outside system of record for refunds."""

    url: str
    secret_name: str

    @property
    def secret_arns(self) -> str:
        """The secret's ARN up to the six characters that Secrets Manager adds to it."""
        return f"arn:{Aws.PARTITION}:secretsmanager:{Aws.REGION}:{Aws.ACCOUNT_ID}:secret:{self.secret_name}-??????"

    @classmethod
    def of(cls, scope: Construct, stage: Stage) -> "PaymentsProvider":
        """Take the address from the context, or from the sandbox where that is deployed.

        The API key is put into the secret by whoever owns the account with the provider (the sandbox puts its own).
        """
        configured = scope.node.try_get_context("payments_url")
        secret_name = stage.named(API_KEY_SECRET)
        if configured:
            return cls(url=str(configured), secret_name=secret_name)
        if stage.with_sandbox:
            published = ssm.StringParameter.value_for_string_parameter(scope, stage.parameter(URL_PARAMETER))
            return cls(url=published, secret_name=secret_name)
        Annotations.of(scope).add_warning_v2(
            "holdfast:no-payments-provider",
            "No payments provider: pass `-c payments_url=https://...`, or `-c sandbox=true` for a pretend one.",
        )
        return cls(url=NO_PROVIDER, secret_name=secret_name)
