"""Who may speak to the provider: whoever knows the one API key in the secret store."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from sandbox.problems import Problem

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

# Long enough to spare the secret store under load, short enough that a withdrawn key dies within a breath.
KEPT_SECONDS: Final = 30.0
# A new key is looked for at once when one does not fit, but guessing does not turn into load on the secret store.
REREAD_AFTER_SECONDS: Final = 2.0
_SCHEME: Final = "bearer"


class Credentials:
    """The API key, read live and kept for a short while.

    Args:
        clock: seconds that only ever grow.
    """

    def __init__(self, client: SecretsManagerClient, secret_name: str, *, clock: Callable[[], float]) -> None:
        self._client = client
        self._secret_name = secret_name
        self._clock = clock
        self._kept: tuple[str, float] | None = None

    def demand(self, authorization: str | None) -> None:
        """Let a caller pass that shows the API key.

        Args:
            authorization: the header as it came.

        Raises:
            Problem: 401 for anyone else, and 503 while the key cannot be read: nobody passes unverified.
        """
        scheme, _, shown = (authorization or "").partition(" ")
        if scheme.lower() == _SCHEME and (self._fits(shown, KEPT_SECONDS) or self._fits(shown, REREAD_AFTER_SECONDS)):
            return
        raise Problem(HTTPStatus.UNAUTHORIZED, "not_authenticated", "show the API key as a bearer token")

    def _fits(self, shown: str, kept_seconds: float) -> bool:
        key = self._key(kept_seconds)
        # An empty key in the store would make every empty token fit.
        return key != "" and hmac.compare_digest(shown.encode(), key.encode())

    def _key(self, kept_seconds: float) -> str:
        now = self._clock()
        if self._kept is not None and now - self._kept[1] < kept_seconds:
            return self._kept[0]
        try:
            key = self._client.get_secret_value(SecretId=self._secret_name).get("SecretString", "")
        except (BotoCoreError, ClientError) as error:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE, "credentials_unreadable", "the API key cannot be verified now"
            ) from error
        self._kept = (key, now)
        return key
