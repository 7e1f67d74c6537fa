"""A long task: does its thousandth turn cost what its tenth did?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from benchmarks.meter import Meter, Reading
from benchmarks.parts import measured_process
from benchmarks.refund import CLERK
from shared.domain.action import Arguments, EffectClass
from shared.domain.authority import Principal
from shared.domain.identity import TaskKey
from shared.domain.proposal import Proposal, Residue
from shared.domain.records import Record
from shared.domain.status import Status
from shared.domain.workflow import AskModel, Finish, PerformAction, Stage, Step, TaskView, Tool, Workflow
from shared.usecases.start_task import StartTask, start_task
from tests.contract.stores import real_stores
from tests.fakes.calls import Calls
from tests.fakes.clock import FakeIds
from tests.fakes.downstream import Downstream
from tests.fakes.machine import Machine
from tests.fakes.model import proposes
from tests.fakes.store import World

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from shared.domain.window import Window

# Two kilobytes that came from outside in every turn, as in the peers' baseline.
WORDS: Final = "w" * 2_000
# Turns averaged up to N, as in the peers' baseline.
AVERAGED: Final = 8


class Topic(Record):
    """What the long task is about."""

    topic: str


class Question(Record):
    """What is looked up in one turn."""

    turn: int


READ: Final = Tool(
    name="look_up_words",
    description="Look something up.",
    arguments=Question,
    effect=EffectClass.READ,
    fact="words_read",
)


def conversation(turns: int) -> Workflow:
    """Make a workflow of that many turns, each with a proposal, a judgement and a read."""

    def next_step(view: TaskView) -> Step:
        read = view.fact(READ.fact)
        done = int(str(read.values["turn"])) if read else 0
        if done >= turns:
            return Finish(stage="closed", status=Status.COMPLETED, outcome="all was read")
        return AskModel(stage="talking", record={"turn": done + 1})

    def judge(_view: TaskView, proposal: Proposal) -> Step:
        return PerformAction(stage="talking", action=READ.normalise(proposal.input))

    return Workflow(
        name="conversation",
        version=1,
        title="Conversation",
        request=Topic,
        stages={
            "talking": Stage(next=frozenset({"closed"}), tools=(READ.name,), prompt="talk"),
            "closed": Stage(next=frozenset()),
        },
        first_stage="talking",
        tools={READ.name: READ},
        prompts={"talk": "Read on."},
        policies="",
        task_deadline=timedelta(days=365),
        next_step=next_step,
        judge=judge,
        turns_max=turns,
    )


def measure_growth(client: DynamoDBClient, observer: DynamoDBClient, *, turns: Sequence[int]) -> list[dict[str, Any]]:
    """Run one task of the greatest length and return, at each length asked for, what a turn and a resume cost."""
    talk = _Talk(client, observer, max(turns))
    wanted = {n: Reading() for n in turns}
    for turn in range(1, max(turns) + 1):
        if turn + AVERAGED in wanted or (turn == 1 and any(n <= AVERAGED for n in wanted)):
            talk.mark()
        talk.play_turn()
        if turn in wanted:
            wanted[turn] = talk.since_mark()
    return [_row(n, wanted[n], talk.resumes[n]) for n in turns]


class _Talk:
    """One conversation under way, measured."""

    def __init__(self, client: DynamoDBClient, observer: DynamoDBClient, turns: int) -> None:
        stores = real_stores(client)
        self.stores = stores
        self.resumes: dict[int, Reading] = {}
        self.turns_played = 0
        self._world = World(ids=FakeIds(seed=1))
        self._world.downstreams[READ.name] = Downstream(facts=_facts)
        self._world.model.always = _next_turn
        self._world.authority.grant(CLERK, tenant="acme", roles={"reader"})
        stores.back_door.grant(CLERK, tenant="acme", roles={"reader"})
        workflow = conversation(turns)
        self.machine = Machine(
            self._world, Calls(), process=measured_process(stores), workflows={workflow.name: workflow}
        )
        self._meter = Meter(client, observer)
        started = start_task(
            StartTask(
                principal=Principal(ref=CLERK, tenant="acme", roles=frozenset({"reader"})),
                workflow=workflow.name,
                request={"topic": "words"},
                idempotency_key=f"talk-{turns}",
            ),
            self.machine.api(),
        )
        self.key = TaskKey(tenant="acme", task_id=started.task_id)
        self._mark = self._meter.read()

    def mark(self) -> None:
        """Begin to count."""
        self._mark = self._meter.read()

    def since_mark(self) -> Reading:
        """What was used since the mark, and what one resume of the task uses now."""
        used = self._meter.read().minus(self._mark)
        before = self._meter.read()
        self.machine.process().records.load(self.key, version_hint=None)
        self.resumes[self.turns_played] = self._meter.read().minus(before)
        return used

    def play_turn(self) -> None:
        """Play until one more read has been taken into the record."""
        asked = len(self._world.downstreams[READ.name].effects)
        while len(self._world.downstreams[READ.name].effects) == asked and self.machine.step():
            pass
        self.turns_played += 1
        self._world.model.windows.clear()


def _facts(arguments: Arguments) -> Arguments:
    return {"turn": arguments["turn"], "words": WORDS}


def _next_turn(window: Window) -> Residue:
    card = next(layer["text"] for layer in window.layers if layer["name"] == "task card")
    turn = int(card.split('"turn": ')[1].split("}")[0])
    return proposes(READ.name, {"turn": turn})


def _row(turns: int, used: Reading, resume: Reading) -> dict[str, Any]:
    averaged = min(turns, AVERAGED)
    return {
        "turns": turns,
        "calls_a_turn": round(used.calls_in_all / averaged, 1),
        "write_units_a_turn": round(used.write_units / averaged, 1),
        "read_units_a_turn": round(used.read_units / averaged, 1),
        "bytes_sent_a_turn": round(used.bytes_sent / averaged),
        "cpu_ms_a_turn": round(used.cpu_seconds / averaged * 1_000, 1),
        "resume_calls": resume.calls_in_all,
        "resume_bytes_read": resume.bytes_received,
    }
