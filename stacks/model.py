"""Which model is asked, and what that takes in IAM."""

import re
from dataclasses import dataclass
from typing import Final

from aws_cdk import Aws

# Ids that begin with a geography name a cross-region inference profile, which stands before the model's own id.
PROFILE_ID: Final = re.compile(r"(?:us|us-gov|eu|apac|jp|au|ca|global)\.(?P<model>.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A Bedrock model or system inference profile, by the id given to Converse."""

    model_id: str

    @property
    def arns(self) -> tuple[str, ...]:
        """Everything `bedrock:InvokeModel` has to be allowed on to call it."""
        profile = PROFILE_ID.fullmatch(self.model_id)
        if profile is None:
            return (f"arn:{Aws.PARTITION}:bedrock:{Aws.REGION}::foundation-model/{self.model_id}",)
        return (
            f"arn:{Aws.PARTITION}:bedrock:{Aws.REGION}:{Aws.ACCOUNT_ID}:inference-profile/{self.model_id}",
            f"arn:{Aws.PARTITION}:bedrock:*::foundation-model/{profile['model']}",
        )
