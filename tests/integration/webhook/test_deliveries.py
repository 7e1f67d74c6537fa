"""Deliveries from the gateway to the task and back: who gets in, what moves, what the sender is told."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from functions.webhook.handler import receiving
from shared.domain.errors import SealUnavailable, Throttled
from shared.ports.signing_secrets import SigningSecret
from shared.runtime.observability import metrics
from shared.runtime.wiring import WebhookParts
from tests.fakes.calls import Calls, Fault, Killed, When
from tests.fakes.paperwork import WAITS_FOR, correlation_of
from tests.fakes.signed_event import OTHER_SECRET, SECRET, Sender, gateway_event
from tests.integration.webhook.conftest import (
    NOT_SIGNED,
    PARTNER,
    POST,
    SIGNED,
    STRANGER,
    Context,
    Door,
    b64,
)

BODY = b'{"answer":{"pages":  1.0, "note":"\\u20b9 450", "signed":true},\n "correlation_id":"papers-S-1"}\n'


def test_a_signed_event_moves_its_task(door: Door) -> None:
    """R2: once, and the sender learns where the task stands."""
    answer = door.says()
    door.story.machine.settle()

    assert (answer.status, answer.json["reception"]) == (200, "accepted")
    assert answer.json["request_version"] == 1
    assert (door.story.status, door.story.task.business.outcome) == ("completed", "the papers are signed")


# --- the bytes --------------------------------------------------------------------------------------------------------


def test_the_signature_is_of_the_bytes_on_the_wire(door: Door) -> None:
    """B14: spacing, order, escapes and number forms are the sender's; re-dumped with the old signature: refused."""
    before, calls = door.stored(), len(door.calls.names)
    headers = PARTNER.headers(BODY, event_id="msg_1", at=door.now)
    redumped = b'{"answer":{"note":"\xe2\x82\xb9 450","pages":1,"signed":true},"correlation_id":"papers-S-1"}'

    assert door.send(gateway_event(redumped, headers)).status == 401
    assert door.send(gateway_event(BODY.replace(b"450", b"451"), headers)).status == 401
    assert door.stored() == before
    assert len(door.calls.names) == calls, "state was read for a stranger"
    assert door.send(gateway_event(BODY, headers)).status == 200
    assert door.story.task.business.facts[-1].values == {"signed": True, "pages": 1, "note": "\u20b9 450"}


def test_a_repeated_name_is_refused_after_verification(door: Door) -> None:
    """B14: signed or not, JSON with two meanings has none; a stranger's is not even parsed."""
    before = door.stored()
    twice = b'{"correlation_id":"papers-S-1","answer":{"signed":true,"signed":false}}'

    assert door.says(twice).status == 400
    assert door.says(twice, by=STRANGER).status == 401
    assert door.stored() == before


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_plain_and_encoded_are_the_same_event(door: Door, version: str) -> None:
    """B45, B80: one transition; the other forms of the same event are recognised as it."""
    first = door.says(BODY, version=version)
    others = [door.says(BODY, version=v, encoded=e) for v in ("1.0", "2.0") for e in (True, False)]

    assert first.json["reception"] == "accepted"
    assert {(a.status, a.json["reception"]) for a in others} == {(200, "duplicate")}


def test_what_the_gateway_mangled_is_refused(door: Door) -> None:
    """B45: not base64, base64 without the flag, no body, another encoding: refused, and nothing moved."""
    before = door.stored()
    whole = PARTNER.event(BODY, at=door.now)

    statuses = [
        door.send(whole | {"isBase64Encoded": True}).status,
        door.send(whole | {"body": b64(BODY)}).status,
        door.send(whole | {"body": None}).status,
        door.says(b"").status,
        door.says(BODY, content_type="application/json; charset=utf-16").status,
        door.says(BODY.decode().encode("utf-16"), encoded=True).status,
    ]

    assert statuses == [400, 401, 401, 400, 400, 400]
    assert door.stored() == before


def test_a_large_body_is_not_looked_at(door: Door) -> None:
    """Size comes first; nobody's signature is computed over it."""
    asked = len(door.secrets.asked)
    answer = door.says(b'{"a":"' + b"x" * 64_000 + b'"}')
    assert (answer.status, answer.json["code"]) == (413, "request_too_large")
    assert len(door.secrets.asked) == asked


