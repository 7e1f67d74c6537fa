"""Versions of objects in one bucket, and where a task's objects are."""

import re
from typing import TYPE_CHECKING, Final

from shared.adapters.cloud_errors import CLOUD_ERRORS, code_of, may_pass
from shared.domain.errors import DependencyTimeout, InvariantBroken
from shared.domain.identity import TaskKey

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# A name is one step of a path: no separator, and nothing that a path could climb with.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,119}\Z", re.ASCII)

# Without the right to list, a missing object answers "access denied" instead of "no such key". A version id that is no
# version id is an invalid argument, and a deleted object in its place is a method that is not allowed.
_NOT_THERE: Final = frozenset(
    {"403", "404", "AccessDenied", "InvalidArgument", "MethodNotAllowed", "NoSuchKey", "NoSuchVersion"}
)


class Objects:
    """One bucket."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, object_key: str, body: bytes, *, content_type: str) -> str:
        """Store a version of an object and return its id.

        Raises:
            DependencyTimeout: no answer; a version that nobody references may be left behind.
            InvariantBroken: the bucket keeps no versions, or refuses us.
        """
        try:
            reply = self._client.put_object(Bucket=self._bucket, Key=object_key, Body=body, ContentType=content_type)
        except CLOUD_ERRORS as error:
            raise _failure(error) from error
        version = reply.get("VersionId")
        if not version or version == "null":
            raise InvariantBroken("the bucket keeps no versions")
        return version

    def get(self, object_key: str, version: str) -> bytes | None:
        """Read one version; None if it is not there for us.

        Raises:
            DependencyTimeout: no answer.
        """
        try:
            reply = self._client.get_object(Bucket=self._bucket, Key=object_key, VersionId=version)
            return reply["Body"].read()
        except CLOUD_ERRORS as error:
            if code_of(error) in _NOT_THERE:
                return None
            raise _failure(error) from error


def folder_of(prefix: str, key: TaskKey) -> str:
    """Return where a task's objects of one kind are, the separator at its end included."""
    return f"{prefix}/{key.tenant}/{key.task_id}/"


def object_key(prefix: str, key: TaskKey, name: str, suffix: str) -> str:
    """Return the key of a task's object.

    Raises:
        InvariantBroken: the name is more than one step of a path.
    """
    if _NAME.match(name) is None:
        raise InvariantBroken("an object's name is one step of a path")
    return f"{folder_of(prefix, key)}{name}.{suffix}"


def _failure(error: Exception) -> DependencyTimeout | InvariantBroken:
    if may_pass(error):
        msg = f"the object store did not answer: {code_of(error)}"
        return DependencyTimeout(msg)
    msg = f"the object store refused a request of ours: {code_of(error)}"
    return InvariantBroken(msg)
