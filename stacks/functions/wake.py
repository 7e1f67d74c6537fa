"""The resume protocol: every wake-up of every task passes here."""

from aws_cdk import Duration
from constructs import Construct

from stacks.acknowledge import acknowledge_wildcard
from stacks.alarms import ALARM_PERIOD
from stacks.buckets import RESIDUE_PREFIX, WINDOWS_PREFIX
from stacks.python_function import Workshop, attention, python_function, watch_policies
from stacks.references import DataReferences


class WakeFunction(Construct):
    """The function behind the state machine's hub.

    May: commit, read all four stores, write windows, read residue.
    May not: call a tool or a model, see a task token, answer or start an execution, change authority or memory.
    """

    def __init__(self, scope: Construct, *, workshop: Workshop, data: DataReferences, model_id: str) -> None:
        super().__init__(scope, "Wake")
        tables = data.tables
        self.function = python_function(
            self,
            "wake",
            workshop=workshop,
            does="Pass a task through the gates and decide its next step",
            timeout=Duration.seconds(20),
            memory_mb=1024,
            settings={
                **data.table_settings(
                    "heads", "checkpoints", "actions", "authority", "waits", "inbox", "outbox", "leases", "memory"
                ),
                "EVIDENCE_BUCKET": data.evidence.name,
                "ARTIFACTS_BUCKET": data.artifacts.name,
                "SEAL_KEY_ID": data.seal_key.arn,
                "MODEL_ID": model_id,
            },
        )
        watch_policies("wake", workshop=workshop)
        workshop.alarms.raise_when(
            "wake-needs-attention",
            attention("wake", period=ALARM_PERIOD),
            at_least=1,
            because=(
                "An outside system's event that came before its wait does not fit it and was passed over; the wait "
                "goes on. Wake's log says which and why; tell its sender."
            ),
        )
        get = ("dynamodb:GetItem", "dynamodb:BatchGetItem")
        put, update = "dynamodb:PutItem", "dynamodb:UpdateItem"
        tables["heads"].grant(self.function, *get, put, update)
        tables["checkpoints"].grant(self.function, *get, put)
        tables["waits"].grant(self.function, "dynamodb:GetItem", put, update)
        tables["actions"].grant(self.function, "dynamodb:GetItem", put, update)
        # Events that came before their wait are looked for when it opens.
        tables["inbox"].grant(self.function, put, "dynamodb:Query")
        tables["outbox"].grant(self.function, put)
        tables["leases"].grant(self.function, "dynamodb:GetItem", update)
        tables["authority"].grant(self.function, *get)
        tables["memory"].grant(self.function, "dynamodb:Query")
        data.seal_key.grant(self.function, "kms:GenerateMac", "kms:VerifyMac")
        data.evidence.grant(self.function, "s3:GetObject", "s3:GetObjectVersion")
        data.artifacts.grant(self.function, "s3:GetObject", "s3:GetObjectVersion", under=RESIDUE_PREFIX)
        data.artifacts.grant(self.function, "s3:PutObject", under=WINDOWS_PREFIX)
        for objects, because in (
            (f"{data.evidence.arn}/*", "Evidence is read by the exact key and version a checkpoint names."),
            (
                f"{data.artifacts.arn}/{RESIDUE_PREFIX}*",
                "Residue is read by the exact key and version it was answered with.",
            ),
            (f"{data.artifacts.arn}/{WINDOWS_PREFIX}*", "A window is named when it is assembled."),
        ):
            acknowledge_wildcard(objects, on=self, because=because)
