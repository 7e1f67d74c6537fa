"""The artifacts bucket, in memory."""

from pydantic import ValidationError

from shared.domain.errors import InvariantBroken
from shared.domain.identity import TaskKey
from shared.domain.proposal import ObjectRef, Residue
from shared.domain.window import Window
from tests.fakes.calls import Calls
from tests.fakes.store import World


class FakeArtifacts:
    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def put_window(self, key: TaskKey, name: str, window: Window) -> ObjectRef:
        with self._calls.around("artifacts.put_window"):
            return self._put("windows", key, name, window.model_dump_json())

    def get_window(self, ref: ObjectRef) -> Window:
        with self._calls.around("artifacts.get_window"), self._world as world:
            body = world.artifacts.get((ref.key, ref.version_id))
            if body is None:
                raise InvariantBroken("there is no such window")
            return Window.model_validate_json(body)

    def put_residue(self, key: TaskKey, name: str, residue: Residue) -> ObjectRef:
        with self._calls.around("artifacts.put_residue"):
            return self._put("residue", key, name, residue.model_dump_json())

    def get_residue(self, key: TaskKey, ref: ObjectRef) -> Residue | None:
        with self._calls.around("artifacts.get_residue"), self._world as world:
            if not ref.key.startswith(f"residue/{key.tenant}/{key.task_id}/"):
                return None
            body = world.artifacts.get((ref.key, ref.version_id))
            if body is None:
                return None
            try:
                return Residue.model_validate_json(body)
            except ValidationError:
                return None

    def _put(self, prefix: str, key: TaskKey, name: str, body: str) -> ObjectRef:
        with self._world as world:
            ref = ObjectRef(key=f"{prefix}/{key.tenant}/{key.task_id}/{name}.json", version_id=world.ids.new("version"))
            world.artifacts[ref.key, ref.version_id] = body.encode()
            return ref
