"""Deliver: drain the outbox from its stream; a record that fails is reported alone and comes again (B66)."""

from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.dynamo_db_stream_event import DynamoDBRecord

from shared.adapters.dynamodb.outbox import read_outbox
from shared.domain.errors import EngineError
from shared.runtime import wiring
from shared.runtime.observability import logger, observed
from shared.usecases.deliver import deliver


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - the runtime's own type
    """Deliver a batch of outbox rows."""
    processor = BatchProcessor(event_type=EventType.DynamoDBStreams, raise_on_entire_batch_failure=False)
    return dict(process_partial_response(event=event, record_handler=_deliver, processor=processor, context=context))


def _deliver(record: DynamoDBRecord) -> None:
    image = record.raw_event["dynamodb"]["NewImage"]
    try:
        deliver(read_outbox(image), wiring.deliver())
    except EngineError as error:
        logger.warning(error.message, extra={"code": error.code, "disposition": error.disposition})
        raise
