"""One pretended process: a full set of fakes over a world."""

from tests.fakes.action_ledger import FakeActionLedger
from tests.fakes.artifacts import FakeArtifacts
from tests.fakes.authoriser import FakeAuthoriser
from tests.fakes.authority import FakeAuthority
from tests.fakes.calls import Calls
from tests.fakes.event_bus import FakeEventBus
from tests.fakes.evidence_store import FakeEvidenceStore
from tests.fakes.executions import FakeExecutions
from tests.fakes.inbox import FakeInbox
from tests.fakes.leases import FakeLeases
from tests.fakes.model import FakeModel
from tests.fakes.outbox import FakeOutbox
from tests.fakes.sealer import FakeSealer
from tests.fakes.store import World
from tests.fakes.task_records import FakeTaskRecords
from tests.fakes.timers import FakeTimers
from tests.fakes.token_store import FakeTokenStore
from tests.fakes.tool_gateway import FakeToolGateway
from tests.fakes.wait_store import FakeWaitStore


class Process:
    """Every port, faked. A killed worker's successor is a new `Process` over the same world and, mostly, calls."""

    def __init__(self, world: World, calls: Calls | None = None) -> None:
        shared_calls = calls or Calls()
        self.world = world
        self.calls = shared_calls
        self.clock = world.clock
        self.ids = world.ids
        self.records = FakeTaskRecords(world, shared_calls)
        self.waits = FakeWaitStore(world, shared_calls)
        self.tokens = FakeTokenStore(world, shared_calls)
        self.ledger = FakeActionLedger(world, shared_calls)
        self.inbox = FakeInbox(world, shared_calls)
        self.outbox = FakeOutbox(world, shared_calls)
        self.leases = FakeLeases(world, shared_calls)
        self.authority = FakeAuthority(world, shared_calls)
        self.authoriser = FakeAuthoriser(world, shared_calls)
        self.sealer = FakeSealer(world, shared_calls)
        self.evidence = FakeEvidenceStore(world, shared_calls)
        self.artifacts = FakeArtifacts(world, shared_calls)
        self.model = FakeModel(world, shared_calls)
        self.tools = FakeToolGateway(world, shared_calls)
        self.executions = FakeExecutions(world, shared_calls)
        self.timers = FakeTimers(world, shared_calls)
        self.event_bus = FakeEventBus(world, shared_calls)
