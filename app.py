"""Entry point of the CDK: which stacks a stage consists of.

Reads the context values `stage`, `target`, `sandbox` and asks no account, no network and no Docker for anything,
so that synthesis works on any machine. The account and region are those of whoever deploys.
"""

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from stacks.data_stack import DataStack
from stacks.engine_stack import EngineStack
from stacks.sandbox_stack import SandboxStack
from stacks.stage import Stage


def build(app: App) -> None:
    """Add the stacks of the stage that the context names, checked against the AwsSolutions rules."""
    stage = Stage.from_context(app.node)
    data = DataStack(app, stage=stage)
    engine = EngineStack(app, stage=stage)
    # The engine finds the data by name; all that is left to say is which comes first.
    engine.add_stack_dependency(data, "the engine looks up keys and stream of the data stack when it is deployed")
    if stage.with_sandbox:
        sandbox = SandboxStack(app, stage=stage)
        engine.add_stack_dependency(sandbox, "the refund tool looks up the address of the provider when it is deployed")
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))


if __name__ == "__main__":
    app = App()
    build(app)
    app.synth()
