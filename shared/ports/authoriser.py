"""The one function that says who may do what, used by every surface and by the gates."""

from typing import Protocol

from shared.domain.authority import Question, Ruling


class Authoriser(Protocol):
    """Policies, evaluated outside every model's reach."""

    def rule(self, question: Question) -> Ruling:
        """Answer a question. An error, a diagnostic, no decision or a missing attribute is a reasoned deny (B04)."""
