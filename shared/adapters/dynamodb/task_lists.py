"""The two lists of tasks: the operators' queue in pages, with cursors that fit one list only; and the sweep's."""

import base64
import binascii
import json
import re
from datetime import datetime
from typing import Any, Final

from shared.adapters.dynamodb.items import Item, instant, read_optional_text, read_text, text
from shared.domain.errors import InvalidRequest
from shared.domain.identity import TASK_ID_PATTERN, TaskKey, task_key
from shared.ports.task_records import QueueEntry, QueuePage

QUEUE_INDEX: Final = "queue"
WATCH_INDEX: Final = "watch"
# A page that a person reads.
PAGE_MAX: Final = 100
_SINCE: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z#" + TASK_ID_PATTERN.removeprefix("^"), re.ASCII)


def page_query(table: str, tenant: str, status: str, *, limit: int, cursor: str | None) -> dict[str, Any]:
    """Return the query of a page. It asks for one line more, to know whether there is a next page.

    Raises:
        InvalidRequest: the limit is none, or the cursor is not one of this list.
    """
    if not 1 <= limit <= PAGE_MAX:
        msg = f"a page holds 1 to {PAGE_MAX} tasks"
        raise InvalidRequest(msg)
    start = {} if cursor is None else {"ExclusiveStartKey": _start_key(cursor, tenant, status)}
    return {
        "TableName": table,
        "IndexName": QUEUE_INDEX,
        "KeyConditionExpression": "#queue = :queue",
        "ExpressionAttributeNames": {"#queue": "queue"},
        "ExpressionAttributeValues": {":queue": text(f"{tenant}#{status}")},
        "Limit": limit + 1,
        **start,
    }


def read_page(items: list[Item], tenant: str, status: str, *, limit: int) -> QueuePage:
    """Read the answer to a page's query."""
    page = items[:limit]
    more = len(items) > limit
    return QueuePage(
        entries=tuple(_entry(item, status) for item in page),
        cursor=_cursor(tenant, status, read_text(page[-1], "since")) if more else None,
    )


def overdue_query(table: str, shard: str, *, before: datetime, limit: int) -> dict[str, Any]:
    """Return the query for the live tasks of a shard that are due for a check-up, longest due first."""
    return {
        "TableName": table,
        "IndexName": WATCH_INDEX,
        "KeyConditionExpression": "watch = :shard AND check_at <= :before",
        "ExpressionAttributeValues": {":shard": text(shard), ":before": instant(before)},
        "Limit": limit,
    }


def read_overdue(item: Item) -> TaskKey:
    """Read which task an entry of the sweep's index speaks of."""
    tenant, _, task_id = read_text(item, "task").partition("#")
    return task_key(tenant, task_id)


def _entry(item: Item, status: str) -> QueueEntry:
    since, _, task_id = read_text(item, "since").partition("#")
    return QueueEntry(
        task_id=task_id,
        workflow=read_text(item, "workflow"),
        status=status,
        stage=read_text(item, "stage"),
        owner=read_text(item, "owner"),
        since=since,
        due_at=read_optional_text(item, "due_at"),
        reason=read_optional_text(item, "reason"),
    )


def _cursor(tenant: str, status: str, since: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([tenant, status, since]).encode()).decode()


def _start_key(cursor: str, tenant: str, status: str) -> Item:
    """Read a cursor. It needs no secret: the list it continues is the caller's own, wherever it continues."""
    try:
        position = json.loads(base64.b64decode(cursor.encode(), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, UnicodeError) as error:
        raise InvalidRequest("the cursor is not one of this list") from error
    if not isinstance(position, list) or position[:2] != [tenant, status] or len(position) != len("tsp"):
        raise InvalidRequest("the cursor is not one of this list")
    since = position[2]
    if not isinstance(since, str) or _SINCE.match(since) is None:
        raise InvalidRequest("the cursor is not one of this list")
    task_id = since.partition("#")[2]
    return {"task": text(f"{tenant}#{task_id}"), "queue": text(f"{tenant}#{status}"), "since": text(since)}
