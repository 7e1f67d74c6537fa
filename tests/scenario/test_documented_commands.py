"""The commands that a reader of the documentation is told to type work on the deployed system, as they stand."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.instance import Instance
from local.people import PEOPLE
from local.walkthrough import Observer

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# A reader has run `make up`; here another local AWS answers in its place. Everything else is what a reader types.
STAND_INS = """
make() {{ echo "Holdfast's API   {address}"; }}
function .venv/bin/python {{
  if [ "$1 $2 $3" = "-m local token" ]; then local name="TOKEN_${{4//-/_}}"; echo "${{!name}}"; else {python} "$@"; fi
}}
{tokens}
"""


class Reader:
    """Somebody who types block after block into one shell."""

    def __init__(self, deployed: Instance, remembered: Path) -> None:
        """Begin with an empty shell."""
        tokens = "\n".join(f"TOKEN_{name.replace('-', '_')}={deployed.token(name)}" for name in PEOPLE)
        self._stand_ins = STAND_INS.format(address=deployed.api_address, python=sys.executable, tokens=tokens)
        self._remembered = remembered
        remembered.touch()

    def types(self, block: str) -> str:
        """Run one block and answer what it printed; variables and functions outlive it."""
        keep = f"declare -p API TASK APPROVAL CLERK MANAGER TOKEN 2>/dev/null > {self._remembered}; declare -f field"
        script = f"{self._stand_ins}\n. {self._remembered}\n{block}\n{{ {keep}; }} >> {self._remembered}; true"
        done = subprocess.run(
            ["/bin/bash", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
        )
        return done.stdout

    def remembers(self, variable: str) -> str:
        """The value of a variable."""
        return self.types(f'printf %s "${variable}"')


@pytest.fixture
def reader(deployed: Instance, tmp_path: Path) -> Reader:
    """A reader in front of the deployed system."""
    return Reader(deployed, tmp_path / "remembered")


def blocks_of(page: str, heading: str) -> Iterator[str]:
    """The shell blocks below a heading, up to the next one of its rank."""
    text = (ROOT / page).read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}\n", maxsplit=1)[1].split("\n## ", maxsplit=1)[0]
    return iter(BLOCK.findall(section))


def test_the_api_page_can_be_typed_from_top_to_bottom(reader: Reader, observer: Observer) -> None:
    """Start, repeat, look, decide, see it paid, fool the model, be a stranger: every block does what the page says."""
    set_up, start, look, decide, read, fool, stranger = blocks_of("docs/api.md", "Try it")

    reader.types(set_up)
    assert '"status":"waiting_approval"' in reader.types(start)
    assert '"created":false' in reader.types(start)
    assert '"allowed_decisions":["approve","reject"]' in reader.types(look)
    decided = reader.types(decide)
    assert '"status": 403' in decided
    assert '"status":"ready"' in decided
    task = reader.remembers("TASK")
    observer.until_status(task, "completed")
    assert '"status":"completed"' in reader.types(read)
    [fooled, *_] = re.findall(r'"task_id":"(tsk_[0-9a-f]{32})"', reader.types(fool))
    assert "blocked: proposed" in observer.until_status(fooled, "needs_review")["because"]
    assert '"code": "task_not_found"' in reader.types(stranger)


def test_the_readme_can_be_tried_by_hand(reader: Reader, observer: Observer) -> None:
    """A refund below the limit goes out without anybody's approval."""
    up, by_hand, *_ = blocks_of("README.md", "Try it by hand")

    assert up == "make up\n"
    assert '"workflow":"refund"' in reader.types(by_hand)
    observer.until(lambda: observer.refunds("ord-1") or None, "the refund is out")
