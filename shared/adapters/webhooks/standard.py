"""Signatures of the Standard Webhooks specification, version 1 (HMAC-SHA256), over the bytes as they came.

Nothing is parsed here but the three headers, each by a strict grammar; a signature is compared with every secret that
counts, in the same time whichever of them fits, or none does.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from shared.ports.signing_secrets import SigningSecret

# How long after its signing an event is accepted: time for a retry or two, and for a captured one to be worthless.
AGE_SECONDS_MAX: Final = 300
# How far a sender's clock may be ahead of ours. A window as wide as the one behind would double a replay's life (B51).
AHEAD_SECONDS_MAX: Final = 30
# The specification's least strength of a secret. A shorter one, the empty one above all, verifies nothing.
SECRET_BYTES_MIN: Final = 24
# A sender signs with the secrets of one rotation. More is no sender, but somebody who makes us compute.
SIGNATURES_MAX: Final = 8
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - what secrets begin with

# Seconds since 1970, until the year 2286, as digits alone: no sign, fraction, exponent, blank or other script.
_TIMESTAMP: Final = re.compile(r"[1-9][0-9]{9}", re.ASCII)
# Visible ASCII. A dot would make the signed text ambiguous, and a comma comes from a header that was sent twice.
_EVENT_ID: Final = re.compile(r"[!-+\-/-~]{1,200}", re.ASCII)
_VERSION: Final = "v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One signed message as it came. Nothing in it is believed before `is_signed` says so."""

    event_id: str
    timestamp: str
    signatures: str
    body: bytes

    @property
    def well_formed(self) -> bool:
        """Whether id and timestamp follow their grammars."""
        return _EVENT_ID.fullmatch(self.event_id) is not None and _TIMESTAMP.fullmatch(self.timestamp) is not None

    def is_current(self, *, now: datetime) -> bool:
        """Whether it was signed a short while ago; only for a well-formed one."""
        age_seconds = now.timestamp() - int(self.timestamp)
        return -AHEAD_SECONDS_MAX <= age_seconds <= AGE_SECONDS_MAX

    def is_signed(self, secrets: Iterable[SigningSecret], *, now: datetime) -> bool:
        """Whether one of its signatures was made with one of the secrets that count now."""
        given = tuple(self._given())
        fits = False
        for secret in secrets:
            if len(secret.key) < SECRET_BYTES_MIN or not secret.is_valid(now=now):
                continue
            expected = sign(secret.key, event_id=self.event_id, timestamp=self.timestamp, body=self.body)
            for signature in given:
                # Compared even when one has fitted: the time tells nothing about which.
                fits = hmac.compare_digest(expected, signature) or fits
        return fits

    def _given(self) -> Iterator[bytes]:
        """The signatures of our version; what is unreadable, or of another version, is passed over."""
        parts = self.signatures.split(" ")
        if len(parts) > SIGNATURES_MAX:
            return
        for part in parts:
            version, _, encoded = part.partition(",")
            if version != _VERSION:
                continue
            try:
                yield base64.b64decode(encoded.encode("ascii"), validate=True)
            except (binascii.Error, UnicodeEncodeError):
                continue


def sign(key: bytes, *, event_id: str, timestamp: str, body: bytes) -> bytes:
    """Make the signature of a message: over id, timestamp and body, joined by dots, as they are sent."""
    signed = b".".join((event_id.encode("ascii"), timestamp.encode("ascii"), body))
    return hmac.new(key, signed, hashlib.sha256).digest()


def read_secret(text: str) -> bytes:
    """Read a secret in the form that senders are given: `whsec_` and base64, padded or not.

    Raises:
        ValueError: it has another form.
    """
    encoded = text.removeprefix(SECRET_PREFIX)
    if encoded == text:
        msg = f"a signing secret begins with {SECRET_PREFIX}"
        raise ValueError(msg)
    return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
