"""What a seal covers: a body that is valid elsewhere, or was valid earlier, is not valid here."""

import pytest

from shared.domain.identity import TaskKey
from shared.domain.seal import GENESIS, seal_input
from tests.builders import a_task_key

HERE = {
    "version": 5,
    "schema_version": 1,
    "key_id": "seal-key-1",
    "previous_seal": "cHJldmlvdXM=",
    "body": '{"amount":450}',
}


def sealed_bytes(key: TaskKey | None = None, **changed: object) -> bytes:
    """What is sealed for a body, with something changed."""
    return seal_input(key or a_task_key(), **(HERE | changed))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changed",
    [
        {"version": 4},
        {"version": 6},
        {"schema_version": 2},
        {"key_id": "seal-key-2"},
        {"previous_seal": GENESIS},
        {"body": '{"amount":450.01}'},
        {"body": '{"amount":450 }'},
        {"body": ""},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_every_circumstance_is_sealed(changed: dict[str, object]) -> None:
    """B19: version, schema, key, predecessor and every byte of the body are bound."""
    assert sealed_bytes(None, **changed) != sealed_bytes()


@pytest.mark.parametrize("key", [a_task_key(2), a_task_key(1, tenant="globex")])
def test_a_seal_belongs_to_one_task_of_one_tenant(key: TaskKey) -> None:
    """B19: a sealed record copied over another task or tenant is worth nothing there."""
    assert sealed_bytes(key) != sealed_bytes()


def test_the_same_record_is_sealed_alike_in_every_process() -> None:
    """B09: nothing but the stored values goes in."""
    assert sealed_bytes() == sealed_bytes(TaskKey(tenant="acme", task_id=a_task_key().task_id))


def test_a_huge_body_fits_the_key_service() -> None:
    """The key service takes 4,096 bytes; what is sealed is a digest."""
    assert len(sealed_bytes(body="x" * 400_000)) == 32
