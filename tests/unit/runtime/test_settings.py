"""Settings from the environment."""

import pytest

from shared.domain.errors import InvariantBroken
from shared.runtime.settings import ApiSettings, DeliverSettings, PerformSettings, ProposeSettings

API = {
    name: f"value of {name}"
    for name in (
        "HOLDFAST_STAGE",
        "HEADS_TABLE",
        "CHECKPOINTS_TABLE",
        "WAITS_TABLE",
        "INBOX_TABLE",
        "OUTBOX_TABLE",
        "ACTIONS_TABLE",
        "AUTHORITY_TABLE",
        "EVIDENCE_BUCKET",
        "SEAL_KEY_ID",
        "MODEL_ID",
        "OIDC_ISSUER",
        "OIDC_CLIENT_ID",
    )
}


def test_settings_are_read_from_the_variables_of_their_name() -> None:
    """A function reads its own variables and no others, whatever else the environment holds."""
    settings = ApiSettings.read({**API, "TOKENS_TABLE": "not ours", "PATH": "/bin"})

    assert settings.heads_table == "value of HEADS_TABLE"
    assert set(settings.model_dump()) == {name.lower() for name in API}


@pytest.mark.parametrize("missing", sorted(API))
def test_a_missing_variable_is_named(missing: str) -> None:
    """A bad deployment says at its cold start what to set, and not what the others are."""
    with pytest.raises(InvariantBroken, match=rf"ApiSettings: .*{missing}") as refused:
        ApiSettings.read({name: value for name, value in API.items() if name != missing})

    assert "value of" not in refused.value.message


def test_all_missing_variables_are_named_at_once() -> None:
    """Nobody deploys three times to learn of three variables; an empty one is missing too."""
    with pytest.raises(InvariantBroken, match=r"ARTIFACTS_BUCKET") as refused:
        ProposeSettings.read({"HOLDFAST_STAGE": "dev", "MODEL_ID": ""})

    assert "MODEL_ID" in refused.value.message


def test_maps_are_read_from_json() -> None:
    """Machines and tools come as one JSON object each."""
    settings = DeliverSettings.read(
        {
            name: '{"refund": "arn:1"}' if name == "STATE_MACHINE_ARNS" else "x"
            for name in (field.upper() for field in DeliverSettings.model_fields)
        }
    )

    assert settings.state_machine_arns == {"refund": "arn:1"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"issue_refund": 1}', "null"])
def test_a_map_of_another_form_is_named(text: str) -> None:
    """A map that cannot be read stops the cold start, not the first task that needs it."""
    variables = {
        name: text if name == "TOOL_FUNCTIONS" else "x"
        for name in (field.upper() for field in PerformSettings.model_fields)
    }

    with pytest.raises(InvariantBroken, match="TOOL_FUNCTIONS"):
        PerformSettings.read(variables)
