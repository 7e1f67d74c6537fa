"""The graph of every task: a hub, `Wake`, and spokes that all lead back to it.

All that a task can do next is in this file, and the file does not know which workflow asks. It is plain Amazon States
Language, so that what is written here is what an operator reads in the console; names in `${...}` are filled in by
the construct that deploys it.

The document that travels between the states is the last answer of `Wake`: identifiers and references, never bodies.
A spoke adds only `result`, or `error` when it failed, and `Wake` replaces the whole document again.
"""

from collections.abc import Mapping
from typing import Any, Final

State = dict[str, Any]

HUB: Final = "Wake"
CHOICE: Final = "What next?"
UNKNOWN: Final = "Unknown directive"
WAKE_FAILED: Final = "Wake failed"

# A little over each function's own limit: the function ends first and says why, the state only catches what hangs.
WAKE_SECONDS_MAX: Final = 25
PROPOSE_SECONDS_MAX: Final = 65
PERFORM_SECONDS_MAX: Final = 25

# Infrastructure blips, a dead worker among them. Wake decides and commits under a condition: ask it again at any time.
BLIPS: Final = (
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
    "Lambda.Unknown",
    "Runtime.ExitError",
    "Sandbox.Timedout",
    "States.Timeout",
)

# Two blips in a row are ordinary; after six tries over two minutes it is an outage, and the sweep takes over.
RETRY_ATTEMPTS_MAX: Final = 6
RETRY_FIRST_SECONDS: Final = 2
RETRY_LONGEST_SECONDS: Final = 60
# Facts moved: a fresh look settles it, unless five others keep winning.
REDECIDE_ATTEMPTS_MAX: Final = 5
REDECIDE_SECONDS: Final = 1
BLIP_ATTEMPTS_MAX: Final = 4
# A throttled model is worth two more tries here; a longer outage is Wake's to schedule.
PROPOSE_ATTEMPTS_MAX: Final = 2

# Wake answers one of these words in `next`; each names the state it leads to.
WAITS: Final[Mapping[str, tuple[str, str]]] = {
    "await_approval": ("Await approval", "A person with the required role decides. Settled through the API."),
    "await_input": ("Await input", "The requester or another named person has to supply something."),
    "await_event": ("Await event", "An outside system has to report something."),
    "await_child": ("Await child task", "Another task has to end first."),
    "needs_review": ("Needs review", "An operator has to look: retry, reconcile, release or end the task."),
}
ACTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "perform": ("Perform action", "Dispatch one permitted action under its idempotency key."),
    "reconcile": ("Reconcile outcome", "Nobody knows what happened: ask the system of record."),
    "compensate": ("Compensate", "Undo one earlier action, as a new action of its own."),
}
PROPOSE: Final = ("Propose action", "One model call on one prepared window. Its answer is advice.")
RETRY_WINDOW: Final = ("Await retry window", "Nothing to do before this instant.")
ENDINGS: Final[Mapping[str, tuple[str, str]]] = {
    "continue_as_new": ("Continue as new", "The history grew long. The same task goes on under its next run."),
    "completed": ("Completed", "The task is done."),
    "canceled": ("Canceled", "The task was canceled; what could not be undone is on record."),
    "superseded": ("Superseded", "Another run owns this task. This one stops without a trace."),
}
FAILURES: Final[Mapping[str, tuple[str, str, str]]] = {
    "failed": ("Failed", "TaskFailed", "The task ended without reaching its goal; its record says why."),
    "expired": ("Expired", "TaskExpired", "A deadline passed and the workflow says that this ends the task."),
}


def task_graph(workflow: str) -> dict[str, Any]:
    """Write the state machine of one workflow as Amazon States Language.

    Returns:
        A definition with `${Partition}`, `${WakeArn}`, `${ProposeArn}`, `${OpenWaitArn}` and `${PerformArn}` left open.
        The same call always gives the same definition, in the same order.
    """
    return {
        "Comment": f"Holdfast: tasks of the workflow {workflow}. Every spoke returns to Wake; the record is the truth.",
        "StartAt": HUB,
        "States": {
            HUB: _wake(),
            CHOICE: _choice(),
            PROPOSE[0]: _propose(),
            **{name: _wait(comment) for name, comment in WAITS.values()},
            RETRY_WINDOW[0]: _retry_window(),
            **{name: _act(mode, comment) for mode, (name, comment) in ACTIONS.items()},
            **{name: {"Type": "Succeed", "Comment": comment} for name, comment in ENDINGS.values()},
            **{name: _fail(error, comment) for name, error, comment in FAILURES.values()},
            WAKE_FAILED: _fail("WakeFailed", "Wake could not be run. The task is intact; the sweep will find it."),
            UNKNOWN: _fail(
                "UnknownDirective", "Wake asked for something this graph does not know: a deployment is out of step."
            ),
        },
    }


