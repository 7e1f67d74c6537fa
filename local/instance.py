"""One local AWS with everything on it: started, used, ended."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from local import deploy, emulator, model, seed
from local.aws import LocalAws
from local.deploy import Outputs, output
from local.http_client import HttpClient
from local.places import Place
from local.problems import LocalProblem
from local.servers import require_free

if TYPE_CHECKING:
    from mypy_boto3_cognito_idp import CognitoIdentityProviderClient
    from mypy_boto3_secretsmanager import SecretsManagerClient

Tell = Callable[[str], None]

# The secret in which the sandbox's payments provider publishes its API key.
PAYMENTS_API_KEY: Final = f"holdfast-{deploy.STAGE}-payments-api-key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A local AWS on which the stacks are deployed and the people are known."""

    place: Place
    aws: LocalAws
    outputs: Outputs

    @property
    def api_address(self) -> str:
        """Base address of Holdfast's API."""
        return output(self.outputs, "Engine", "ApiUrl")

    def token(self, person: str) -> str:
        """Log a person in and answer the access token.

        Raises:
            LocalProblem: nobody of that name was seeded.
        """
        password = seed.password_of(self.place, person)
        cognito: CognitoIdentityProviderClient = self.aws.client("cognito-idp")
        answer = cognito.initiate_auth(
            ClientId=output(self.outputs, "Engine", "UserPoolClientId"),
            AuthFlow="USER_PASSWORD_AUTH",
            AuthParameters={"USERNAME": person, "PASSWORD": password},
        )
        return answer["AuthenticationResult"]["AccessToken"]

    def api(self, person: str | None = None) -> HttpClient:
        """A client of Holdfast's API that is logged in as a person, or as nobody."""
        if person is None:
            return HttpClient(base=self.api_address)
        return HttpClient(base=self.api_address, headers={"authorization": f"Bearer {self.token(person)}"})

    def payments(self) -> HttpClient:
        """A client of the sandbox's payments provider, with the provider's own API key."""
        secrets: SecretsManagerClient = self.aws.client("secretsmanager")
        key = secrets.get_secret_value(SecretId=PAYMENTS_API_KEY)["SecretString"]
        address = output(self.outputs, "Sandbox", "PaymentsUrl")
        return HttpClient(base=address, headers={"authorization": f"Bearer {key}"})

    def machine_arn(self, workflow: str) -> str:
        """The state machine of a workflow."""
        named = "".join(word.capitalize() for word in workflow.split("_"))
        return output(self.outputs, "Engine", f"{named}MachineArn")

    def model_requests(self) -> int:
        """How often our own model server was asked since it started."""
        return model.requests(self.place)

    def worker_pids(self, function: str) -> list[int]:
        """Processes that hold the code of one of the stage's functions, such as ``perform``."""
        return emulator.worker_pids(self.place, f"holdfast-{deploy.STAGE}-{function}")


def start(place: Place, *, port: int | None, tell: Tell) -> Instance:
    """Start the local AWS of a place, deploy to it, seed it, and leave it running.

    What an earlier command left half-finished is ended first.

    Args:
        port: a loopback port for the emulator, or ``None`` for a free one.
        tell: told in a few words what is being done.

    Raises:
        LocalProblem: something is missing or failed, or another command is at work here. Nothing new is left running.
    """
    with place.held():
        return _start(place, port=port, tell=tell)


def _start(place: Place, *, port: int | None, tell: Tell) -> Instance:
    if _end(place):
        tell("an earlier run had not been ended; it is now")
    if port is not None:
        require_free(port)
    synth = deploy.begin_synth(place)
    try:
        tell("starting the local AWS (IAM enforced, on loopback)")
        aws = emulator.start(place, port=port, model_url=model.start(place))
        tell("bootstrapping the account with the CDK")
        deploy.bootstrap(place, aws)
        tell("deploying the stacks with the CDK")
        outputs = deploy.deploy(place, aws, synth)
        tell("adding two tenants and their people")
        seed.seed(place, aws, outputs)
    except BaseException:
        synth.abandon()
        _end(place)
        raise
    place.ready.touch()
    return Instance(place=place, aws=aws, outputs=outputs)


def attach(place: Place) -> Instance | None:
    """The complete instance that an earlier command left running, or nothing."""
    running = emulator.emulator(place).running()
    if running is None or not place.ready.exists():
        return None
    return Instance(place=place, aws=LocalAws(port=running.port), outputs=deploy.read_outputs(place))


def end(place: Place) -> bool:
    """End everything of a place and forget its passwords; answer whether anything was running.

    Raises:
        LocalProblem: another command is at work here.
    """
    with place.held():
        return _end(place)


def _end(place: Place) -> bool:
    # A second Ctrl-C must not leave servers behind.
    with uninterrupted():
        place.ready.unlink(missing_ok=True)
        place.users.unlink(missing_ok=True)
        stopped = [emulator.stop(place), model.stop(place)]
    return any(stopped)


@contextlib.contextmanager
def running(name: str, *, port: int | None = None, tell: Tell = lambda _: None) -> Iterator[Instance]:
    """A deployed local AWS for as long as the block lasts; ended however the block ends.

    Args:
        name: names the state folder below ``.local``.

    Raises:
        LocalProblem: something is missing or failed, or a block of the same name is at work.
    """
    place = Place(name=name)
    with place.held():
        instance = _start(place, port=port, tell=tell)
        try:
            yield instance
        finally:
            _end(place)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Turn a deaf ear to Ctrl-C, and to a request to end, until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is interrupted
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def require_running(place: Place) -> Instance:
    """The instance that ``make up`` left running.

    Raises:
        LocalProblem: there is none.
    """
    found = attach(place)
    if found is None:
        raise LocalProblem("No local AWS is up.", "Start one with `make up`.")
    return found
