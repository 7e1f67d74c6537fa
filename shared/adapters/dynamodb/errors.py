"""What DynamoDB's error codes mean here. Messages are for people and are never looked at."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from botocore.exceptions import ClientError

from shared.adapters.cloud_errors import code_of, is_unanswered
from shared.adapters.dynamodb.items import Item


class Trouble(StrEnum):
    """What went wrong with one call."""

    # A condition did not hold; nothing was written.
    CONDITION = "condition"
    # A transaction was cancelled; nothing was written; its reasons say why.
    CANCELLED = "cancelled"
    # Asked to slow down, or somebody is at the same items; nothing was written.
    BUSY = "busy"
    # No answer: it may or may not have been applied.
    NO_ANSWER = "no answer"
    # The request itself cannot be served: our bug, or a grant that is missing.
    BROKEN = "broken"


BY_CODE: Final[Mapping[str, Trouble]] = {
    "ConditionalCheckFailedException": Trouble.CONDITION,
    "TransactionCanceledException": Trouble.CANCELLED,
    "TransactionConflictException": Trouble.BUSY,
    # The same transaction is still being worked on: an earlier try of ours whose answer was lost.
    "TransactionInProgressException": Trouble.BUSY,
    "ProvisionedThroughputExceededException": Trouble.BUSY,
    "RequestLimitExceeded": Trouble.BUSY,
    "ThrottlingException": Trouble.BUSY,
    "InternalServerError": Trouble.NO_ANSWER,
    "InternalFailure": Trouble.NO_ANSWER,
    "ServiceUnavailable": Trouble.NO_ANSWER,
    "ServiceUnavailableException": Trouble.NO_ANSWER,
}

# Why one item of a transaction was refused. What is not listed is a request that can never succeed.
BY_REASON: Final[Mapping[str, Trouble | None]] = {
    "None": None,
    "ConditionalCheckFailed": Trouble.CONDITION,
    "TransactionConflict": Trouble.BUSY,
    "ProvisionedThroughputExceeded": Trouble.BUSY,
    "ThrottlingError": Trouble.BUSY,
}

_SERVER_FAULT: Final = 500


class ConditionFailed(Exception):
    """The condition of a single write did not hold. `old` is the item that stood in the way, None if there is none."""

    def __init__(self, old: Item | None) -> None:
        super().__init__("the condition did not hold")
        self.old = old


class Cancelled(Exception):
    """Conditions of a transaction did not hold: by position, the item that stood in the way.

    `in_doubt` says that an earlier try of the same transaction got no answer, so that the item may be its work.
    """

    def __init__(self, failed: Mapping[int, Item | None], *, in_doubt: bool) -> None:
        super().__init__("the transaction was cancelled")
        self.failed = failed
        self.in_doubt = in_doubt


class NoAnswer(Exception):
    """No try was answered; the last one or an earlier one may have been applied."""


def trouble_of(error: Exception) -> Trouble:
    """Tell what a failed call means."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return BY_CODE.get(code_of(error), Trouble.NO_ANSWER if status >= _SERVER_FAULT else Trouble.BROKEN)
    return Trouble.NO_ANSWER if is_unanswered(error) else Trouble.BROKEN


def reasons_of(error: ClientError) -> tuple[dict[int, Trouble], dict[int, Item | None]]:
    """Read why a transaction was cancelled: the trouble of every refused item, and the items conditions met."""
    troubles: dict[int, Trouble] = {}
    old: dict[int, Item | None] = {}
    for position, reason in enumerate(error.response.get("CancellationReasons", [])):
        trouble = BY_REASON.get(reason.get("Code", "None"), Trouble.BROKEN)
        if trouble is None:
            continue
        troubles[position] = trouble
        if trouble is Trouble.CONDITION:
            item: Any = reason.get("Item")
            old[position] = item
    return troubles, old
