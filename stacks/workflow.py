"""What a workflow brings into the stack: its tools, and a machine of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.functions.deliver import DeliverFunction
from stacks.functions.open_wait import OpenWaitFunction
from stacks.functions.perform import PerformFunction
from stacks.functions.propose import ProposeFunction
from stacks.functions.wake import WakeFunction
from stacks.python_function import Workshop
from stacks.task_machine import MachineFunctions, TaskMachine


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineParts:
    """The engine as a workflow meets it."""

    workshop: Workshop
    wake: WakeFunction
    propose: ProposeFunction
    open_wait: OpenWaitFunction
    perform: PerformFunction
    deliver: DeliverFunction


class Workflow(Construct):
    """Base of every workflow's construct.

    A subclass names its workflow, which is also the folder of its rules and data, and makes its tools. It is found
    because its module lies in `stacks/workflows/`; no list has to be edited.
    """

    workflow: ClassVar[str]

    def __init__(self, scope: Construct, *, engine: EngineParts) -> None:
        super().__init__(scope, _camel(self.workflow))
        for tool, function in self.tools(engine.workshop).items():
            engine.perform.allow_tool(tool, function)
        self.task_machine = TaskMachine(
            self,
            workflow=self.workflow,
            workshop=engine.workshop,
            functions=MachineFunctions(
                wake=engine.wake.function,
                propose=engine.propose.function,
                open_wait=engine.open_wait.function,
                perform=engine.perform.function,
            ),
        )
        engine.open_wait.allow_answering(self.task_machine.arn)
        engine.deliver.allow_machine(self.workflow, self.task_machine.arn)

    def tools(self, workshop: Workshop) -> Mapping[str, lambda_.Function]:
        """Make the workflow's tools, each with its own secret and nothing of the engine's.

        Returns:
            The functions by the names under which the workflow's rules speak of them.
        """
        raise NotImplementedError


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
