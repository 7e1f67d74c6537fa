"""Deciding again on fresh facts when somebody else committed first; bounded, and never with the old decision."""

from collections.abc import Callable
from typing import Final, TypeVar

from shared.domain.errors import Redecide

T = TypeVar("T")

# Each round lost means that somebody else made progress; more than this is a hot task, and the caller may try later.
ROUNDS_MAX: Final = 4


def decide_on_fresh(attempt: Callable[[], T]) -> T:
    """Run an attempt that loads, decides and commits; run it again from the start when facts moved under it.

    Raises:
        Redecide: it lost every round; nothing was written.
    """
    for _ in range(ROUNDS_MAX - 1):
        try:
            return attempt()
        except Redecide:
            continue
    return attempt()
