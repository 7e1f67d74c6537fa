"""What a seal covers. The key service makes and checks the MAC; the key never comes near this code."""

import hashlib

from pydantic import Field

from shared.domain.canonical import canonical
from shared.domain.identity import TaskKey
from shared.domain.records import Record

# The seal that version 1 is chained to.
GENESIS = "genesis"


class SealedCheckpoint(Record):
    """A checkpoint as it is stored: the body as text, so that the store cannot reshape it (B09), and its seal."""

    version: int = Field(ge=1)
    body: str
    seal: str
    key_id: str


def seal_input(key: TaskKey, *, version: int, schema_version: int, key_id: str, previous_seal: str, body: str) -> bytes:
    """Return the 32 bytes that are sealed.

    They bind purpose, tenant, task, version, schema, key and the previous seal, so that a body that is valid
    elsewhere, or was valid earlier, is not valid here (B19). A digest, because a MAC takes 4,096 bytes at most.
    """
    bound = canonical(
        [
            "holdfast.checkpoint",
            key.tenant,
            key.task_id,
            version,
            schema_version,
            key_id,
            previous_seal,
            hashlib.sha256(body.encode()).hexdigest(),
        ]
    )
    return hashlib.sha256(bound).digest()
