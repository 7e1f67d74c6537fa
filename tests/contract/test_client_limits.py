"""Every cloud client gives up before the function that uses it is ended (B58)."""

from typing import Any

import pytest

from shared.adapters import aws
from shared.adapters.aws import LIMITS
from shared.adapters.dynamodb.store_calls import FIRST_PAUSE_SECONDS, TRIES_MAX, UNANSWERED_MAX

# The functions' own limits, as deployed: the shortest one that makes this kind of call.
FUNCTION_SECONDS = {
    "dynamodb": 15,
    "kms": 15,
    "s3": 15,
    "bedrock-runtime": 60,
    "lambda": 20,
    "stepfunctions": 10,
    "events": 30,
    "scheduler": 30,
    "secretsmanager": 15,
}


@pytest.fixture(autouse=True)
def _somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give clients a region and keys, as the runtime does."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


def test_every_client_has_limits_and_a_function_to_fit_into() -> None:
    """A service that is added here has to say for whom it has to be quick enough."""
    assert set(LIMITS) == set(FUNCTION_SECONDS)


@pytest.mark.parametrize("service", sorted(FUNCTION_SECONDS))
def test_one_call_fits_into_its_function(service: str) -> None:
    """Connecting and reading, times attempts, with a margin for what is done with the answer."""
    assert LIMITS[service].seconds_max < FUNCTION_SECONDS[service] - 2


def test_a_commit_that_nobody_answers_fits_into_the_shortest_function() -> None:
    """All unanswered tries and the longest pauses between them end before `api` is ended."""
    pauses = sum(FIRST_PAUSE_SECONDS * 2**tries for tries in range(TRIES_MAX - 1))
    assert UNANSWERED_MAX * LIMITS["dynamodb"].seconds_max + pauses < FUNCTION_SECONDS["dynamodb"] - 2


@pytest.mark.parametrize("service", ["dynamodb", "bedrock-runtime", "lambda"])
def test_nothing_underneath_repeats_what_must_be_counted(service: str) -> None:
    """B11, B22, B58: a hidden retry of a commit, a model call or an effect is one that nobody knows of."""
    assert LIMITS[service].attempts == 1


@pytest.mark.parametrize(
    ("make", "service"),
    [
        (aws.dynamodb, "dynamodb"),
        (aws.kms, "kms"),
        (aws.s3, "s3"),
        (aws.bedrock, "bedrock-runtime"),
        (aws.lambda_, "lambda"),
        (aws.stepfunctions, "stepfunctions"),
        (aws.eventbridge, "events"),
        (aws.scheduler, "scheduler"),
    ],
)
def test_a_client_is_made_once_with_its_limits(make: Any, service: str) -> None:
    """What the table says is what botocore was told."""
    made = make()
    config, limits = made.meta.config, LIMITS[service]
    assert make() is made
    assert made.meta.service_model.service_name == service
    assert (config.connect_timeout, config.read_timeout) == (limits.connect_seconds, limits.read_seconds)
    assert config.retries == {"total_max_attempts": limits.attempts, "mode": "standard"}
