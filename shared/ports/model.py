"""The model: one call on one prepared window."""

from typing import Protocol

from shared.domain.proposal import Residue
from shared.domain.window import Window


class Model(Protocol):
    """A model that proposes."""

    def ask(self, window: Window) -> Residue:
        """Ask once. What comes back is advice.

        Raises:
            ModelUnavailable: the model did not answer; nothing was decided.
        """
