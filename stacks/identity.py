"""Who vouches for the people that call the API: a user pool of our own, or any OpenID Connect issuer."""

from dataclasses import dataclass
from typing import Final

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_cognito as cognito
from constructs import Construct

from stacks.acknowledge import acknowledge
from stacks.stage import Stage

PASSWORD_LENGTH_MIN: Final = 12

# A stolen access token is good for this long; signing in again is silent while the refresh token lives.
ACCESS_TOKEN_LIFE: Final = Duration.minutes(60)
# One working day: approvers sign in once in the morning.
REFRESH_TOKEN_LIFE: Final = Duration.hours(12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What the gateway and the API check a token against."""

    issuer: str
    client_id: str


class People(Construct):
    """A user pool without self sign-up: operators invite people, and the Authority records give them rights.

    The pool only says who somebody is. Losing it would change every subject, so it outlives the stack
    wherever data does.
    """

    def __init__(self, scope: Construct, *, stage: Stage) -> None:
        super().__init__(scope, "People")
        self.pool = cognito.UserPool(
            self,
            "Pool",
            user_pool_name=stage.named("people"),
            self_sign_up_enabled=False,
            sign_in_aliases=cognito.SignInAliases(username=True),
            sign_in_case_sensitive=False,
            account_recovery=cognito.AccountRecovery.EMAIL_ONLY,
            password_policy=cognito.PasswordPolicy(
                min_length=PASSWORD_LENGTH_MIN,
                require_lowercase=True,
                require_uppercase=True,
                require_digits=True,
                require_symbols=True,
                temp_password_validity=Duration.days(3),
            ),
            mfa=cognito.Mfa.OPTIONAL,
            mfa_second_factor=cognito.MfaSecondFactor(otp=True, sms=False),
            feature_plan=cognito.FeaturePlan.PLUS,
            standard_threat_protection_mode=cognito.StandardThreatProtectionMode.FULL_FUNCTION,
            deletion_protection=not stage.is_disposable,
            removal_policy=RemovalPolicy.DESTROY if stage.is_disposable else RemovalPolicy.RETAIN,
        )
        acknowledge(
            "AwsSolutions-COG2",
            on=self.pool,
            because=(
                "A second factor is offered to everyone; who must have one is the issuer's policy, and a workflow may "
                "demand a recent sign-in before it takes a decision."
            ),
        )
        self.client = self.pool.add_client(
            "Client",
            user_pool_client_name=stage.named("api"),
            generate_secret=False,
            # Passwords travel to Cognito as such only where people try things out from a terminal.
            auth_flows=cognito.AuthFlow(user_srp=True, user_password=stage.is_disposable),
            disable_o_auth=True,
            prevent_user_existence_errors=True,
            enable_token_revocation=True,
            access_token_validity=ACCESS_TOKEN_LIFE,
            id_token_validity=ACCESS_TOKEN_LIFE,
            refresh_token_validity=REFRESH_TOKEN_LIFE,
        )

    @property
    def identity(self) -> Identity:
        """The pool as an issuer of tokens; the address is the one that Cognito writes into them."""
        issuer = f"https://cognito-idp.{Aws.REGION}.{Aws.URL_SUFFIX}/{self.pool.user_pool_id}"
        return Identity(issuer=issuer, client_id=self.client.user_pool_client_id)
