"""The address that a deployed HTTP API reports is one that answers."""

from __future__ import annotations

import os
from typing import Any

from local.corrections._seam import OutOfDate, module


def correct() -> None:
    """Report the address below the emulator's own path instead of a host name that resolves nowhere."""
    handlers = module("services.cloudformation.provisioners")._RESOURCE_HANDLERS["AWS::ApiGatewayV2::Api"]
    create = handlers["create"]
    if not callable(create):
        raise OutOfDate("HTTP APIs are created in another way")

    def created(*args: Any, **kwargs: Any) -> Any:
        api_id, attributes = create(*args, **kwargs)
        address = f"http://{os.environ['BIND_HOST']}:{os.environ['GATEWAY_PORT']}/_aws/execute-api/{api_id}/$default"
        module("services.apigateway")._apis[api_id]["apiEndpoint"] = address
        return api_id, {**attributes, "ApiEndpoint": address}

    handlers["create"] = created
