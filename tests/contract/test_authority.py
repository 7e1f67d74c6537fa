"""The contract of `Authority`, on the fake and on DynamoDB Local."""

from typing import TYPE_CHECKING, Any

import pytest

from shared.adapters.dynamodb.authority import principal_item
from shared.domain.authority import Principal
from shared.domain.errors import AuthorityUnreadable
from shared.domain.identity import PrincipalRef
from tests.contract.faults import Answer, Faults, Refusal, Unreachable
from tests.contract.stores import BRISK, Stores, fake_stores, real_stores
from tests.contract.tables import table_name
from tests.fakes.store import World

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@pytest.fixture
def ref(tenant: str) -> PrincipalRef:
    """Make a principal that no other test knows."""
    return PrincipalRef(issuer="https://issuer.test/pool", subject=f"clerk-of-{tenant}")


def test_a_principal_is_read_with_tenant_and_roles(stores: Stores, ref: PrincipalRef, tenant: str) -> None:
    """Exactly the roles that were written; none may be none at all."""
    stores.back_door.grant(ref, tenant=tenant, roles={"refund_clerk", "viewer"})
    bare = PrincipalRef(issuer=ref.issuer, subject=f"{ref.subject}-bare")
    stores.back_door.grant(bare, tenant=tenant, roles=set())

    snapshot = stores.authority.read((ref, bare, ref))

    assert snapshot.principals == {
        ref.key: Principal(ref=ref, tenant=tenant, roles=frozenset({"refund_clerk", "viewer"})),
        bare.key: Principal(ref=bare, tenant=tenant, roles=frozenset()),
    }
    assert snapshot.freeze is None


def test_a_change_of_rights_counts_at_once(stores: Stores, ref: PrincipalRef, tenant: str) -> None:
    """B06, A3: the next read after a role was taken, or the person disabled, says so."""
    stores.back_door.grant(ref, tenant=tenant, roles={"refund_approver", "viewer"})
    stores.back_door.grant(ref, tenant=tenant, roles={"viewer"})
    assert stores.authority.read((ref,)).principals[ref.key].roles == {"viewer"}

    stores.back_door.grant(ref, tenant=tenant, roles={"viewer"}, active=False)
    assert stores.authority.read((ref,)).principals == {}


def test_who_is_not_known_is_missing(stores: Stores, ref: PrincipalRef, tenant: str) -> None:
    """B75: the same subject of another issuer, or a look-alike, is somebody else."""
    stores.back_door.grant(ref, tenant=tenant, roles={"viewer"})
    others = (
        PrincipalRef(issuer="https://other.test/pool", subject=ref.subject),
        PrincipalRef(issuer=ref.issuer, subject=ref.subject.upper()),
        PrincipalRef(issuer=f"{ref.issuer}:{ref.subject[:5]}", subject=ref.subject[5:]),
    )
    assert stores.authority.read(others).principals == {}


def test_the_first_freeze_that_was_asked_for_applies(stores: Stores, tenant: str) -> None:
    """A6: a freeze of any of the scopes is seen; scopes nobody asked about are not."""
    stores.back_door.freeze(f"tenant#{tenant}", "an incident")
    stores.back_door.freeze(f"workflow#{tenant}", "a bad release")

    def read(*scopes: str) -> str | None:
        return stores.authority.read((), freezes=scopes).freeze

    assert read(f"tool#{tenant}", f"tenant#{tenant}", f"workflow#{tenant}") == "an incident"
    assert read(f"workflow#{tenant}", f"tenant#{tenant}") == "a bad release"
    assert read(f"tool#{tenant}") is None


def test_asking_nothing_answers_nothing(stores: Stores) -> None:
    """No read is made for it either."""
    snapshot = stores.authority.read(())
    assert (snapshot.principals, snapshot.freeze) == ({}, None)


def test_the_fake_can_be_unreadable() -> None:
    """The fake fails as the real store does: with the one error that means deny."""
    world = World()
    world.authority.unreadable = True

    with pytest.raises(AuthorityUnreadable):
        fake_stores(world).authority.read(())


@pytest.mark.parametrize(
    "fault",
    [
        Refusal(code="ThrottlingException"),
        Refusal(code="InternalServerError", status=500),
        Refusal(code="AccessDeniedException"),
        Refusal(code="ResourceNotFoundException"),
        Unreachable(),
    ],
    ids=["throttled", "server fault", "denied", "no table", "unreachable"],
)
def test_a_store_that_does_not_answer_allows_nothing(faults: Faults, ref: PrincipalRef, fault: Any) -> None:
    """B06 d, B04: whatever keeps the records from being read is an unreadable authority, never an empty one."""
    faults.plan("BatchGetItem", *[fault] * 6)
    with pytest.raises(AuthorityUnreadable):
        real_stores(faults.client, BRISK).authority.read((ref,))


def test_a_half_answered_read_is_asked_again(faults: Faults, ref: PrincipalRef, tenant: str) -> None:
    """A busy table answers in parts; nobody is missed because of it."""
    stores = real_stores(faults.client, BRISK)
    stores.back_door.grant(ref, tenant=tenant, roles={"viewer"})
    keys = [{"record": {"S": f"principal#{ref.key}"}}]
    half = Answer(body={"Responses": {}, "UnprocessedKeys": {table_name("authority"): {"Keys": keys}}})
    faults.plan("BatchGetItem", half, half)

    assert stores.authority.read((ref,)).principals[ref.key].roles == {"viewer"}

    faults.plan("BatchGetItem", *[half] * 6)
    with pytest.raises(AuthorityUnreadable):
        stores.authority.read((ref,))


@pytest.mark.parametrize(
    "damage",
    [
        {"roles": {"S": "refund_approver"}},
        {"roles": {"L": [{"N": "1"}]}},
        {"roles": {"L": [{"S": "Not A Role"}]}},
        {"tenant": {"S": "Not A Tenant"}},
        {"status": {"BOOL": True}},
    ],
)
def test_a_malformed_principal_allows_nothing(
    dynamodb: "DynamoDBClient", ref: PrincipalRef, tenant: str, damage: dict[str, Any]
) -> None:
    """B04: a record that cannot be read whole is not read in part."""
    good = principal_item(ref, tenant=tenant, roles=["viewer"])
    dynamodb.put_item(TableName=table_name("authority"), Item=good | damage)
    with pytest.raises(AuthorityUnreadable):
        real_stores(dynamodb).authority.read((ref,))


def test_roles_may_be_a_set(dynamodb: "DynamoDBClient", ref: PrincipalRef, tenant: str) -> None:
    """B09: a set, as a person might write it, has no order to rely on and needs none."""
    row = principal_item(ref, tenant=tenant, roles=[]) | {"roles": {"SS": ["viewer", "operator"]}}
    dynamodb.put_item(TableName=table_name("authority"), Item=row)
    assert real_stores(dynamodb).authority.read((ref,)).principals[ref.key].roles == {"operator", "viewer"}


def test_a_freeze_without_reason_is_no_empty_answer(dynamodb: "DynamoDBClient", tenant: str) -> None:
    """A6: a half-written freeze denies rather than being overlooked."""
    dynamodb.put_item(TableName=table_name("authority"), Item={"record": {"S": f"freeze#tenant#{tenant}"}})
    with pytest.raises(AuthorityUnreadable):
        real_stores(dynamodb).authority.read((), freezes=(f"tenant#{tenant}",))