# --- who --------------------------------------------------------------------------------------------------------------


def test_strangers_all_get_the_same_answer(door: Door) -> None:
    """A2, B80: unknown tenant or source, wrong secret, no headers: one answer, and nothing is read but secrets."""
    before, calls = door.stored(), len(door.calls.names)

    answers = [
        door.says(by=STRANGER),
        door.says(by=Sender(tenant="nobody")),
        door.says(by=Sender(source="nobody")),
        door.says(by=Sender(tenant="Acme#1")),
        door.says(by=Sender(source="../globex/partner")),
        door.says(by=Sender(source="post")),
        door.says(webhook_signature=None),
        door.says(webhook_id=None),
        door.says(webhook_timestamp=None),
        door.says(webhook_timestamp=f"{door.now.timestamp()}"),
        door.says(Webhook_Id="msg_2"),
        door.says(b"not json", by=STRANGER),
        door.send(gateway_event(BODY, None)),
        door.send(gateway_event(BODY, None, version="1.0")),
    ]

    assert {(a.status, a.text) for a in answers} == {(401, answers[0].text)}
    assert answers[0].json["detail"] == "no valid signature of a known source"
    assert door.send({}).status == 401
    assert door.stored() == before
    assert len(door.calls.names) == calls


def test_a_source_speaks_for_its_own_tenant_only(door: Door) -> None:
    """A1: the tenant is whose secret signed; another tenant's source with the same name finds nothing of it."""
    answer = door.says(by=Sender(tenant="globex"))

    assert (answer.status, answer.json) == (202, {"reception": "kept"})
    assert door.story.status == "waiting_event"


def test_waits_of_others_do_not_exist(door: Door) -> None:
    """A source learns nothing by naming what it may not answer: it fares as with an id that nobody knows."""
    door.secrets.stored[("acme", "courier")] = (SigningSecret(key=b"c" * 32),)
    courier = Sender(source="courier", secret=b"c" * 32)

    theirs = door.says(by=courier)
    nobodys = door.says({**SIGNED, "correlation_id": "no-such-papers"}, "msg_2", by=courier)

    assert (theirs.status, theirs.text) == (nobodys.status, nobodys.text)
    door.story.machine.settle()
    assert door.story.status == "waiting_event"
    assert door.says(by=PARTNER).json["reception"] == "accepted"


def test_a_person_s_wait_is_none_of_a_machine_s_business(quiet_door: Door) -> None:
    """An approval's id can be named by a source and answers nothing."""
    story = quiet_door.story
    story.start()

    answer = quiet_door.says({"correlation_id": story.open_approval, "answer": {"decision": "approve"}})
    story.machine.settle()

    assert (answer.status, answer.json) == (202, {"reception": "kept"})
    assert story.status == "waiting_approval"


# --- when -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "status"), [(299, 200), (301, 401), (-30, 200), (-31, 401), (-299, 401)])
def test_old_and_future_signatures_are_refused(door: Door, seconds: int, status: int) -> None:
    """B51: five minutes back, half a minute ahead."""
    assert door.says(late=timedelta(seconds=seconds)).status == status


def test_a_captured_event_is_caught_by_age_or_by_the_inbox(door: Door) -> None:
    """B51: accepted once, ever; the row that knows it outlives the longest life of a signature by far."""
    event = PARTNER.event(SIGNED, at=door.now + timedelta(seconds=30))
    receptions = []
    for _ in range(12):
        answer = door.send(event)
        receptions.append(answer.json.get("reception", answer.status))
        door.world.clock.advance(timedelta(seconds=60))

    assert receptions == ["accepted", *["duplicate"] * 5, *[401] * 6]
    [row] = [row for row in door.world.inbox.values() if row.event_id == "msg_1"]
    assert row.purge_at - row.received_at > timedelta(days=1)


def test_the_purge_of_the_inbox_opens_nothing(door: Door) -> None:
    """B51, B52: a new signature over the old event after its row is gone finds a settled wait."""
    door.says()
    door.story.machine.settle()
    after = door.story.task
    door.world.inbox.clear()

    answer = door.says()

    assert (answer.status, answer.json["reception"]) == (200, "duplicate")
    assert door.story.task == after


