"""Artifacts: windows made for a model, and what models answered."""

from typing import Protocol

from shared.domain.identity import TaskKey
from shared.domain.proposal import ObjectRef, Residue
from shared.domain.window import Window


class Artifacts(Protocol):
    """Two prefixes with different writers: `wake` writes windows, `propose` writes residue."""

    def put_window(self, key: TaskKey, name: str, window: Window) -> ObjectRef:
        """Store a window under the task."""

    def get_window(self, ref: ObjectRef) -> Window:
        """Read a window."""

    def put_residue(self, key: TaskKey, name: str, residue: Residue) -> ObjectRef:
        """Store a model's answer under the task."""

    def get_residue(self, key: TaskKey, ref: ObjectRef) -> Residue | None:
        """Read a model's answer to this task; None if the reference is another task's or nothing readable is there."""
