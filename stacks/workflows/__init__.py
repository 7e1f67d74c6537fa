"""One module per workflow. Whatever lies in this folder is deployed."""

import importlib
import pkgutil

from stacks.workflow import Workflow


def discovered() -> tuple[type[Workflow], ...]:
    """Find the workflow of every module in this folder, in the order of their names.

    Raises:
        ValueError: a module defines no workflow, or more than one.
    """
    found = []
    for module_info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        defined = [
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, Workflow) and value.__module__ == module.__name__
        ]
        if len(defined) != 1:
            message = f"{module.__name__} must define exactly one workflow, not {len(defined)}"
            raise ValueError(message)
        found.append(defined[0])
    return tuple(found)
