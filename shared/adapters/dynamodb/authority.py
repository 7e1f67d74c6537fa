"""The authority store on DynamoDB: the read side, and the rows as operators write them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from shared.adapters.dynamodb.items import Item, read_text, text
from shared.adapters.dynamodb.store_calls import BATCH_KEYS_MAX, Patience, StoreCalls
from shared.domain.authority import Principal
from shared.domain.errors import AuthorityUnreadable, EngineError
from shared.domain.identity import PrincipalRef
from shared.ports.authority import AuthoritySnapshot

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

ACTIVE: Final = "active"
DISABLED: Final = "disabled"


class DynamoAuthority:
    """Reads everything a gate asks for in one call, and trusts nothing it cannot read whole."""

    def __init__(self, client: "DynamoDBClient", table: str, patience: Patience | None = None) -> None:
        self._calls = StoreCalls(client, patience)
        self._table = table

    def read(self, principals: tuple[PrincipalRef, ...], *, freezes: tuple[str, ...] = ()) -> AuthoritySnapshot:
        """See `Authority.read`."""
        wanted = [principal_record(ref) for ref in principals] + [freeze_record(scope) for scope in freezes]
        rows = self._rows(dict.fromkeys(wanted))
        known = {ref.key: _principal(ref, rows[name]) for ref in principals if (name := principal_record(ref)) in rows}
        frozen = [_reason(rows[name]) for scope in freezes if (name := freeze_record(scope)) in rows]
        return AuthoritySnapshot(
            principals={name: principal for name, principal in known.items() if principal is not None},
            freeze=frozen[0] if frozen else None,
        )

    def _rows(self, records: Iterable[str]) -> dict[str, Item]:
        keys = [{"record": text(record)} for record in records]
        if not keys:
            return {}
        if len(keys) > BATCH_KEYS_MAX:
            msg = f"{len(keys)} records of authority at once are more than one read can hold"
            raise AuthorityUnreadable(msg)
        try:
            items = self._calls.batch_get({self._table: keys})[self._table]
            return {read_text(item, "record"): item for item in items}
        except EngineError as error:
            msg = "the authority store could not be read"
            raise AuthorityUnreadable(msg) from error


def principal_record(ref: PrincipalRef) -> str:
    """Return the key of a principal's record."""
    return f"principal#{ref.key}"


def freeze_record(scope: str) -> str:
    """Return the key of a freeze."""
    return f"freeze#{scope}"


def principal_item(ref: PrincipalRef, *, tenant: str, roles: Iterable[str], status: str = ACTIVE) -> Item:
    """Return a principal's record: whose they are and what they may be asked for."""
    return {
        "record": text(principal_record(ref)),
        "tenant": text(tenant),
        "roles": {"L": [text(role) for role in sorted(set(roles))]},
        "status": text(status),
    }


def freeze_item(scope: str, *, reason: str) -> Item:
    """Return a freeze; taking the record away lifts it."""
    return {"record": text(freeze_record(scope)), "reason": text(reason)}


def _principal(ref: PrincipalRef, item: Item) -> Principal | None:
    try:
        status, tenant, roles = read_text(item, "status"), read_text(item, "tenant"), _roles(item)
        principal = Principal(ref=ref, tenant=tenant, roles=roles)
    except (EngineError, ValidationError) as error:
        msg = "a principal's record cannot be read"
        raise AuthorityUnreadable(msg) from error
    return principal if status == ACTIVE else None


def _roles(item: Item) -> frozenset[str]:
    stored = item.get("roles", {})
    if "SS" in stored:
        return frozenset(stored["SS"])
    if "L" in stored:
        return frozenset(read_text({"role": role}, "role") for role in stored["L"])
    msg = "a principal's roles are neither a set nor a list of texts"
    raise AuthorityUnreadable(msg)


def _reason(item: Item) -> str:
    try:
        return read_text(item, "reason")
    except EngineError as error:
        msg = "a freeze cannot be read"
        raise AuthorityUnreadable(msg) from error
