"""A tool that is one endpoint of an outside provider: a table of what it sends and what the answers prove.

What an answer to a request for an effect proves:

==================  ===========  ==============================================================================
answer              outcome      reason
==================  ===========  ==============================================================================
200, 201            done         if the record in it carries this key and these arguments; else nobody knows
202                 pending      accepted, and not finished
401, 403            not_sent     who asks is judged before what is asked, so nothing was done; our credential is
                                 at fault and not the action, which may be sent again with a good one
refusal on record   failed       a status with a problem code that the tool lists: the provider itself, not
                                 something in between, promises that it refuses before it acts
any other 4xx       unknown      the status alone is anybody's: a gateway's 400 or 404, a 408 or 425 of a proxy that
                                 had passed the request on, a 409 because an earlier attempt is still at work, a
                                 429 that came up from behind the part that had acted, a 422 because the key
                                 already stands for something
3xx                 unknown      not followed: another host is not the one that was agreed on
5xx                 unknown      it broke while it was at work
no whole answer     unknown      timeout, reset, cut short, not JSON
no connection       not_sent     nothing left us
no secret           not_sent     nothing left us
==================  ===========  ==============================================================================

A look-up answers ``done``, ``pending``, ``failed`` from the provider's own record, or ``absent`` when the provider
itself says that it has none: a 404 without its problem code may come from a gateway that knows nothing. Everything
else is an error.

A tool that reads asks for one record by its name, and ``failed`` says that the provider has none of that name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus

from pydantic import BaseModel

from shared.domain.action import ToolOutcome


class Lookup(StrEnum):
    """How the provider can be asked what became of a call."""

    KEY = "key"
    """By the idempotency key, which it honours: ``GET /<collection>/<key>``."""

    REFERENCE = "reference"
    """By our reference, which is the key in a field of that name; it honours no keys: ``GET /<collection>?reference=``.

    No argument may bring the reference: one that two actions share would make one of them find the other's record.
    """

    NOTHING = "nothing"
    """Not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refusal by which the provider promises that it did nothing."""

    status: HTTPStatus
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTool:
    """One endpoint, as data.

    Args:
        name: the tool's name in the catalogue.
        collection: where the provider takes the request and keeps the record.
        arguments: the strict model of the arguments; they are the body, beside a reference where it is asked by one.
        lookup: how the provider can be asked afterwards.
        refusals: the only answers that prove a refusal.
        absent_code: the problem code of the provider's own 404 to a look-up by key.
        statuses: what the status of the provider's record means; any other is unknown.
        facts: fields of the record that the ledger keeps.
        reads: the argument that names the record, for a tool that reads it and asks for no effect.
        unsent: arguments that show people what they decide about; the provider is not told them.
    """

    name: str
    collection: str
    arguments: type[BaseModel]
    lookup: Lookup
    refusals: frozenset[Refusal]
    statuses: Mapping[str, ToolOutcome]
    facts: tuple[str, ...] = ()
    absent_code: str = "not_found"
    reads: str | None = None
    unsent: frozenset[str] = frozenset()
