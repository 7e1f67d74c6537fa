"""What people reach: start, read, list, amend, decide, answer, cancel; and what operators do."""

from aws_cdk import Duration
from constructs import Construct

from stacks.acknowledge import acknowledge_wildcard
from stacks.identity import Identity
from stacks.python_function import Workshop, python_function, watch_policies
from stacks.records import QUEUE, WAITS_OF_TASK
from stacks.references import DataReferences


class ApiFunction(Construct):
    """The HTTP API's function.

    May: commit what an authenticated person asked for, seal it, keep evidence, list the queue.
    May not: see a task token, reach a tool or a model, start an execution, read windows or residue.
    """

    def __init__(
        self, scope: Construct, *, workshop: Workshop, data: DataReferences, identity: Identity, model_id: str
    ) -> None:
        super().__init__(scope, "Api")
        tables = data.tables
        self.function = python_function(
            self,
            "api",
            workshop=workshop,
            does="Start, read, list, amend, decide, answer, cancel and look after tasks for authenticated people",
            # Half of what the gateway waits (30 s): its caller always gets our answer, not the gateway's.
            timeout=Duration.seconds(15),
            memory_mb=512,
            settings={
                **data.table_settings("heads", "checkpoints", "authority", "waits", "inbox", "outbox", "actions"),
                "EVIDENCE_BUCKET": data.evidence.name,
                "SEAL_KEY_ID": data.seal_key.arn,
                # Stamped on what it commits; it has no right to call it.
                "MODEL_ID": model_id,
                "OIDC_ISSUER": identity.issuer,
                "OIDC_CLIENT_ID": identity.client_id,
            },
        )
        watch_policies("api", workshop=workshop)
        get = ("dynamodb:GetItem", "dynamodb:BatchGetItem")
        put, update = "dynamodb:PutItem", "dynamodb:UpdateItem"
        tables["heads"].grant(self.function, *get, put, update)
        tables["heads"].grant_index(self.function, QUEUE)
        tables["checkpoints"].grant(self.function, *get, put)
        tables["waits"].grant(self.function, *get, put, update)
        tables["inbox"].grant(self.function, "dynamodb:GetItem", put)
        tables["outbox"].grant(self.function, put)
        # A start, an amendment or a decision writes the intent of what follows; amending voids what has not left.
        # Settling writes a person's word into a row; releasing lists what a task has done and waited for.
        tables["actions"].grant(self.function, "dynamodb:GetItem", "dynamodb:Query", put, update)
        tables["waits"].grant_index(self.function, WAITS_OF_TASK)
        tables["authority"].grant(self.function, *get)
        data.seal_key.grant(self.function, "kms:GenerateMac", "kms:VerifyMac")
        data.evidence.grant(self.function, "s3:GetObject", "s3:GetObjectVersion", "s3:PutObject")
        acknowledge_wildcard(
            f"{data.evidence.arn}/*",
            on=self,
            because="Evidence objects are named by tenant and content when they come.",
        )
