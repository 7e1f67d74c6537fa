"""The evidence bucket, in memory."""

import hashlib

from shared.domain.errors import EvidenceStale
from shared.domain.evidence import EvidenceRef
from shared.domain.identity import TaskKey
from tests.fakes.calls import Calls
from tests.fakes.store import World


class FakeEvidenceStore:
    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def put(self, key: TaskKey, *, evidence_id: str, source_kind: str, text: str) -> EvidenceRef:
        with self._calls.around("evidence_store.put"), self._world as world:
            body = text.encode()
            ref = EvidenceRef(
                evidence_id=evidence_id,
                source_kind=source_kind,
                object_version=world.ids.new("version"),
                sha256=hashlib.sha256(body).hexdigest(),
            )
            world.evidence[f"{key.key}/{evidence_id}", ref.object_version] = body
            return ref

    def read(self, key: TaskKey, ref: EvidenceRef) -> str:
        with self._calls.around("evidence_store.read"), self._world as world:
            body = world.evidence.get((f"{key.key}/{ref.evidence_id}", ref.object_version))
            if body is None or hashlib.sha256(body).hexdigest() != ref.sha256:
                msg = f"evidence {ref.evidence_id} is not what was referenced"
                raise EvidenceStale(msg)
            return body.decode()
