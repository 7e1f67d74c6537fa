"""How a correction takes hold of the emulator: by name, and loudly when the name is gone."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any


class OutOfDate(RuntimeError):
    """The emulator has changed where a correction takes hold. Look at its new code and adapt or drop the correction."""


def module(name: str) -> ModuleType:
    """One of the emulator's modules."""
    return importlib.import_module(f"ministack.{name}")


def wrap(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Replace ``owner.name`` by ``wrapper(original, …)``."""
    original = getattr(owner, name, None)
    if not callable(original):
        raise OutOfDate(f"{owner!r} has no function {name}")

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return wrapper(original, *args, **kwargs)

    setattr(owner, name, wrapped)


def replace_text(owner: ModuleType, name: str, old: str, new: str) -> None:
    """Replace a passage of one of the emulator's embedded scripts."""
    text: str = getattr(owner, name)
    if text.count(old) != 1:
        raise OutOfDate(f"{owner.__name__}.{name} does not hold {old!r} exactly once")
    setattr(owner, name, text.replace(old, new))
