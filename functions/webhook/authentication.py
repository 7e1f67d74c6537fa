"""Who is speaking: nobody, unless a secret of the addressed tenant's source has signed exactly these bytes just now."""

import re
from datetime import datetime

from functions.webhook.incoming import Incoming
from shared.domain.errors import NotAuthenticated
from shared.domain.identity import NAME_PATTERN, TENANT_PATTERN
from shared.ports.signing_secrets import SigningSecrets


def authenticate(incoming: Incoming, secrets: SigningSecrets, *, now: datetime) -> None:
    """Check a delivery's form, its age and its signature, in this order. Nothing but the secrets is read.

    An unknown tenant, an unknown source and a wrong signature fail alike.

    Raises:
        NotAuthenticated: says for our own log which check failed.
        SecretsUnavailable: the secrets could not be read; a check that cannot be made is never left out (B74).
    """
    delivery = incoming.delivery
    if re.match(TENANT_PATTERN, incoming.tenant) is None or re.match(NAME_PATTERN, incoming.source) is None:
        raise NotAuthenticated("no tenant or source can have this name")
    if not delivery.well_formed:
        raise NotAuthenticated("the id or the timestamp does not have its form")
    if not delivery.is_current(now=now):
        raise NotAuthenticated("signed too long ago, or ahead of time")
    # What was read a while ago may have been rotated since: before a signature is refused, the store is asked (B74).
    for fresh in (False, True):
        if delivery.is_signed(secrets.of(incoming.tenant, incoming.source, fresh=fresh), now=now):
            return
    raise NotAuthenticated("no signature fits")
