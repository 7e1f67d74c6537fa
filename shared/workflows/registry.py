"""Finding the workflows: every package in this folder with a `workflow` module that defines `WORKFLOW`."""

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from shared import workflows
from shared.domain.workflow import Workflow


@cache
def discover() -> Mapping[str, Workflow]:
    """Return every workflow by name.

    Raises:
        ValueError: a folder's workflow has another name than its folder.
    """
    found: dict[str, Workflow] = {}
    for module in pkgutil.iter_modules(workflows.__path__):
        if not module.ispkg:
            continue
        workflow: Workflow = import_module(f"{workflows.__name__}.{module.name}.workflow").WORKFLOW
        if workflow.name != module.name:
            msg = f"the workflow in {module.name}/ is called {workflow.name}"
            raise ValueError(msg)
        found[workflow.name] = workflow
    return found
