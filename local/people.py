"""Two tenants and the people in them: who exists in the local AWS, with which roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who can log in. Rights come from the roles in the Authority records, never from the login."""

    name: str
    tenant: str
    roles: frozenset[str]
    may: str


_PEOPLE: Final = (
    Person(name="clerk-1", tenant="acme", roles=frozenset({"refund_clerk"}), may="start, read and amend refunds"),
    Person(name="manager-7", tenant="acme", roles=frozenset({"refund_approver"}), may="read and approve refunds"),
    Person(name="intern-2", tenant="acme", roles=frozenset({"viewer"}), may="read"),
    Person(name="operator-1", tenant="acme", roles=frozenset({"operator"}), may="operate tasks"),
    Person(name="buyer-3", tenant="acme", roles=frozenset({"payment_clerk"}), may="start, read and amend payments"),
    Person(name="treasurer-4", tenant="acme", roles=frozenset({"payment_approver"}), may="read and approve payments"),
    Person(name="controller-5", tenant="acme", roles=frozenset({"payment_approver"}), may="read and approve payments"),
    Person(
        name="payables-6", tenant="acme", roles=frozenset({"accounts_payable"}), may="read payments, release notices"
    ),
    Person(name="recruiter-8", tenant="acme", roles=frozenset({"hr_clerk"}), may="start, read and amend onboardings"),
    Person(name="lead-9", tenant="acme", roles=frozenset({"hr_lead"}), may="read onboardings, approve packets"),
    Person(name="newcomer-10", tenant="acme", roles=frozenset({"employee"}), may="answer about their own onboarding"),
    Person(name="clerk-g", tenant="globex", roles=frozenset({"refund_clerk"}), may="start, read and amend refunds"),
    Person(name="manager-g", tenant="globex", roles=frozenset({"refund_approver"}), may="read and approve refunds"),
)

PEOPLE: Final[Mapping[str, Person]] = {person.name: person for person in _PEOPLE}
