"""Two tenants and their people on a fresh deployment: logins in Cognito, rights in the Authority records."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Final

from local.aws import LocalAws
from local.deploy import STAGE, Outputs, output
from local.people import PEOPLE, Person
from local.places import Place
from local.problems import LocalProblem
from shared.adapters.dynamodb.authority import principal_item
from shared.domain.identity import PrincipalRef

if TYPE_CHECKING:
    from mypy_boto3_cognito_idp import CognitoIdentityProviderClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient

# 128 random bits, and one character of each kind that the user pool asks for.
_PASSWORD_BYTES: Final = 16
_OF_EACH_KIND: Final = "aA1!"


def seed(place: Place, aws: LocalAws, outputs: Outputs) -> None:
    """Make every person able to log in and known to the Authority.

    Passwords are made here and kept at ``place.users`` only, readable by the owner of the checkout.

    If killed here:
        Some people exist and some do not; the instance is not marked as ready and is ended by the next start.
    """
    passwords: dict[str, str] = {}
    issuer = _issuer(aws)
    for person in PEOPLE.values():
        password = secrets.token_urlsafe(_PASSWORD_BYTES) + _OF_EACH_KIND
        subject = _add_login(aws, output(outputs, "Engine", "UserPoolId"), person, password)
        _add_rights(aws, issuer, person, subject)
        passwords[person.name] = password
    place.users.touch(mode=0o600)
    place.users.write_text(json.dumps(passwords, indent=2))


def password_of(place: Place, person: str) -> str:
    """The generated password of a seeded person.

    Raises:
        LocalProblem: nobody of that name was seeded here.
    """
    try:
        passwords: dict[str, str] = json.loads(place.users.read_text())
        return passwords[person]
    except (OSError, ValueError, KeyError) as error:
        raise LocalProblem(f"There is no {person} in the local AWS.", f"There are {', '.join(PEOPLE)}.") from error


def _add_login(aws: LocalAws, pool: str, person: Person, password: str) -> str:
    """Add a user with a permanent password and answer the subject that the pool gave it."""
    cognito: CognitoIdentityProviderClient = aws.client("cognito-idp")
    made = cognito.admin_create_user(UserPoolId=pool, Username=person.name, MessageAction="SUPPRESS")
    cognito.admin_set_user_password(UserPoolId=pool, Username=person.name, Password=password, Permanent=True)
    (subject,) = [each["Value"] for each in made["User"]["Attributes"] if each["Name"] == "sub"]
    return subject


def _issuer(aws: LocalAws) -> str:
    """Who vouches for logins, as the deployed API was told."""
    lambda_: LambdaClient = aws.client("lambda")
    api = lambda_.get_function_configuration(FunctionName=f"holdfast-{STAGE}-api")
    return api["Environment"]["Variables"]["OIDC_ISSUER"]


def _add_rights(aws: LocalAws, issuer: str, person: Person, subject: str) -> None:
    """Write the Authority record of a person: whose they are and in which roles, by issuer and subject."""
    dynamodb: DynamoDBClient = aws.client("dynamodb")
    item = principal_item(PrincipalRef(issuer=issuer, subject=subject), tenant=person.tenant, roles=person.roles)
    dynamodb.put_item(TableName=f"holdfast-{STAGE}-authority", Item=item)