def test_an_event_after_the_deadline_is_told_so(door: Door) -> None:
    """B12, B49: never accepted, the true state in the answer, and people hear of it."""
    door.world.clock.advance(WAITS_FOR)
    before = door.stored()

    answer = door.says()

    assert (answer.status, answer.json["code"]) == (409, "event_refused")
    assert answer.json["current"] == {"reception": "refused", "task_status": "waiting_event", "request_version": 1}
    assert door.stored() == before
    assert len(door.world.alarms) == 1


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_a_rotated_secret_works_on_a_warm_function(door: Door) -> None:
    """B74: before a signature is refused the store is asked anew; the old secret counts until its grace ends."""
    grace = door.now + timedelta(hours=24)
    new = Sender(secret=OTHER_SECRET)
    door.says(by=STRANGER)
    asked = door.secrets.asked[-2:]
    door.secrets.stored[("acme", "partner")] = (
        SigningSecret(key=SECRET, accept_until=grace),
        SigningSecret(key=OTHER_SECRET),
    )

    assert asked == [("acme", "partner", False), ("acme", "partner", True)]
    assert door.says(by=new, event_id="msg_1").status == 200
    assert door.says(by=PARTNER, event_id="msg_1").status == 200
    door.world.clock.set(grace)
    assert door.says(by=PARTNER, event_id="msg_1").status == 401
    assert door.says(by=new, event_id="msg_1").status == 200


def test_two_signatures_of_which_one_is_valid_are_enough(door: Door) -> None:
    """B74: a sender in the middle of a rotation signs with both."""
    other = STRANGER.headers(BODY, event_id="msg_1", at=door.now)["webhook-signature"]
    mine = PARTNER.headers(BODY, event_id="msg_1", at=door.now)["webhook-signature"]
    assert door.says(BODY, webhook_signature=f"{other} {mine}").status == 200


@pytest.mark.parametrize("key", [b"", b"k"])
def test_a_weak_secret_refuses_everything(door: Door, key: bytes) -> None:
    """B74: also what is signed with it."""
    door.secrets.stored[("acme", "partner")] = (SigningSecret(key=key),)
    assert door.says(by=Sender(secret=key)).status == 401


def test_without_the_secret_store_the_sender_comes_again(door: Door) -> None:
    """B74: 503 with a time, whoever asks; verification is never left out."""
    before = door.stored()
    door.secrets.unavailable = True

    answers = [door.says(), door.says(by=STRANGER)]

    assert {(a.status, a.headers["Retry-After"]) for a in answers} == {(503, "5")}
    assert door.stored() == before
    door.secrets.unavailable = False
    assert door.says().json["reception"] == "accepted"


# --- trouble ----------------------------------------------------------------------------------------------------------


def calls_of_a_delivery() -> tuple[str, ...]:
    """Every call that taking in one event makes."""
    door = Door()
    door.open()
    before = len(door.calls.names)
    door.says()
    return door.calls.names[before:]


@pytest.mark.parametrize("at", range(1, len(calls_of_a_delivery()) + 1))
@pytest.mark.parametrize("when", list(When))
def test_no_event_is_lost_on_the_way(when: When, at: int) -> None:
    """B05: whatever call fails or kills the worker, the sender's repeat gets the event through, and it moves once."""
    calls = Calls()
    door = Door(calls=calls)
    door.open()
    calls.plan(Fault(when=when, at=len(calls.names) + at))
    try:
        first: int | None = door.says().status
    except Killed:
        first = None
    assert not calls.pending

    again = door.says()
    door.story.machine.settle()

    assert first in {None, 200, 503}
    assert again.status == 200
    assert again.json["reception"] in {"accepted", "duplicate"}
    assert door.story.status == "completed"
    assert [f.name for f in door.story.task.business.facts] == ["papers"]


def test_trouble_of_ours_is_told_with_a_time_to_come_again(door: Door) -> None:
    """B05: a store or key service out of reach has stored nothing, and says so."""
    before = door.stored()
    door.world.seal_keys.unavailable = True

    answer = door.says()

    assert (answer.status, answer.json["code"], answer.headers["Retry-After"]) == (503, "unavailable", "5")
    assert door.stored() == before
    assert SealUnavailable.code not in answer.text
    assert Throttled.code not in answer.text
    door.world.seal_keys.unavailable = False
    assert door.says().status == 200


