"""The two KMS keys: one that seals checkpoints, one that encrypts data at rest."""

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks.stage import Stage


class Keys(Construct):
    """Seal key (HMAC, never leaves KMS) and data key (symmetric, rotated every year).

    A lost seal key makes every checkpoint unverifiable and a lost data key makes every record unreadable,
    so both outlive the stack wherever data does.
    """

    def __init__(self, scope: Construct, *, stage: Stage) -> None:
        super().__init__(scope, "Keys")
        removal = RemovalPolicy.DESTROY if stage.is_disposable else RemovalPolicy.RETAIN
        self.seal = kms.Key(
            self,
            "Seal",
            alias=f"alias/{stage.named('seal')}",
            description="Keyed MAC over Holdfast checkpoints",
            key_spec=kms.KeySpec.HMAC_256,
            key_usage=kms.KeyUsage.GENERATE_VERIFY_MAC,
            removal_policy=removal,
            pending_window=Duration.days(7) if stage.is_disposable else Duration.days(30),
        )
        self.data = kms.Key(
            self,
            "Data",
            alias=f"alias/{stage.named('data')}",
            description="Holdfast records, evidence and artifacts at rest",
            enable_key_rotation=True,
            removal_policy=removal,
            pending_window=Duration.days(7) if stage.is_disposable else Duration.days(30),
        )
