"""The door for people: which requests get in, and who vouches for them."""

import json

import pytest

from tests.infrastructure.synthesis import Assembly, Template, synthesise

ROUTES = {
    "POST /tasks",
    "GET /tasks",
    "GET /tasks/{task_id}",
    "PATCH /tasks/{task_id}",
    "GET /tasks/{task_id}/approvals/{approval_id}",
    "POST /tasks/{task_id}/approvals/{approval_id}/decision",
    "POST /tasks/{task_id}/cancel",
    "POST /tasks/{task_id}/waits/{wait_id}/answer",
    "GET /tasks/{task_id}/record",
    "POST /tasks/{task_id}/operations/retry",
    "POST /tasks/{task_id}/operations/settle",
    "POST /tasks/{task_id}/operations/release",
    "POST /tasks/{task_id}/operations/close",
    "POST /tasks/{task_id}/operations/quarantine",
    "POST /tasks/{task_id}/operations/escalate",
}
OPEN = {"GET /openapi.json"}
# Authenticated by a signature over every byte, inside the function.
SIGNED = {"POST /webhooks/{tenant}/{source}"}


def routes(template: Template) -> dict[str, dict[str, object]]:
    """Properties of every route by its key."""
    return {
        route["Properties"]["RouteKey"]: route["Properties"]
        for _, route in template.of_type("AWS::ApiGatewayV2::Route")
    }


def test_the_routes_are_exactly_these(production: Assembly) -> None:
    """B02: a decision is a POST; there is no catch-all and nothing that a GET could change."""
    assert set(routes(production.engine)) == ROUTES | OPEN | SIGNED


def test_every_other_route_demands_a_token(production: Assembly) -> None:
    """A1: tenant and principal come from a verified token, so nothing is reached without one."""
    [(authorizer, resource)] = production.engine.of_type("AWS::ApiGatewayV2::Authorizer")
    for key, properties in routes(production.engine).items():
        if key in OPEN | SIGNED:
            assert properties.get("AuthorizationType", "NONE") == "NONE"
        else:
            assert properties["AuthorizationType"] == "JWT", key
            assert properties["AuthorizerId"] == {"Ref": authorizer}, key
    assert resource["Properties"]["AuthorizerType"] == "JWT"
    assert resource["Properties"]["IdentitySource"] == ["$request.header.Authorization"]


def test_the_pool_is_the_issuer_by_default(production: Assembly) -> None:
    """Gateway and function check a token against the same issuer and client."""
    engine = production.engine
    jwt = engine.properties("AWS::ApiGatewayV2::Authorizer")["JwtConfiguration"]
    settings = engine.function("api")["Environment"]["Variables"]

    assert engine.text(jwt["Issuer"]) == engine.text(settings["OIDC_ISSUER"])
    assert engine.text(jwt["Issuer"]) == ("https://cognito-idp.<AWS::Region>.<AWS::URLSuffix>/<PeoplePoolC64A4D1E>")
    assert jwt["Audience"] == [settings["OIDC_CLIENT_ID"]]


def test_any_issuer_can_take_the_pool_s_place() -> None:
    """A team with its own OpenID Connect provider gets no user pool at all."""
    engine = synthesise(
        "federated",
        oidc_issuer="https://login.test/tenant",
        oidc_client_id="holdfast",
        payments_url="https://bank.test",
    ).engine

    assert engine.properties("AWS::ApiGatewayV2::Authorizer")["JwtConfiguration"] == {
        "Audience": ["holdfast"],
        "Issuer": "https://login.test/tenant",
    }
    assert not list(engine.of_type("AWS::Cognito::UserPool"))


def test_the_integration_is_payload_two(production: Assembly) -> None:
    """B45, B80: one payload format, known to the function."""
    found = [each["Properties"] for _, each in production.engine.of_type("AWS::ApiGatewayV2::Integration")]
    assert len(found) == 2
    assert {each["PayloadFormatVersion"] for each in found} == {"2.0"}


def test_the_webhook_s_route_reaches_the_webhook_and_nothing_else_does(production: Assembly) -> None:
    """A stranger's bytes never reach the function that may start tasks."""
    engine = production.engine
    for key, properties in routes(engine).items():
        integration = engine.text(properties["Target"]).removeprefix("integrations/").strip("<>")
        uri = engine.resources[integration]["Properties"]["IntegrationUri"]
        function = engine.resources[uri["Fn::GetAtt"][0]]["Properties"]["FunctionName"]
        assert function == f"holdfast-prod-{'webhook' if key in SIGNED else 'api'}", key


def test_senders_have_a_limit_of_their_own(production: Assembly) -> None:
    """A sender that repeats itself in a loop leaves room for people."""
    stage = next(each["Properties"] for _, each in production.engine.of_type("AWS::ApiGatewayV2::Stage"))
    [(key, limit)] = stage["RouteSettings"].items()

    assert {key} == SIGNED
    assert 0 < limit["ThrottlingRateLimit"] < stage["DefaultRouteSettings"]["ThrottlingRateLimit"]
    assert 0 < limit["ThrottlingBurstLimit"] < stage["DefaultRouteSettings"]["ThrottlingBurstLimit"]


def test_the_gateway_throttles_and_logs_no_secret(production: Assembly) -> None:
    """Who asked for what is on record; tokens and bodies are not."""
    stage = production.engine.properties("AWS::ApiGatewayV2::Stage")
    logged = json.loads(stage["AccessLogSettings"]["Format"])

    assert stage["DefaultRouteSettings"]["ThrottlingRateLimit"] > 0
    assert stage["DefaultRouteSettings"]["ThrottlingBurstLimit"] > 0
    assert not [value for value in logged.values() if "header" in value.lower() or "body" in value.lower()]
    assert {"request_id", "subject", "route", "status"} <= set(logged)


def test_people_cannot_sign_themselves_up(production: Assembly) -> None:
    """An account comes from an operator; passwords are long and threats are acted upon."""
    pool = production.engine.properties("AWS::Cognito::UserPool")

    assert pool["AdminCreateUserConfig"]["AllowAdminCreateUserOnly"] is True
    assert pool["Policies"]["PasswordPolicy"]["MinimumLength"] >= 12
    assert pool["UserPoolAddOns"]["AdvancedSecurityMode"] == "ENFORCED"
    assert pool["DeletionProtection"] == "ACTIVE"


@pytest.mark.parametrize(("stage", "sends_passwords"), [("production", False), ("disposable", True), ("local", True)])
def test_passwords_are_sent_as_such_only_where_people_try_things_out(
    stage: str, sends_passwords: bool, request: pytest.FixtureRequest
) -> None:
    """In production the password never leaves the person's machine."""
    assembly: Assembly = request.getfixturevalue(stage)
    client = assembly.engine.properties("AWS::Cognito::UserPoolClient")

    assert ("ALLOW_USER_PASSWORD_AUTH" in client["ExplicitAuthFlows"]) is sends_passwords
    assert "ALLOW_USER_SRP_AUTH" in client["ExplicitAuthFlows"]
    assert client.get("GenerateSecret", False) is False
