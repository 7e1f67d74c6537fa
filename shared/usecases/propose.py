"""Propose: one model call on one prepared window. The answer is kept as residue and decides nothing."""

from dataclasses import dataclass

from shared.domain.identity import TaskKey
from shared.domain.proposal import ObjectRef
from shared.ports.artifacts import Artifacts
from shared.ports.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Propose:
    """The window to ask with."""

    key: TaskKey
    window: ObjectRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """Where the model's answer is."""

    residue: ObjectRef
    stop_reason: str


def propose(command: Propose, artifacts: Artifacts, model: Model) -> Proposed:
    """Ask the model once and keep what it said.

    Raises:
        ModelUnavailable: no answer; nothing was kept. Asking again is safe, the answer may differ.
    """
    residue = model.ask(artifacts.get_window(command.window))
    name = command.window.key.rsplit("/", 1)[-1].removesuffix(".json")
    return Proposed(residue=artifacts.put_residue(command.key, name, residue), stop_reason=residue.stop_reason)
