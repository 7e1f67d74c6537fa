"""Every difference between the local AWS and AWS that the product could notice, with what is done about it.

The deployed template, its policies included, is the same in both. Where the emulator departs from AWS it is corrected
in its own process; what cannot be corrected is listed with what follows from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from local.corrections import (
    api_addresses,
    authorization,
    dead_letters,
    lambda_errors,
    model_calls,
    secret_resources,
    stream_batches,
    task_states,
    worker_files,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One departure: what happens on AWS, what the emulator does, and the correction or the consequence."""

    on_aws: str
    here: str
    correction: Callable[[], None] | None = None
    consequence: str = ""


DIFFERENCES: Final = (
    Difference(
        on_aws="A failed function's error is named after its exception class, a killed one's is Runtime.ExitError.",
        here="Every error is named Runtime.HandlerError, so no Retry or Catch by disposition would ever match.",
        correction=lambda_errors.correct,
    ),
    Difference(
        on_aws="A state that waits for a task token fails when its function fails; TimeoutSecondsPath bounds it.",
        here="The failure is dropped and the path ignored: the execution waits for ever.",
        correction=task_states.correct,
    ),
    Difference(
        on_aws="Converse needs bedrock:InvokeModel; SendTask* is authorised on the state machine; transport is TLS.",
        here="Converse needs bedrock:Converse; SendTask* is authorised on nothing; transport is HTTP on loopback.",
        correction=authorization.correct,
    ),
    Difference(
        on_aws="Records that a stream consumer reports as failed are delivered again.",
        here="The report is ignored and the records are lost.",
        correction=stream_batches.correct,
    ),
    Difference(
        on_aws="An event that a rule's topic does not take goes to the dead-letter queue of the rule's target.",
        here="It is dropped.",
        correction=dead_letters.correct,
    ),
    Difference(
        on_aws="A model that cannot be reached is ServiceUnavailableException.",
        here="A canned sentence is answered as if the model had spoken.",
        correction=model_calls.correct,
    ),
    Difference(
        on_aws="An HTTP API answers under its own host name.",
        here="That host name resolves nowhere; the API answers below a path of the emulator.",
        correction=api_addresses.correct,
    ),
    Difference(
        on_aws="Ref of a secret is its ARN, and a generated value keeps to the alphabet asked for.",
        here="Ref is the name, so a grant on it grants nothing; exclusions of whole alphabets are ignored.",
        correction=secret_resources.correct,
    ),
    Difference(
        on_aws="Code and layers are there when a worker starts.",
        here="Every worker unpacks and compiles some thirty megabytes of its own first.",
        correction=worker_files.correct,
    ),
    Difference(
        on_aws="A settled or expired task token is TaskTimedOut, a made-up one InvalidToken.",
        here="Both are TaskDoesNotExist.",
        consequence="Whoever answers a token takes all three for an answer that nobody waits for.",
    ),
    Difference(
        on_aws="Starting a running execution again with the same input answers the running one.",
        here="It is ExecutionAlreadyExists, as for a closed one.",
        consequence="Whoever starts an execution takes that error for a start that has happened.",
    ),
    Difference(
        on_aws="Code runs on arm64 under Python 3.13.",
        here="Code runs in this machine's own interpreter and architecture.",
        consequence="The stacks are deployed with the context target=host, which picks another dependency layer.",
    ),
    Difference(
        on_aws="The state machine's and the stream source's roles are checked for what they call.",
        here="Calls that the emulator makes inside its own process are not checked.",
        consequence="Those grants are held by the infrastructure tests alone.",
    ),
    Difference(
        on_aws="A schedule fires within its minute.",
        here="A schedule fires on a tick of ten seconds.",
        consequence="Tests wait for a schedule's effect, never for its instant.",
    ),
    Difference(
        on_aws="dynamodb:LeadingKeys restricts a grant to some keys.",
        here="The condition is not evaluated.",
        consequence="No grant relies on it.",
    ),
    Difference(
        on_aws="A failed batch of a stream is split and given up after its retries.",
        here="It is repeated whole until it is too old.",
        consequence="The dead-letter path of the stream is held by the infrastructure tests alone.",
    ),
)
