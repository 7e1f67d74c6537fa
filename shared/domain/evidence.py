"""Evidence: outside words, kept by reference, never an instruction."""

from collections.abc import Sequence
from typing import Final

from shared.domain.canonical import short_digest
from shared.domain.identity import Name, Reference
from shared.domain.records import Record

# One excerpt in a window. Enough for a letter; small enough that the task card is not drowned.
EXCERPT_CHARACTERS_MAX: Final = 4_000


class EvidenceRef(Record):
    """One stored object version of a task's evidence, and what its bytes were. Its words are trusted not at all."""

    evidence_id: Reference
    source_kind: Name
    object_version: str
    sha256: str


def evidence_digest(refs: Sequence[EvidenceRef]) -> str:
    """Digest which evidence, in which versions, a decision rests on."""
    return short_digest("evidence", [[ref.evidence_id, ref.object_version, ref.sha256] for ref in refs])
