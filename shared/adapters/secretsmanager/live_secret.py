"""A secret that is read when it is needed, so that a rotation needs no deployment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

# A warm function makes many calls a minute; a rotated secret is picked up within one, and at once after a refusal.
KEPT_SECONDS: Final = 60.0


class SecretUnreadable(Exception):
    """The secret store did not answer, or holds nothing usable. Nobody may go on without the secret."""


class LiveSecret:
    """One secret, kept for a short while.

    Args:
        name: name or ARN of the secret.
        clock: seconds that only ever grow.
    """

    def __init__(
        self,
        client: SecretsManagerClient,
        name: str,
        *,
        clock: Callable[[], float],
        kept_seconds: float = KEPT_SECONDS,
    ) -> None:
        """Nothing is read yet."""
        self._client = client
        self._name = name
        self._clock = clock
        self._kept_seconds = kept_seconds
        self._kept: tuple[str, float] | None = None

    def read(self) -> str:
        """Answer the secret's text.

        Raises:
            SecretUnreadable: it could not be read, or is empty; an older value is not used beyond its time.
        """
        now = self._clock()
        if self._kept is not None and now - self._kept[1] < self._kept_seconds:
            return self._kept[0]
        self._kept = None
        try:
            text = self._client.get_secret_value(SecretId=self._name).get("SecretString", "")
        except (BotoCoreError, ClientError) as error:
            raise SecretUnreadable(f"the secret store did not answer: {type(error).__name__}") from error
        if not text:
            raise SecretUnreadable("the secret is empty")
        self._kept = (text, now)
        return text

    def forget(self) -> None:
        """Drop the kept value: somebody refused it, so the next read asks the store."""
        self._kept = None
