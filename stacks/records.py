"""The kinds of record Holdfast keeps, one table each.

Separate tables keep the grants readable: who may write what is one line per function and kind.
Deployed tables are bound to these rows; a change of a key replaces the table and is refused by CloudFormation
because the name is taken. Add a kind instead.
"""

from dataclasses import dataclass
from typing import Final

from aws_cdk import aws_dynamodb as dynamodb

# Attribute that holds the epoch second after which DynamoDB may drop a row. No decision is ever taken from its absence.
PURGE_ATTRIBUTE: Final = "purge_at"

TEXT: Final = dynamodb.AttributeType.STRING
NUMBER: Final = dynamodb.AttributeType.NUMBER


@dataclass(frozen=True, slots=True)
class SortKey:
    """Second half of a primary key."""

    name: str
    kind: dynamodb.AttributeType = TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """Another way to list a kind. A list only: whoever acts on a row reads the row itself first."""

    name: str
    partition: str
    sort: str
    # What the list shows beside the keys; nothing makes it a list of keys.
    shows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKind:
    """One table: its key, and the few things that set it apart."""

    name: str
    partition: str
    sort: SortKey | None = None
    is_purged: bool = False
    indexes: tuple[Index, ...] = ()
    has_stream: bool = False

    @property
    def construct_id(self) -> str:
        """Id in the construct tree; the logical id of a stateful resource hangs on it."""
        return self.name.capitalize()

    @property
    def setting(self) -> str:
        """Environment variable through which a function learns the table's name."""
        return f"{self.name.upper()}_TABLE"


# The operators' queue: by tenant and status, oldest first.
# It shows nothing that every commit changes: such a column would rewrite the index each time.
QUEUE: Final = Index(
    name="queue", partition="queue", sort="since", shows=("workflow", "stage", "owner", "due_at", "reason")
)
# The sweep's list: only live tasks are in it, those that are due for a check-up first.
WATCH: Final = Index(name="watch", partition="watch", sort="check_at")
# What a task has waited for, the oldest first: for the few who look at a task that cannot be trusted.
WAITS_OF_TASK: Final = Index(name="task", partition="task", sort="opened_at")

RECORD_KINDS: Final = (
    # Progress: where each task stands. Written in one commit.
    RecordKind(name="heads", partition="task", indexes=(QUEUE, WATCH)),
    RecordKind(name="checkpoints", partition="task", sort=SortKey("version", NUMBER)),
    RecordKind(name="waits", partition="correlation", indexes=(WAITS_OF_TASK,)),
    RecordKind(name="tokens", partition="wait", is_purged=True),
    RecordKind(name="actions", partition="task", sort=SortKey("operation")),
    RecordKind(name="inbox", partition="source", sort=SortKey("event_id"), is_purged=True),
    RecordKind(name="outbox", partition="task", sort=SortKey("message"), has_stream=True),
    RecordKind(name="leases", partition="task"),
    # Memory: what was believed, by whom, until when.
    RecordKind(name="memory", partition="scope", sort=SortKey("record"), is_purged=True),
    # Authority: who may do what. Read live, written by operators.
    RecordKind(name="authority", partition="record"),
)
