"""Seals by KMS: HMACs with a key that never leaves it."""

import base64
import binascii
from typing import TYPE_CHECKING, Final

from shared.adapters.cloud_errors import CLOUD_ERRORS, code_of
from shared.domain.errors import InvariantBroken, SealUnavailable

if TYPE_CHECKING:
    from mypy_boto3_kms import KMSClient

_ALGORITHM: Final = "HMAC_SHA_256"
_MAC_IS_WRONG: Final = "KMSInvalidMacException"
# The request itself is wrong, whoever is asked and whenever.
_OUR_BUG: Final = frozenset({"InvalidKeyUsageException", "ParamValidationError", "ValidationException"})


class KmsSealer:
    """Makes seals with one key and checks them with the key they name.

    Records name a key by its id, which is a third of its ARN; account and region are the ones that the records are in.
    """

    def __init__(self, client: "KMSClient", key: str) -> None:
        self._client = client
        self._key_id = key.rpartition(":key/")[2]

    @property
    def key_id(self) -> str:
        """See `Sealer.key_id`."""
        return self._key_id

    def seal(self, sealed_bytes: bytes) -> str:
        """See `Sealer.seal`.

        Raises:
            InvariantBroken: the key is no key for MACs, or what is sealed is no digest.
        """
        try:
            reply = self._client.generate_mac(Message=sealed_bytes, KeyId=self._key_id, MacAlgorithm=_ALGORITHM)
        except CLOUD_ERRORS as error:
            raise _unavailable(error) from error
        return base64.b64encode(reply["Mac"]).decode()

    def verify(self, sealed_bytes: bytes, seal: str, key_id: str) -> bool:
        """See `Sealer.verify`. A seal that is no MAC at all is a wrong one; a key that is not there is no verdict.

        Raises:
            InvariantBroken: the key is no key for MACs, or what is checked is no digest.
        """
        try:
            mac = base64.b64decode(seal, validate=True)
        except (binascii.Error, ValueError):
            return False
        if not mac:
            return False
        try:
            self._client.verify_mac(Message=sealed_bytes, KeyId=key_id, MacAlgorithm=_ALGORITHM, Mac=mac)
        except CLOUD_ERRORS as error:
            if code_of(error) == _MAC_IS_WRONG:
                return False
            raise _unavailable(error) from error
        return True


def _unavailable(error: Exception) -> SealUnavailable | InvariantBroken:
    if code_of(error) in _OUR_BUG:
        msg = f"the key service cannot do what it was asked: {code_of(error)}"
        return InvariantBroken(msg)
    msg = f"the key service could not be asked: {code_of(error)}"
    return SealUnavailable(msg)
