"""One model call on one prepared window."""

from aws_cdk import Duration
from constructs import Construct

from stacks.acknowledge import acknowledge_wildcard
from stacks.buckets import RESIDUE_PREFIX, WINDOWS_PREFIX
from stacks.model import Model
from stacks.python_function import Workshop, python_function
from stacks.references import DataReferences, allow


class ProposeFunction(Construct):
    """The only function that talks to a model.

    May: read the window made for it, call the configured model, write residue.
    May not: read or write any table, see a task token, reach a tool, read evidence, seal anything.
    """

    def __init__(self, scope: Construct, *, workshop: Workshop, data: DataReferences, model: Model) -> None:
        super().__init__(scope, "Propose")
        self.function = python_function(
            self,
            "propose",
            workshop=workshop,
            does="Ask the model for a proposal on one prepared window",
            # Long answers take tens of seconds; the client inside gives up earlier and never retries by itself.
            timeout=Duration.seconds(60),
            memory_mb=512,
            settings={"ARTIFACTS_BUCKET": data.artifacts.name, "MODEL_ID": model.model_id},
        )
        data.artifacts.grant(self.function, "s3:GetObject", "s3:GetObjectVersion", under=WINDOWS_PREFIX)
        data.artifacts.grant(self.function, "s3:PutObject", under=RESIDUE_PREFIX)
        allow(self.function, ("bedrock:InvokeModel",), *model.arns)
        for objects, because in (
            (
                f"{data.artifacts.arn}/{WINDOWS_PREFIX}*",
                "The window is read by the exact key and version it was asked with.",
            ),
            (f"{data.artifacts.arn}/{RESIDUE_PREFIX}*", "Residue is named when the model has answered."),
            *(
                (arn, "An inference profile routes to whichever of its regions has room.")
                for arn in model.arns
                if "*" in arn
            ),
        ):
            acknowledge_wildcard(objects, on=self, because=because)
