"""Evidence: untrusted bytes, stored once, read by reference."""

from typing import Protocol

from shared.domain.evidence import EvidenceRef
from shared.domain.identity import TaskKey


class EvidenceStore(Protocol):
    """Outside words by reference."""

    def put(self, key: TaskKey, *, evidence_id: str, source_kind: str, text: str) -> EvidenceRef:
        """Store a text and return the reference to exactly this version of it."""

    def read(self, key: TaskKey, ref: EvidenceRef) -> str:
        """Read the referenced version of a task's evidence.

        Raises:
            EvidenceStale: it is gone or its bytes are not the ones that were referenced.
        """
