"""Signing secrets in Secrets Manager: one secret per tenant and source, which holds one or more of them.

Its text is ``{"secrets": [{"secret": "whsec_…", "accept_until": null}, …]}``. To rotate, put the new one in and give
the old one an `accept_until`; both count until then.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import Field, ValidationError

from shared.adapters.cloud_errors import CLOUD_ERRORS, code_of
from shared.adapters.webhooks.standard import SECRET_BYTES_MIN, read_secret
from shared.domain.errors import SecretsUnavailable
from shared.domain.instants import Instant
from shared.domain.records import Record
from shared.ports.signing_secrets import SigningSecret

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

# A secret that was withdrawn is believed this much longer at most; a warm function asks the store once a minute.
KEPT_SECONDS: Final = 60.0
# A secret that was put in is noticed at once, by whatever it signed. What is younger than this is fresh: a stranger's
# wrong signatures make us ask the store about once a second for a source, not once for each.
FRESH_SECONDS: Final = 1.0
# As many sources as one process may meet. Names that nobody knows take a place too, so there has to be an end.
SOURCES_MAX: Final = 500
# There is no such secret, or it is about to be deleted: its source may not send anything any more.
_NOBODY: Final = frozenset({"ResourceNotFoundException", "InvalidRequestException"})


class _StoredSecret(Record):
    secret: str
    accept_until: Instant | None = None


class _StoredSecrets(Record):
    # One for each rotation under way; a long list would only make every verification slow.
    secrets: tuple[_StoredSecret, ...] = Field(max_length=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    secrets: tuple[SigningSecret, ...]
    at: float


class SecretsManagerSigningSecrets:
    """Signing secrets by tenant and source.

    Args:
        prefix: the start of the secrets' names; tenant and source follow, and neither can hold a slash.
        clock: seconds that only ever grow.
        report: told in a sentence when a secret is stored that cannot be used; never told the secret.
    """

    def __init__(
        self,
        client: "SecretsManagerClient",
        prefix: str,
        *,
        clock: Callable[[], float],
        report: Callable[[str], None],
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._clock = clock
        self._report = report
        self._read: OrderedDict[str, _Read] = OrderedDict()

    def of(self, tenant: str, source: str, *, fresh: bool = False) -> tuple[SigningSecret, ...]:
        """See `SigningSecrets.of`."""
        name = f"{self._prefix}{tenant}/{source}"
        now = self._clock()
        kept = self._read.get(name)
        if kept is not None and now - kept.at < (FRESH_SECONDS if fresh else KEPT_SECONDS):
            return kept.secrets
        secrets = self._fetch(name)
        self._read[name] = _Read(secrets=secrets, at=now)
        self._read.move_to_end(name)
        while len(self._read) > SOURCES_MAX:
            self._read.popitem(last=False)
        return secrets

    def _fetch(self, name: str) -> tuple[SigningSecret, ...]:
        try:
            text = self._client.get_secret_value(SecretId=name).get("SecretString", "")
        except CLOUD_ERRORS as error:
            if code_of(error) in _NOBODY:
                return ()
            msg = f"the secret store did not answer: {code_of(error)}"
            raise SecretsUnavailable(msg) from error
        try:
            stored = _StoredSecrets.model_validate_json(text)
        except ValidationError:
            self._report(f"{name} is not a list of signing secrets")
            # From None: the error would show what is stored.
            msg = "the stored secret has another form"
            raise SecretsUnavailable(msg) from None
        return tuple(secret for each in stored.secrets if (secret := self._usable(name, each)) is not None)

    def _usable(self, name: str, stored: _StoredSecret) -> SigningSecret | None:
        try:
            key = read_secret(stored.secret)
        except ValueError:
            key = b""
        if len(key) < SECRET_BYTES_MIN:
            # It verifies nothing; the other secrets of the source go on counting.
            self._report(f"{name} holds a secret that is too short or not of the form whsec_<base64>")
            return None
        return SigningSecret(key=key, accept_until=stored.accept_until)
