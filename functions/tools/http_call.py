"""Hold one call of a tool: one exchange with its provider at most, and a reply that promises only what is proved."""

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from pydantic import ValidationError

from functions.tools.contract import Asked, ToolCall, faulty_fields, parse_call, refused
from functions.tools.http_answers import PROBLEM_TYPE, content_of, problem_code_of, record_of
from functions.tools.http_tool import HttpTool, Lookup
from shared.adapters.http.endpoint import Answer, Endpoint, NoAnswer, NotSent
from shared.adapters.secretsmanager.live_secret import LiveSecret, SecretUnreadable
from shared.domain.action import Scalar, ToolOutcome, ToolReply
from shared.domain.errors import OutcomeUnknown

_CREDENTIAL_REFUSED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
# What may stand in a header as it is.
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")

_log = logging.getLogger(__name__)
_log.setLevel(logging.INFO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """The provider that a tool speaks to and the credential it shows."""

    endpoint: Endpoint
    secret: LiveSecret


def serve(tool: HttpTool, event: dict[str, Any], *, provider: Provider) -> dict[str, Any]:
    """Answer one call of the tool, in the form of the contract.

    Raises:
        OutcomeUnknown: an effect may have happened, or a look-up could not be made.

    If killed here:
        The request may have been sent or not: the caller holds an intent and asks the provider.
    """
    call = parse_call(event)
    reply = call if isinstance(call, ToolReply) else _Conversation(tool, provider, call).hold()
    return reply.model_dump(mode="json")


class _Conversation:
    """One call, one exchange at most."""

    def __init__(self, tool: HttpTool, provider: Provider, call: ToolCall) -> None:
        self._tool = tool
        self._provider = provider
        self._call = call

    def hold(self) -> ToolReply:
        """Answer the call and leave one line about it in the log: no argument, no secret."""
        try:
            reply = self._reply()
        except OutcomeUnknown as unknown:
            self._note("unknown", unknown.message)
            raise
        self._note(reply.outcome, reply.reason)
        return reply

    def _reply(self) -> ToolReply:
        if self._call.operation is Asked.COMPENSATE:
            return refused("an undo is an action of its own and not part of this tool")
        is_lookup = self._call.operation is Asked.LOOKUP
        try:
            arguments = self._tool.arguments.model_validate(self._call.arguments, strict=True)
        except ValidationError as error:
            # Only this is a refusal of ours: once something has been sent, an error of ours proves nothing.
            if is_lookup:
                raise OutcomeUnknown(f"the look-up was not made: {faulty_fields(error)}") from None
            return refused(f"unusable arguments: {faulty_fields(error)}")
        sent = arguments.model_dump(mode="json", exclude=set(self._tool.unsent))
        if self._tool.lookup is Lookup.REFERENCE:
            sent["reference"] = self._call.key
        try:
            return self._looked_up(sent) if is_lookup else self._performed(sent)
        except (NotSent, SecretUnreadable) as error:
            if is_lookup:
                raise OutcomeUnknown(f"the look-up was not made: {error}") from error
            return ToolReply(outcome=ToolOutcome.NOT_SENT, reason=str(error))
        except NoAnswer as error:
            raise OutcomeUnknown(str(error)) from error

    def _performed(self, arguments: Mapping[str, Scalar]) -> ToolReply:
        if self._tool.reads is not None:
            return self._read(arguments, str(arguments[self._tool.reads]))
        headers = {"Content-Type": "application/json"}
        if self._tool.lookup is Lookup.KEY:
            headers["Idempotency-Key"] = self._call.key
        answer = self._exchange(
            "POST", (self._tool.collection,), headers=headers, body=json.dumps(arguments, sort_keys=True).encode()
        )
        if answer.status in {HTTPStatus.OK, HTTPStatus.CREATED}:
            return self._reply_of(content_of(answer), arguments)
        if answer.status == HTTPStatus.ACCEPTED:
            return ToolReply(outcome=ToolOutcome.PENDING, reason="the provider has accepted it and is not finished")
        code = problem_code_of(answer)
        if any(answer.status == refusal.status and code == refusal.code for refusal in self._tool.refusals):
            return refused(f"the provider refuses: {code}")
        if answer.status in _CREDENTIAL_REFUSED:
            return self._not_let_in()
        shown = f"{answer.status} {code}" if code else f"{answer.status}"
        raise OutcomeUnknown(f"status {shown} does not say whether anything happened")

    def _read(self, arguments: Mapping[str, Scalar], name: str) -> ToolReply:
        answer = self._exchange("GET", (self._tool.collection, name))
        if answer.status == HTTPStatus.OK:
            return self._reply_of(content_of(answer), arguments)
        if answer.status == HTTPStatus.NOT_FOUND and problem_code_of(answer) == self._tool.absent_code:
            return refused("the provider has no record of this name")
        if answer.status in _CREDENTIAL_REFUSED:
            return self._not_let_in()
        raise OutcomeUnknown(f"status {answer.status} does not say what the record is")

    def _not_let_in(self) -> ToolReply:
        self._provider.secret.forget()
        return ToolReply(outcome=ToolOutcome.NOT_SENT, reason="the provider refuses our credential")

    def _looked_up(self, arguments: Mapping[str, Scalar]) -> ToolReply:
        if self._tool.lookup is Lookup.KEY:
            return self._looked_up_by_key(arguments)
        if self._tool.lookup is Lookup.REFERENCE:
            return self._looked_up_by_reference(arguments)
        raise OutcomeUnknown("the provider cannot be asked what became of this")

    def _looked_up_by_key(self, arguments: Mapping[str, Scalar]) -> ToolReply:
        answer = self._exchange("GET", (self._tool.collection, self._call.key))
        if answer.status == HTTPStatus.OK:
            return self._reply_of(content_of(answer), arguments)
        if answer.status == HTTPStatus.NOT_FOUND and problem_code_of(answer) == self._tool.absent_code:
            return ToolReply(outcome=ToolOutcome.ABSENT, reason="the provider has no record of this key")
        raise self._not_looked_up(answer)

    def _looked_up_by_reference(self, arguments: Mapping[str, Scalar]) -> ToolReply:
        answer = self._exchange("GET", (self._tool.collection,), query={"reference": self._call.key})
        if answer.status != HTTPStatus.OK:
            raise self._not_looked_up(answer)
        items = content_of(answer).get("items")
        if not isinstance(items, list):
            raise OutcomeUnknown("the answer is no list of records")
        if not items:
            return ToolReply(outcome=ToolOutcome.ABSENT, reason="the provider has no record of this reference")
        if len(items) > 1:
            raise OutcomeUnknown(f"the provider has {len(items)} records of this reference")
        return self._reply_of(items[0], arguments)

    def _not_looked_up(self, answer: Answer) -> OutcomeUnknown:
        if answer.status in _CREDENTIAL_REFUSED:
            self._provider.secret.forget()
        return OutcomeUnknown(f"status {answer.status} does not answer the look-up")

    def _exchange(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        token = self._provider.secret.read()
        if _TOKEN.fullmatch(token) is None:
            raise SecretUnreadable("the secret cannot be shown in a header")
        shown = {"Authorization": f"Bearer {token}", "Accept": f"application/json, {PROBLEM_TYPE}", **(headers or {})}
        return self._provider.endpoint.exchange(method, path, headers=shown, query=query, body=body)

    def _reply_of(self, content: object, arguments: Mapping[str, Scalar]) -> ToolReply:
        expected = dict(arguments)
        if self._tool.lookup is Lookup.KEY:
            expected["key"] = self._call.key
        record = record_of(content, expected)
        outcome = self._tool.statuses.get(record.status)
        if outcome is None:
            raise OutcomeUnknown("the provider's record has a status that nobody here knows")
        return ToolReply(
            outcome=outcome,
            reference=record.id,
            facts={name: record.fields[name] for name in self._tool.facts if name in record.fields},
            reason=f"the provider's record is {record.status}",
        )

    def _note(self, outcome: str, reason: str) -> None:
        line = {
            "message": "tool call answered",
            "tool": self._tool.name,
            "operation": self._call.operation,
            "key": self._call.key,
            "outcome": outcome,
            "reason": reason,
        }
        _log.info(json.dumps(line))
