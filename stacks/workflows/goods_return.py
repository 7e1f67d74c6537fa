"""Goods returns: no tool of their own; their refunds are tasks of the refund workflow."""

from collections.abc import Mapping
from typing import ClassVar

from aws_cdk import aws_lambda as lambda_

from stacks.python_function import Workshop
from stacks.workflow import Workflow


class GoodsReturn(Workflow):
    """Wait for the goods of a return, then have the order refunded."""

    workflow: ClassVar[str] = "goods_return"

    def tools(self, _workshop: Workshop) -> Mapping[str, lambda_.Function]:
        """Make none: nothing leaves the system from here."""
        return {}
