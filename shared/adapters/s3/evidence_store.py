"""Evidence in a versioned bucket."""

import hashlib
from typing import TYPE_CHECKING, Final

from shared.adapters.s3.objects import Objects, object_key
from shared.domain.errors import EvidenceStale
from shared.domain.evidence import EvidenceRef
from shared.domain.identity import TaskKey

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_PREFIX: Final = "evidence"
_TEXT: Final = "text/plain; charset=utf-8"


class S3EvidenceStore:
    """Outside words, stored as bytes that nothing interprets."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._objects = Objects(client, bucket)

    def put(self, key: TaskKey, *, evidence_id: str, source_kind: str, text: str) -> EvidenceRef:
        """See `EvidenceStore.put`.

        Raises:
            DependencyTimeout: no answer; nothing references what may have been stored.
        """
        body = text.encode()
        where = object_key(_PREFIX, key, evidence_id, "txt")
        version = self._objects.put(where, body, content_type=_TEXT)
        return EvidenceRef(
            evidence_id=evidence_id,
            source_kind=source_kind,
            object_version=version,
            sha256=hashlib.sha256(body).hexdigest(),
        )

    def read(self, key: TaskKey, ref: EvidenceRef) -> str:
        """See `EvidenceStore.read`.

        Raises:
            DependencyTimeout: no answer.
        """
        body = self._objects.get(object_key(_PREFIX, key, ref.evidence_id, "txt"), ref.object_version)
        if body is None or hashlib.sha256(body).hexdigest() != ref.sha256:
            msg = f"evidence {ref.evidence_id} is not what was referenced"
            raise EvidenceStale(msg)
        return body.decode()
