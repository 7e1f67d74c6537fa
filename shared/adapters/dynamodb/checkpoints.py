"""Checkpoints as rows. Append-only: a row is put where none is and never touched again."""

from shared.adapters.dynamodb.items import Item, number, read_number, read_text, text
from shared.domain.identity import TaskKey
from shared.domain.seal import SealedCheckpoint
from shared.ports.task_records import Commit


def checkpoint_key(key: TaskKey, version: int) -> Item:
    """Return the key of one version of a task."""
    return {"task": text(key.key), "version": number(version)}


def checkpoint_item(commit: Commit) -> Item:
    """Return the row. It names the attempt that wrote it, so that a lost reply can be recognised for good."""
    sealed = commit.checkpoint
    return {
        **checkpoint_key(commit.key, sealed.version),
        "body": text(sealed.body),
        "seal": text(sealed.seal),
        "key_id": text(sealed.key_id),
        "attempt": text(commit.attempt_id),
    }


def read_checkpoint(item: Item) -> SealedCheckpoint:
    """Read a row; whether it can be trusted is for the gates to say."""
    return SealedCheckpoint(
        version=read_number(item, "version"),
        body=read_text(item, "body"),
        seal=read_text(item, "seal"),
        key_id=read_text(item, "key_id"),
    )
