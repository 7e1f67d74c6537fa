"""Actions and the ledger's rules: what may be sent, what has to be asked first, and what only a person may decide."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

from pydantic import Field

from shared.domain.canonical import Json, canonical, digest
from shared.domain.identity import Name, Reference, TaskId, TenantId
from shared.domain.instants import Instant
from shared.domain.records import Record

Scalar: TypeAlias = "str | int | bool | None"
Arguments = dict[str, Scalar]

# A third failure in a row has always been an outage or a bug; more tries only hide it.
DISPATCH_ATTEMPTS_MAX: Final = 3
# Asking costs nothing downstream, and a provider may take a while to know its own outcome.
LOOKUPS_MAX: Final = 5
# Longer than the function that holds it may live (20 s), so that a lapsed lease means a dead worker.
ACTION_LEASE: Final = timedelta(seconds=25)
# What is kept of a provider's answer: a sentence, and a handful of facts. The rest is the provider's to keep.
REASON_CHARACTERS_MAX: Final = 300
FACTS_BYTES_MAX: Final = 2_000
# The first pause before an unclear outcome is looked at again; it doubles with every try.
RETRY_PAUSE: Final = timedelta(seconds=5)
RETRY_PAUSE_MAX: Final = timedelta(minutes=15)


class EffectClass(StrEnum):
    """What may be done after a crash or without a clear answer."""

    READ = "read"
    KEYED_WRITE = "keyed_write"
    REVERSIBLE_WRITE = "reversible_write"
    IRREVERSIBLE_WRITE = "irreversible_write"


class ActionStatus(StrEnum):
    """How far an action is known to have come."""

    INTENT = "intent"
    IN_FLIGHT = "in_flight"
    DONE = "done"
    FAILED = "failed"
    OUTCOME_UNKNOWN = "outcome_unknown"
    VOID = "void"


SETTLED: Final = frozenset({ActionStatus.DONE, ActionStatus.FAILED, ActionStatus.VOID})


class ActionSpec(Record):
    """A tool and its normalised arguments: flat, typed, and the same bytes wherever they are digested."""

    tool: Name
    arguments: Arguments

    def as_json(self) -> dict[str, Json]:
        """Return the value that digests are made of."""
        return {"tool": self.tool, "arguments": dict(self.arguments)}


class Action(Record):
    """A permitted effect, as the sealed checkpoint holds it. `perform` takes its arguments from here only."""

    operation: str
    ordinal: Annotated[int, Field(ge=1)]
    request_version: Annotated[int, Field(ge=1)]
    spec: ActionSpec
    effect: EffectClass
    approval_id: Reference | None = None
    undoes: str | None = None
    status: ActionStatus = ActionStatus.INTENT

    @property
    def digest(self) -> str:
        """What the ledger row, the checkpoint and the dispatch have to agree on."""
        return digest("action", {"operation": self.operation, **self.spec.as_json()})


class ActionRow(Record):
    """The ledger's row for one operation key.

    The row is written in the commit that decided the action. Its fence counts claims: whoever holds an older
    number has lost the right to settle.
    """

    tenant: TenantId
    task_id: TaskId
    operation: str
    tool: Name
    effect: EffectClass
    digest: str
    version: int
    approval_id: Reference | None = None
    undoes: str | None = None
    status: ActionStatus = ActionStatus.INTENT
    fence: int = 0
    lease_ends_at: Instant | None = None
    attempts: int = 0
    lookups: int = 0
    first_sent_at: Instant | None = None
    intended_at: Instant
    settled_at: Instant | None = None
    reference: str | None = None
    facts: Arguments = Field(default_factory=dict)
    reason: str = ""


class ToolOutcome(StrEnum):
    """The answers a tool may give. Anything else, a timeout or an error included, is `UNKNOWN` to the ledger."""

    DONE = "done"
    FAILED = "failed"
    ABSENT = "absent"
    PENDING = "pending"
    NOT_SENT = "not_sent"
    UNKNOWN = "unknown"


class ToolReply(Record):
    """What a tool said about one operation key.

    ``failed`` and ``not_sent`` are promises that nothing happened; ``absent`` answers a look-up only.
    """

    outcome: ToolOutcome
    reference: Annotated[str, Field(max_length=200)] | None = None
    facts: Arguments = Field(default_factory=dict)
    reason: str = ""


class Verb(StrEnum):
    """What the ledger allows next for one row."""

    ANSWER = "answer"
    BUSY = "busy"
    SEND = "send"
    LOOK_UP = "look_up"
    WITHHOLD = "withhold"
    REVIEW = "review"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStep:
    """A verb with its reason."""

    verb: Verb
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRules:
    """What the ledger has to know about a tool.

    `key_window` is how long the provider remembers a key; None is for ever.
    """

    effect: EffectClass
    can_look_up: bool
    key_window: timedelta | None = None


def next_ledger_step(row: ActionRow, rules: EffectRules, *, now: datetime, may_send: bool = True) -> LedgerStep:
    """Decide what may be done for an operation now.

    A lapsed lease is never read as "it did not happen" (B01): a row in flight without a live lease is unknown.

    Args:
        may_send: whether the action may leave the system now. If not, what never left is withheld, and what may have
            left is asked about, which needs nobody's permission.
    """
    if row.status in SETTLED:
        return LedgerStep(verb=Verb.ANSWER, reason="the outcome is known")
    if row.lease_ends_at is not None and now < row.lease_ends_at:
        return LedgerStep(verb=Verb.BUSY, reason="another attempt is at work on this operation")
    if row.status is ActionStatus.INTENT:
        return _fresh(row) if may_send else LedgerStep(verb=Verb.WITHHOLD, reason="it may not be sent now")
    return _unclear(row, rules, now=now, may_send=may_send)


def _fresh(row: ActionRow) -> LedgerStep:
    if row.attempts >= DISPATCH_ATTEMPTS_MAX and row.effect is not EffectClass.READ:
        return LedgerStep(verb=Verb.REVIEW, reason=f"could not be sent in {row.attempts} attempts")
    if row.attempts >= LOOKUPS_MAX:
        return LedgerStep(verb=Verb.REVIEW, reason=f"could not be read in {row.attempts} attempts")
    return LedgerStep(verb=Verb.SEND, reason="nothing has been sent under this key")


def _unclear(row: ActionRow, rules: EffectRules, *, now: datetime, may_send: bool) -> LedgerStep:
    if rules.effect is EffectClass.READ:
        if row.attempts >= LOOKUPS_MAX:
            return LedgerStep(verb=Verb.REVIEW, reason=f"no answer in {row.attempts} reads")
        return LedgerStep(verb=Verb.SEND, reason="a read may be repeated")
    if may_send and _may_repeat_key(row, rules, now=now):
        return LedgerStep(verb=Verb.SEND, reason="the provider honours the key, so the same key is sent again")
    if rules.can_look_up and row.lookups < LOOKUPS_MAX:
        return LedgerStep(verb=Verb.LOOK_UP, reason="the provider is asked what happened before anything is sent")
    if rules.can_look_up:
        return LedgerStep(verb=Verb.REVIEW, reason=f"no clear answer in {row.lookups} look-ups")
    return LedgerStep(verb=Verb.REVIEW, reason="the outcome is unknown and the provider cannot be asked")


def _may_repeat_key(row: ActionRow, rules: EffectRules, *, now: datetime) -> bool:
    if rules.effect is not EffectClass.KEYED_WRITE or row.attempts >= DISPATCH_ATTEMPTS_MAX:
        return False
    if rules.key_window is None or row.first_sent_at is None:
        return True
    # The key has to be remembered when the request arrives, and a send may take as long as its lease.
    return now + ACTION_LEASE < row.first_sent_at + rules.key_window


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What an attempt writes into the row it holds."""

    status: ActionStatus
    reference: str | None
    facts: Mapping[str, Scalar]
    reason: str


