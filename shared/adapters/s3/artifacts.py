"""Windows and residue in a versioned bucket. IAM, not this code, keeps each writer to its own prefix."""

from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from shared.adapters.s3.objects import Objects, folder_of, object_key
from shared.domain.errors import InvariantBroken
from shared.domain.identity import TaskKey
from shared.domain.proposal import ObjectRef, Residue
from shared.domain.window import Window

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_WINDOWS: Final = "windows"
_RESIDUE: Final = "residue"
_JSON: Final = "application/json"


class S3Artifacts:
    """Both prefixes."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._objects = Objects(client, bucket)

    def put_window(self, key: TaskKey, name: str, window: Window) -> ObjectRef:
        """See `Artifacts.put_window`.

        Raises:
            DependencyTimeout: no answer.
        """
        return self._put(object_key(_WINDOWS, key, name, "json"), window.model_dump_json())

    def get_window(self, ref: ObjectRef) -> Window:
        """See `Artifacts.get_window`.

        Raises:
            InvariantBroken: there is no such window.
            DependencyTimeout: no answer.
        """
        body = self._objects.get(ref.key, ref.version_id)
        try:
            return Window.model_validate_json(body or b"")
        except ValidationError as error:
            raise InvariantBroken("there is no such window") from error

    def put_residue(self, key: TaskKey, name: str, residue: Residue) -> ObjectRef:
        """See `Artifacts.put_residue`.

        Raises:
            DependencyTimeout: no answer.
        """
        return self._put(object_key(_RESIDUE, key, name, "json"), residue.model_dump_json())

    def get_residue(self, key: TaskKey, ref: ObjectRef) -> Residue | None:
        """See `Artifacts.get_residue`. The reference comes from the machine, so it is held to this task's folder.

        Raises:
            DependencyTimeout: no answer.
        """
        if not ref.key.startswith(folder_of(_RESIDUE, key)):
            return None
        body = self._objects.get(ref.key, ref.version_id)
        try:
            return Residue.model_validate_json(body or b"")
        except ValidationError:
            return None

    def _put(self, where: str, body: str) -> ObjectRef:
        return ObjectRef(key=where, version_id=self._objects.put(where, body.encode(), content_type=_JSON))
