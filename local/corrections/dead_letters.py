"""What a rule's topic does not take is kept in the dead-letter queue that the rule's target names."""

from __future__ import annotations

import json
import threading
from typing import Any

from local.corrections._seam import module, wrap

_last = threading.local()


def correct() -> None:
    """Put an event whose topic is gone, or refuses it, into the target's dead-letter queue.

    The emulator writes a line into its log and drops the event.
    """
    wrap(module("services.sns"), "publish_internal", _publish)
    wrap(module("services.eventbridge"), "_invoke_target", _invoke)


def _publish(original: Any, *args: Any, **kwargs: Any) -> Any:
    _last.refused = True
    published = original(*args, **kwargs)
    _last.refused = published is None
    return published


def _invoke(original: Any, target: Any, event: Any, *rest: Any) -> None:
    events = module("services.eventbridge")
    _last.refused = False
    original(target, event, *rest)
    queue = (target.get("DeadLetterConfig") or {}).get("Arn")
    if _last.refused and queue:
        # The event itself, before any transformer of the target.
        whole = json.dumps(events._pattern_event_view(event).event_with_detail())
        events._dispatch_to_sqs(events.parse_arn(queue), whole)
