"""Checkpoints of every schema ever released are read by this one, or quarantined with a reason; never guessed."""

import json
from pathlib import Path
from typing import Any

import pytest

from shared.domain.checkpoint import SCHEMA_VERSION, decode_checkpoint, encode_checkpoint
from shared.domain.migrations import MIGRATIONS, migrate
from shared.domain.seal import seal_input
from tests.fakes.story import Story

SAMPLES = Path(__file__).parent.parent.parent / "fixtures" / "checkpoints"
ALL = sorted(SAMPLES.glob("v*/*.json"))


def test_every_schema_version_has_samples() -> None:
    """I5: a version that was released and has no stored sample could not be tested ever after."""
    versions = {int(folder.name.removeprefix("v")) for folder in SAMPLES.iterdir()}

    assert versions == set(range(1, SCHEMA_VERSION + 1))
    assert all(list(folder.glob("*.json")) for folder in SAMPLES.iterdir())


@pytest.mark.parametrize("sample", ALL, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_stored_sample_is_read_and_written_again(sample: Path) -> None:
    """I5, I6: what an earlier release stored decodes here, and what is written from it decodes to the same."""
    body = migrate(json.loads(sample.read_text(encoding="utf-8")))

    task = decode_checkpoint(json.dumps(body))

    assert decode_checkpoint(encode_checkpoint(task)) == task
    assert task.schema_version == SCHEMA_VERSION


def test_a_sample_of_this_version_is_stored_to_the_byte() -> None:
    """B09: canonical form has no second spelling: writing a sample of this version again gives the same bytes."""
    for sample in (SAMPLES / f"v{SCHEMA_VERSION}").glob("*.json"):
        text = sample.read_text(encoding="utf-8").rstrip("\n")
        assert encode_checkpoint(decode_checkpoint(text)) == text


def test_migrations_are_taken_step_by_step() -> None:
    """I5: two releases behind is two steps, each by its own rule."""
    steps = {
        1: lambda body: {**body, "colour": "grey"},
        2: lambda body: {**body, "colour": body["colour"] + "ish"},
    }

    assert migrate({"schema_version": 1}, to=3, steps=steps) == {"schema_version": 3, "colour": "greyish"}


@pytest.mark.parametrize("version", [0, -1, SCHEMA_VERSION + 1, 10**30, "1", None, True, 1.0])
def test_a_version_without_a_way_here_is_refused(version: object) -> None:
    """I5: unknown, later and nonsensical versions are never guessed."""
    body: dict[str, Any] = {"schema_version": version}

    with pytest.raises(ValueError, match="schema"):
        migrate(body)


def test_the_steps_lead_to_this_version_without_a_gap() -> None:
    """Each release adds exactly the step from the version before it."""
    assert set(MIGRATIONS) == set(range(1, SCHEMA_VERSION))


def test_a_sealed_checkpoint_of_a_later_release_is_quarantined() -> None:
    """I5: its seal is right, and still nothing runs on a form that this release does not know."""
    story = Story()
    story.start()
    reseal(story, schema_version=SCHEMA_VERSION + 1)

    story.wake()

    assert story.status == "quarantined"
    assert f"schema {SCHEMA_VERSION + 1}" in (story.world.heads[story.key.key].quarantine or "")
    assert story.refunds == []


def reseal(story: Story, **changes: object) -> None:
    """Rewrite the latest checkpoint as another release would have written and sealed it."""
    head = story.world.heads[story.key.key]
    place = (story.key.key, head.version)
    sealed = story.world.checkpoints[place]
    body = json.loads(sealed.body) | changes
    text = json.dumps(body)
    sealer = story.machine.process().sealer
    seal = sealer.seal(
        seal_input(
            story.key,
            version=head.version,
            schema_version=body["schema_version"],
            key_id=sealed.key_id,
            previous_seal=body["previous_seal"],
            body=text,
        )
    )
    story.world.checkpoints[place] = sealed.model_copy(update={"body": text, "seal": seal})
