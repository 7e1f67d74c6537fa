"""The action ledger at work: perform, reconcile, compensate."""

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.python_function import Workshop, python_function, watch_policies
from stacks.references import DataReferences, allow


class PerformFunction(Construct):
    """The only function that reaches tools.

    May: claim and settle ledger rows, check seals and live authority, invoke the tools.
    May not: write a checkpoint or head, seal anything, call a model, see a task token, read memory or evidence.
    """

    def __init__(self, scope: Construct, *, workshop: Workshop, data: DataReferences) -> None:
        super().__init__(scope, "Perform")
        self._tools: dict[str, str] = {}
        tables = data.tables
        self.function = python_function(
            self,
            "perform",
            workshop=workshop,
            does="Perform, reconcile or compensate one action of the ledger",
            # Longer than a tool's own limit (12 s), so that the tool's answer is settled by whoever asked for it.
            timeout=Duration.seconds(20),
            memory_mb=512,
            settings={
                **data.table_settings("heads", "checkpoints", "actions", "authority"),
                "SEAL_KEY_ID": data.seal_key.arn,
            },
        )
        watch_policies("perform", workshop=workshop)
        get = ("dynamodb:GetItem", "dynamodb:BatchGetItem")
        tables["heads"].grant(self.function, *get)
        tables["checkpoints"].grant(self.function, *get)
        tables["actions"].grant(self.function, "dynamodb:GetItem", "dynamodb:UpdateItem")
        tables["authority"].grant(self.function, *get)
        data.seal_key.grant(self.function, "kms:VerifyMac")

    def allow_tool(self, tool: str, function: lambda_.Function) -> None:
        """Let it invoke one tool, and tell it under which name."""
        self._tools[tool] = function.function_name
        allow(self.function, ("lambda:InvokeFunction",), function.function_arn)
        self.function.add_environment("TOOL_FUNCTIONS", self.function.stack.to_json_string(self._tools))