def test_a_quarantined_task_loses_no_event(door: Door) -> None:
    """R6: until people have looked the sender is asked to come again."""
    key, version = next(iter(door.world.checkpoints))
    version = max(v for k, v in door.world.checkpoints if k == key)
    stored = door.world.checkpoints[key, version]
    door.world.checkpoints[key, version] = type(stored)(
        version=stored.version, body=stored.body.replace("S-1", "S-2"), seal=stored.seal, key_id=stored.key_id
    )
    assert door.says().status == 503


def test_an_error_of_ours_tells_nothing_and_calls_people(door: Door) -> None:
    """Law 8: a bug is loud for us and mute for a stranger."""

    def broken() -> WebhookParts:
        raise KeyError("a detail of ours")

    result = receiving(broken)(PARTNER.event(SIGNED, at=door.now), Context())
    counted = metrics.metric_set.pop("NeedsAttention")

    assert result["statusCode"] == 500
    assert "a detail of ours" not in result["body"]
    assert counted["Value"] == [1.0]


# --- any input at all -------------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
texts = st.text(max_size=60) | st.sampled_from(["v1,AAAA", "msg_1", "1791547200", correlation_of(), "", "v1,", "\x00"])
header_maps = st.none() | st.dictionaries(
    st.sampled_from(["webhook-id", "Webhook-ID", "webhook-timestamp", "webhook-signature", "content-type"]) | texts,
    texts | st.none() | st.lists(texts, max_size=3) | st.integers(),
    max_size=6,
)


@given(
    event=st.fixed_dictionaries(
        {},
        optional={
            "headers": header_maps | texts,
            "multiValueHeaders": header_maps | texts,
            "pathParameters": st.none() | st.dictionaries(st.sampled_from(["tenant", "source"]), texts) | texts,
            "body": st.none() | texts | json_values,
            "isBase64Encoded": st.booleans() | st.none() | texts,
            "requestContext": st.none() | json_values,
        },
    )
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_input_of_a_stranger_is_more_than_a_refusal(door: Door, event: dict[str, Any]) -> None:
    """B45, B80: never 500, never a change, whatever the gateway's event holds."""
    before = door.stored()
    assert door.send(event).status in {400, 401, 413}
    assert door.stored() == before


@given(
    body=st.binary(max_size=200)
    | json_values.map(lambda value: repr(value).encode(errors="replace"))
    | st.builds(
        lambda c, v, a: json.dumps({"correlation_id": c, "request_version": v, "answer": a}).encode(),
        texts,
        json_values,
        json_values,
    )
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_signed_input_is_more_than_a_refusal_either(door: Door, body: bytes) -> None:
    """Bad input: whatever a verified source sends, it is refused, or kept for a wait that may come; never 500.

    What is well formed and speaks of another version of the request is in conflict with it.
    """
    before = door.story.task
    assert door.says(body, encoded=True).status in {202, 400, 409}
    assert door.story.task == before


@given(answer=st.dictionaries(st.sampled_from(["signed", "pages", "note", "x"]), json_values, max_size=4))
@settings(max_examples=200, deadline=None)
def test_an_answer_has_the_form_that_its_wait_asks_for(answer: dict[str, Any]) -> None:
    """Bad input: strictly typed, closed to unknown fields; what does not fit is refused with the field's name."""
    door = Door()
    door.open()
    result = door.says({"correlation_id": correlation_of(), "answer": answer})
    fits = type(answer.get("signed")) is bool and set(answer) <= {"signed", "pages", "note"}

    if result.status == 200:
        assert fits
    else:
        assert result.status == 400
        assert re.search(r"answer|body|numbers?|JSON|Unicode", result.json["detail"])
        assert door.story.status == "waiting_event"


def test_the_answer_names_what_is_wrong(door: Door) -> None:
    """A sender can mend what it sent."""
    answer = door.says({"correlation_id": correlation_of(), "answer": {"signed": "yes", "pages": 0}})
    assert answer.status == 400
    assert "answer.signed" in answer.json["detail"]
    assert "answer.pages" in answer.json["detail"]
    assert "yes" not in answer.json["detail"]


@pytest.mark.parametrize("source", [PARTNER, POST])
def test_any_of_the_wait_s_sources_may_answer(door: Door, source: Sender) -> None:
    """A wait names who may answer it."""
    assert door.says(NOT_SIGNED, by=source).json["reception"] == "accepted"
