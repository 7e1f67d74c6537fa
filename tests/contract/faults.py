"""Failures of DynamoDB on order: replies that are lost, and error answers that a local one never gives."""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import ReadTimeoutError

from shared.adapters.dynamodb.items import Item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An error answer. It stands for a request that was not applied."""

    code: str
    reasons: Sequence[Mapping[str, Any]] = ()
    item: Item | None = None
    status: int = 400

    def reply(self) -> tuple[Any, dict[str, Any]]:
        """Return what botocore would have made of it."""
        parsed: dict[str, Any] = {
            "Error": {"Code": self.code, "Message": "worded so that nobody can rely on it"},
            "ResponseMetadata": {"HTTPStatusCode": self.status},
        }
        if self.reasons:
            parsed["CancellationReasons"] = list(self.reasons)
        if self.item is not None:
            parsed["Item"] = self.item
        return SimpleNamespace(status_code=self.status), parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reply other than the one the database would give."""

    body: Mapping[str, Any]

    def reply(self) -> tuple[Any, dict[str, Any]]:
        """Return what botocore would have made of it."""
        return SimpleNamespace(status_code=200), {"ResponseMetadata": {"HTTPStatusCode": 200}, **self.body}


class Lost:
    """The request is applied and its reply never arrives."""


class Unreachable:
    """The request never arrives."""


class Faults:
    """A client and the faults its next calls will meet, by operation, such as ``TransactWriteItems``.

    `sent` holds the bytes of every request that left, by operation.
    """

    def __init__(self, client: "DynamoDBClient") -> None:
        self.client = client
        self.sent: dict[str, list[bytes]] = defaultdict(list)
        self._planned: dict[str, deque[Refusal | Answer | Lost | Unreachable | None]] = defaultdict(deque)
        self._losing: set[str] = set()
        # What the hook returns is taken for the reply; the stubs do not know.
        client.meta.events.register("before-call.dynamodb", cast("Callable[..., None]", self._before))
        client.meta.events.register("after-call.dynamodb", self._after)

    def forget(self) -> None:
        """Plan nothing and remember nothing."""
        self.sent.clear()
        self._planned.clear()
        self._losing.clear()

    def plan(self, operation: str, *faults: Refusal | Answer | Lost | Unreachable | None) -> None:
        """Let the operation's next calls meet these; None lets one pass."""
        self._planned[operation].extend(faults)

    @property
    def unmet(self) -> int:
        """How many planned faults no call has met."""
        return sum(len(faults) for faults in self._planned.values())

    def _before(self, model: Any, params: Mapping[str, Any], **_: object) -> tuple[Any, dict[str, Any]] | None:
        self.sent[model.name].append(bytes(params["body"]))
        planned = self._planned[model.name]
        fault = planned.popleft() if planned else None
        if isinstance(fault, Unreachable):
            raise ReadTimeoutError(endpoint_url="the database")
        if isinstance(fault, Lost):
            self._losing.add(model.name)
        return fault.reply() if isinstance(fault, Refusal | Answer) else None

    def _after(self, model: Any, **_: object) -> None:
        if model.name in self._losing:
            self._losing.remove(model.name)
            raise ReadTimeoutError(endpoint_url="the database")
