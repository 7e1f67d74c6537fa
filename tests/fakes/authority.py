"""The authority store, in memory."""

from shared.domain.authority import Principal
from shared.domain.errors import AuthorityUnreadable
from shared.domain.identity import PrincipalRef
from shared.ports.authority import AuthoritySnapshot
from tests.fakes.calls import Calls
from tests.fakes.store import World


def _no_answer() -> Exception:
    return AuthorityUnreadable("the authority store did not answer")


class FakeAuthority:
    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def read(self, principals: tuple[PrincipalRef, ...], *, freezes: tuple[str, ...] = ()) -> AuthoritySnapshot:
        with self._calls.around("authority.read", dropped=_no_answer), self._world as world:
            records = world.authority
            if records.unreadable:
                raise _no_answer()
            known = {ref.key: (ref, records.principals.get(ref.key)) for ref in principals}
            return AuthoritySnapshot(
                principals={
                    name: Principal(ref=ref, tenant=row.tenant, roles=row.roles)
                    for name, (ref, row) in known.items()
                    if row is not None and row.active
                },
                freeze=next((records.freezes[scope] for scope in freezes if scope in records.freezes), None),
            )
