"""Take in the signed events of outside systems."""

from aws_cdk import Aws, Duration
from constructs import Construct

from stacks.acknowledge import acknowledge_wildcard
from stacks.alarms import ALARM_PERIOD
from stacks.python_function import Workshop, attention, python_function
from stacks.references import DataReferences, allow


class WebhookFunction(Construct):
    """The function behind the webhook's address. The signature is all the authentication there is.

    May: read the signing secrets of sources, read and keep events, verify and commit the task whose wait was answered.
    May not: see a task token, call a tool or a model, start an execution, decide an approval, read evidence or rights.
    """

    def __init__(self, scope: Construct, *, workshop: Workshop, data: DataReferences) -> None:
        super().__init__(scope, "Webhook")
        tables = data.tables
        prefix = workshop.stage.named("webhook/")
        self.function = python_function(
            self,
            "webhook",
            workshop=workshop,
            does="Verify signed events of outside systems and hand them to the tasks that wait for them",
            # Half of what the gateway waits (30 s): a sender always gets our answer, not the gateway's.
            timeout=Duration.seconds(15),
            memory_mb=512,
            settings={
                **data.table_settings("heads", "checkpoints", "waits", "actions", "inbox", "outbox"),
                "SEAL_KEY_ID": data.seal_key.arn,
                "WEBHOOK_SECRET_PREFIX": prefix,
            },
        )
        get = ("dynamodb:GetItem", "dynamodb:BatchGetItem")
        put, update = "dynamodb:PutItem", "dynamodb:UpdateItem"
        tables["heads"].grant(self.function, *get, put)
        tables["checkpoints"].grant(self.function, *get, put)
        tables["waits"].grant(self.function, "dynamodb:GetItem", put, update)
        tables["actions"].grant(self.function, put)
        tables["inbox"].grant(self.function, "dynamodb:GetItem", put, "dynamodb:Query")
        tables["outbox"].grant(self.function, put)
        data.seal_key.grant(self.function, "kms:GenerateMac", "kms:VerifyMac")
        secrets = f"arn:{Aws.PARTITION}:secretsmanager:{Aws.REGION}:{Aws.ACCOUNT_ID}:secret:{prefix}*"
        allow(self.function, ("secretsmanager:GetSecretValue",), secrets)
        acknowledge_wildcard(
            secrets,
            on=self.function.role or self.function,
            because="A source is added by adding its secret, without a deployment; nothing else has this prefix.",
        )
        workshop.alarms.raise_when(
            "webhook-needs-attention",
            attention("webhook", period=ALARM_PERIOD),
            at_least=1,
            because=(
                "An outside system contradicted itself or came too late, or its signing secret cannot be used. "
                "The webhook's log says which."
            ),
        )
