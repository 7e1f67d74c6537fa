"""Where an outside provider is found and what it takes to speak to it."""

from dataclasses import dataclass
from typing import Final

from aws_cdk import Annotations, Aws
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from stacks.stage import Stage

# The sandbox plays every provider, at one address and under one key.
SANDBOX_URL_PARAMETER: Final = "payments_url"
SANDBOX_API_KEY_SECRET: Final = "payments-api-key"  # noqa: S105 - the name of a secret, not one


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideProvider:
    """An outside system that tools act on: its address, and the secret that holds its API key."""

    url: str
    secret_name: str

    @property
    def secret_arns(self) -> str:
        """The secret's ARN up to the six characters that Secrets Manager adds to it."""
        return f"arn:{Aws.PARTITION}:secretsmanager:{Aws.REGION}:{Aws.ACCOUNT_ID}:secret:{self.secret_name}-??????"

    @classmethod
    def of(cls, scope: Construct, stage: Stage, *, name: str) -> "OutsideProvider":
        """Take the address from the context value ``<name>_url``, or from the sandbox where that is deployed.

        The API key is put into the secret ``<name>-api-key`` by whoever owns the account with the provider (the sandbox
        puts its own).
        """
        configured = scope.node.try_get_context(f"{name}_url")
        if configured:
            return cls(url=str(configured), secret_name=stage.named(f"{name}-api-key"))
        if stage.with_sandbox:
            published = ssm.StringParameter.value_for_string_parameter(scope, stage.parameter(SANDBOX_URL_PARAMETER))
            return cls(url=published, secret_name=stage.named(SANDBOX_API_KEY_SECRET))
        Annotations.of(scope).add_warning_v2(
            f"holdfast:no-{name}-provider",
            f"No {name} provider: pass `-c {name}_url=https://...`, or `-c sandbox=true` for a pretend one.",
        )
        # Reserved for addresses that can never exist: a stage without a provider fails, and visibly so.
        return cls(url=f"https://{name}.invalid", secret_name=stage.named(f"{name}-api-key"))