def _wake() -> State:
    # The execution's name is merged in, because Wake has to know whether this run still owns the task.
    document_and_execution = (
        'States.JsonMerge($, States.StringToJson(States.Format(\'\\{"execution":"{}"\\}\', $$.Execution.Name)), false)'
    )
    return {
        "Type": "Task",
        "Comment": "The resume protocol: pass every gate, decide the next step, commit it.",
        "Resource": "arn:${Partition}:states:::lambda:invoke",
        "Parameters": {"FunctionName": "${WakeArn}", "Payload.$": document_and_execution},
        "OutputPath": "$.Payload",
        "TimeoutSeconds": WAKE_SECONDS_MAX,
        "Retry": [
            _retry(["Retry"], first_seconds=RETRY_FIRST_SECONDS, attempts=RETRY_ATTEMPTS_MAX),
            _retry(["Redecide"], first_seconds=REDECIDE_SECONDS, attempts=REDECIDE_ATTEMPTS_MAX),
            _retry(list(BLIPS), first_seconds=RETRY_FIRST_SECONDS, attempts=BLIP_ATTEMPTS_MAX),
        ],
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": WAKE_FAILED}],
        "Next": CHOICE,
    }


def _choice() -> State:
    targets = {
        "propose": PROPOSE[0],
        **{word: name for word, (name, _) in WAITS.items()},
        "await_retry": RETRY_WINDOW[0],
        **{word: name for word, (name, _) in ACTIONS.items()},
        **{word: name for word, (name, _) in ENDINGS.items()},
        **{word: name for word, (name, _, _) in FAILURES.items()},
    }
    return {
        "Type": "Choice",
        "Comment": "Wake has decided; this only follows.",
        "Choices": [{"Variable": "$.next", "StringEquals": word, "Next": name} for word, name in targets.items()],
        "Default": UNKNOWN,
    }


def _propose() -> State:
    return {
        "Type": "Task",
        "Comment": PROPOSE[1],
        "Resource": "arn:${Partition}:states:::lambda:invoke",
        "Parameters": {
            "FunctionName": "${ProposeArn}",
            "Payload": {
                "tenant.$": "$.tenant",
                "task_id.$": "$.task_id",
                "version.$": "$.version",
                "window.$": "$.window",
            },
        },
        # By name, so that nothing the model wrote can ride along.
        "ResultSelector": {"residue.$": "$.Payload.residue", "stop_reason.$": "$.Payload.stop_reason"},
        "ResultPath": "$.result",
        "TimeoutSeconds": PROPOSE_SECONDS_MAX,
        "Retry": [_retry(["Retry"], first_seconds=RETRY_FIRST_SECONDS, attempts=PROPOSE_ATTEMPTS_MAX)],
        "Catch": [_back_to_wake()],
        "Next": HUB,
    }


def _wait(comment: str) -> State:
    return {
        "Type": "Task",
        "Comment": comment,
        "Resource": "arn:${Partition}:states:::lambda:invoke.waitForTaskToken",
        "Parameters": {
            "FunctionName": "${OpenWaitArn}",
            "Payload": {
                "tenant.$": "$.tenant",
                "task_id.$": "$.task_id",
                "wait_id.$": "$.wait_id",
                "correlation_id.$": "$.correlation_id",
                "run.$": "$.run",
                "hops.$": "$.hops",
                "token.$": "$$.Task.Token",
            },
        },
        "ResultPath": "$.result",
        # The wait's own record owns its deadline. This is the net under it: no execution waits for ever.
        "TimeoutSecondsPath": "$.wait_seconds",
        "Catch": [_back_to_wake()],
        "Next": HUB,
    }


def _retry_window() -> State:
    return {"Type": "Wait", "Comment": RETRY_WINDOW[1], "TimestampPath": "$.until", "Next": HUB}


def _act(mode: str, comment: str) -> State:
    return {
        "Type": "Task",
        "Comment": comment,
        "Resource": "arn:${Partition}:states:::lambda:invoke",
        "Parameters": {
            "FunctionName": "${PerformArn}",
            "Payload": {
                "tenant.$": "$.tenant",
                "task_id.$": "$.task_id",
                "version.$": "$.version",
                "operation.$": "$.operation",
                "mode": mode,
            },
        },
        # For whoever reads the execution. What happened is in the action ledger, and Wake looks it up there.
        "ResultSelector": {"operation.$": "$.Payload.operation", "status.$": "$.Payload.status"},
        "ResultPath": "$.result",
        "TimeoutSeconds": PERFORM_SECONDS_MAX,
        # `Retry` promises that nothing was dispatched. Timeouts and service errors promise nothing: they go to Wake,
        # which asks the ledger. A retry of those here could run beside a first try that is still going on.
        "Retry": [_retry(["Retry"], first_seconds=RETRY_FIRST_SECONDS, attempts=RETRY_ATTEMPTS_MAX)],
        "Catch": [_back_to_wake()],
        "Next": HUB,
    }


def _fail(error: str, comment: str) -> State:
    return {"Type": "Fail", "Comment": comment, "Error": error, "Cause": comment}


def _back_to_wake() -> State:
    return {"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": HUB}


def _retry(errors: list[str], *, first_seconds: int, attempts: int) -> State:
    return {
        "ErrorEquals": errors,
        "IntervalSeconds": first_seconds,
        "BackoffRate": 2,
        "MaxAttempts": attempts,
        "MaxDelaySeconds": RETRY_LONGEST_SECONDS,
        "JitterStrategy": "FULL",
    }
