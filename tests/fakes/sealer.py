"""The key service, in memory, with real MACs."""

import base64
import hashlib
import hmac

from shared.domain.errors import SealUnavailable
from tests.fakes.calls import Calls
from tests.fakes.store import World


def _no_answer() -> Exception:
    return SealUnavailable("the key service did not answer")


class FakeSealer:
    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    @property
    def key_id(self) -> str:
        return self._world.seal_keys.current

    def seal(self, sealed_bytes: bytes) -> str:
        with self._calls.around("sealer.seal", dropped=_no_answer):
            return self._mac(sealed_bytes, self.key_id)

    def verify(self, sealed_bytes: bytes, seal: str, key_id: str) -> bool:
        with self._calls.around("sealer.verify", dropped=_no_answer):
            return hmac.compare_digest(self._mac(sealed_bytes, key_id).encode(), seal.encode())

    def _mac(self, sealed_bytes: bytes, key_id: str) -> str:
        keys = self._world.seal_keys
        if keys.unavailable or key_id not in keys.by_id:
            raise _no_answer()
        return base64.b64encode(hmac.digest(keys.by_id[key_id], sealed_bytes, hashlib.sha256)).decode()
