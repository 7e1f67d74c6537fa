"""Attach the machine's task token to an open wait."""

from aws_cdk import Duration
from constructs import Construct

from stacks.python_function import Workshop, python_function
from stacks.references import DataReferences, allow


class OpenWaitFunction(Construct):
    """The function behind every waiting state.

    May: write a task token, read a wait and the head of a child task, answer the token at once if nothing is left to
    wait for.
    May not: read tokens back, change a wait, commit, decide anything.
    """

    def __init__(self, scope: Construct, *, workshop: Workshop, data: DataReferences) -> None:
        super().__init__(scope, "OpenWait")
        self.function = python_function(
            self,
            "open_wait",
            workshop=workshop,
            does="Attach a task token to an open wait, or answer it at once",
            timeout=Duration.seconds(10),
            memory_mb=512,
            settings=data.table_settings("tokens", "waits", "heads"),
        )
        data.tables["tokens"].grant(self.function, "dynamodb:PutItem")
        data.tables["waits"].grant(self.function, "dynamodb:GetItem")
        # Whether a child task that is waited for has ended already.
        data.tables["heads"].grant(self.function, "dynamodb:GetItem")

    def allow_answering(self, machine_arn: str) -> None:
        """Let it answer waits of one state machine that are settled before their token arrives."""
        allow(self.function, ("states:SendTaskSuccess",), machine_arn)