def settlement_of(reply: ToolReply, row: ActionRow, *, asked: Verb) -> Settlement:
    """Turn a tool's answer into what the ledger stores.

    An irreversible effect whose look-up found nothing is not free to be sent again: a person decides (the request
    may still be on its way). For every other class an authoritative "absent" is proof that nothing happened.
    """
    status = {
        ToolOutcome.DONE: ActionStatus.DONE,
        ToolOutcome.FAILED: ActionStatus.FAILED,
        ToolOutcome.NOT_SENT: ActionStatus.INTENT if asked is Verb.SEND else ActionStatus.OUTCOME_UNKNOWN,
        ToolOutcome.PENDING: ActionStatus.OUTCOME_UNKNOWN,
        ToolOutcome.UNKNOWN: ActionStatus.OUTCOME_UNKNOWN,
        ToolOutcome.ABSENT: _after_absent(row.effect) if asked is Verb.LOOK_UP else ActionStatus.OUTCOME_UNKNOWN,
    }[reply.outcome]
    definite = reply.outcome in {ToolOutcome.NOT_SENT, ToolOutcome.FAILED}
    if asked is Verb.SEND and definite and row.effect is not EffectClass.READ and _sent_before(row):
        # The answer speaks of this attempt alone; an earlier one under the same key may have arrived and acted.
        status = ActionStatus.OUTCOME_UNKNOWN
    return Settlement(
        status=status,
        reference=reply.reference,
        facts=_storable(reply.facts),
        reason=reply.reason[:REASON_CHARACTERS_MAX],
    )


def _storable(facts: Arguments) -> Arguments:
    """Keep of a provider's facts what a checkpoint can hold; too much of them, or what has no one form, is left out.

    What happened has happened: no detail of it may keep it from being written down.
    """
    kept: Arguments = {}
    for name, value in facts.items():
        try:
            fits = len(canonical({**kept, name: value})) <= FACTS_BYTES_MAX
        except ValueError:
            continue
        if fits:
            kept[name] = value
    return kept


def _sent_before(row: ActionRow) -> bool:
    """Whether an attempt before the one that holds the lease may have sent something.

    The first uncertain send's instant is kept until something proves that nothing was sent; then it is forgotten.
    """
    if row.first_sent_at is None or row.lease_ends_at is None:
        return False
    return row.first_sent_at < row.lease_ends_at - ACTION_LEASE


def _after_absent(effect: EffectClass) -> ActionStatus:
    if effect is EffectClass.IRREVERSIBLE_WRITE:
        return ActionStatus.OUTCOME_UNKNOWN
    return ActionStatus.INTENT


def retry_pause(tries: int) -> timedelta:
    """How long to wait before an unclear operation is looked at again: doubling, bounded."""
    pause = RETRY_PAUSE
    for _ in range(1, min(tries, 20)):
        pause *= 2
    return min(pause, RETRY_PAUSE_MAX)
