"""Evidence: outside words, kept by reference, never an instruction."""

from typing import Final

from shared.domain.identity import Name, Reference
from shared.domain.records import Record

# One excerpt in a window. Enough for a letter; small enough that the task card is not drowned.
EXCERPT_CHARACTERS_MAX: Final = 4_000


class EvidenceRef(Record):
    """One stored object version: where it is, what its bytes were, and how far its words are trusted (not at all)."""

    evidence_id: Reference
    source_kind: Name
    object_key: str
    object_version: str
    sha256: str
