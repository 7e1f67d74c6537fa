"""Where things are: the checkout's folders, and one state folder per local AWS."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local.problems import LocalProblem

ROOT: Final = Path(__file__).resolve().parent.parent
VENV_BIN: Final = ROOT / ".venv" / "bin"
NODE_BIN: Final = ROOT / "node_modules" / ".bin"
STATE: Final = ROOT / ".local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The state folder of one local AWS, named after who runs it: ``up``, ``demo``, ``scenario``.

    Everything that a run leaves behind is below it, readable by its owner only, and never committed.
    """

    name: str

    @property
    def folder(self) -> Path:
        """The folder itself; made when first asked for."""
        folder = STATE / self.name
        folder.mkdir(parents=True, exist_ok=True)
        STATE.chmod(0o700)
        return folder

    @property
    def outputs(self) -> Path:
        """Stack outputs, as the CDK wrote them."""
        return self.folder / "outputs.json"

    @property
    def users(self) -> Path:
        """Generated passwords of the seeded users."""
        return self.folder / "users.json"

    @property
    def ready(self) -> Path:
        """Exists once a run is deployed and seeded; an earlier run without it is half-finished."""
        return self.folder / "ready"

    @property
    def temporary(self) -> Path:
        """Scratch space of the servers; emptied with them."""
        folder = self.folder / "tmp"
        folder.mkdir(exist_ok=True)
        return folder

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep the place to one command for as long as the block lasts.

        So what is found in it is left over from a command that has ended, never in use by one that has not.

        Raises:
            LocalProblem: another command has it.
        """
        with (self.folder / "command.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise LocalProblem(
                    f"Another command is at work in {self.folder} right now.", "Wait until it has ended, or end it."
                ) from error
            yield

    def log(self, name: str) -> Path:
        """The log of one program."""
        return self.folder / f"{name}.log"


def every_place() -> list[Place]:
    """All places of this checkout."""
    return [Place(name=folder.name) for folder in sorted(STATE.glob("*")) if folder.is_dir()]


def installed(program: Path) -> Path:
    """Answer a program that set-up installs.

    Raises:
        LocalProblem: it is not there.
    """
    if not program.exists():
        raise LocalProblem(
            f"{program.relative_to(ROOT)} is missing.", "Run `make setup`; it says what it cannot install and why."
        )
    return program


def program_path() -> str:
    """The PATH under which this project's programs find each other before those of the machine."""
    return os.pathsep.join([str(VENV_BIN), str(NODE_BIN), os.environ.get("PATH", os.defpath)])
