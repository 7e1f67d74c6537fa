"""What can go wrong with the local AWS, said so that the person at the terminal can act."""

from __future__ import annotations


class LocalProblem(Exception):
    """Something local does not work.

    Args:
        problem: what is wrong, in one sentence.
        remedy: what to do about it.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.args[0]}\n{self.remedy}"
