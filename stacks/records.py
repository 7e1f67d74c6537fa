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

# The operators' list of tasks: by tenant and status, oldest first. A list for people; never read to decide.
QUEUE_INDEX: Final = "queue"
QUEUE_PROJECTION: Final = ("workflow", "stage", "owner", "due_at", "version")

TEXT: Final = dynamodb.AttributeType.STRING
NUMBER: Final = dynamodb.AttributeType.NUMBER


@dataclass(frozen=True, slots=True)
class SortKey:
    """Second half of a primary key."""

    name: str
    kind: dynamodb.AttributeType = TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKind:
    """One table: its key, and the few things that set it apart."""

    name: str
    partition: str
    sort: SortKey | None = None
    is_purged: bool = False
    has_queue_index: bool = False
    has_stream: bool = False

    @property
    def construct_id(self) -> str:
        """Id in the construct tree; the logical id of a stateful resource hangs on it."""
        return self.name.capitalize()

    @property
    def setting(self) -> str:
        """Environment variable through which a function learns the table's name."""
        return f"{self.name.upper()}_TABLE"


RECORD_KINDS: Final = (
    # Progress: where each task stands. Written in one commit.
    RecordKind(name="heads", partition="task", has_queue_index=True),
    RecordKind(name="checkpoints", partition="task", sort=SortKey("version", NUMBER)),
    RecordKind(name="waits", partition="correlation"),
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
