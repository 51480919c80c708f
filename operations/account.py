"""An AWS account and region, asked with the user's own credentials.

Every question has a time limit, and no error of AWS becomes a traceback. boto3 is wanted when a command runs and not
before: the planner and the program do without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.command_line import refuse

CONNECT_SECONDS, READ_SECONDS, ATTEMPTS = 5, 20, 3
"""Limits of one request, and how often it is sent: a question is answered, or given up, within 75 s."""

_DENIED = (
    "AccessDenied",
    "AccessDeniedException",
    "UnauthorizedOperation",
    "AuthorizationError",
    "Client.Unauthorized",
)
_NO_CREDENTIALS = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "CredentialRetrievalError",
    "SSOTokenLoadError",
    "UnauthorizedSSOTokenError",
    "TokenRetrievalError",
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
)
# How IAM calls services and actions, where it is not as the API does.
_PREFIXES = {"elb": "elasticloadbalancing", "elbv2": "elasticloadbalancing", "resourcegroupstaggingapi": "tag"}
_PERMISSIONS = {
    ("budgets", "DescribeBudgets"): "budgets:ViewBudget",
    ("s3", "ListObjectsV2"): "s3:ListBucket",
    ("service-quotas", "GetServiceQuota"): "servicequotas:GetServiceQuota",
}


class AwsError(Exception):
    """A question that AWS did not answer; the message says why. `code` is AWS's, or what botocore calls the error.

    `permission`: what IAM calls the action, as ec2:DescribeVpcs. `denied`: the credentials lack it.
    """

    def __init__(self, message: str, *, code: str, permission: str) -> None:
        super().__init__(message)
        self.code, self.permission = code, permission
        self.denied = code in _DENIED


class Account:
    """One account and region. `number` has twelve digits; `identity` is the ARN that asks."""

    def __init__(self, session: Any, region: str) -> None:  # noqa: ANN401 (boto3 makes its classes at run time)
        self.region = region
        self._session, self._clients = session, dict[str, Any]()
        caller = self.ask("sts", "get_caller_identity")
        self.number, self.identity = str(caller["Account"]), str(caller["Arn"])

    def ask(self, service: str, operation: str, **request: Any) -> dict[str, Any]:  # noqa: ANN401
        """One answer. Raises AwsError."""
        answer: dict[str, Any] = self._tried(service, operation, lambda method: method(**request))
        return answer

    def pages(self, service: str, operation: str, key: str, **request: Any) -> Iterator[Any]:  # noqa: ANN401
        """The items below `key` of all pages. Raises AwsError, perhaps after the first items."""
        client = self.client(service)
        if not client.can_paginate(operation):
            yield from self.ask(service, operation, **request).get(key, ())
            return
        pages = iter(client.get_paginator(operation).paginate(**request))
        while (page := self._tried(service, operation, lambda _: next(pages, None))) is not None:
            yield from page.get(key, ())

    def client(self, service: str) -> Any:  # noqa: ANN401
        """A client with the limits of this module, made once."""
        from botocore.config import Config

        if service not in self._clients:
            limits = Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            )
            self._clients[service] = self._session.client(service, region_name=self.region, config=limits)
        return self._clients[service]

    def _tried(self, service: str, operation: str, question: Any) -> Any:  # noqa: ANN401
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        try:
            client = self.client(service)
            return question(getattr(client, operation))
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            message = str(error.response.get("Error", {}).get("Message", "")) or code
            raise AwsError(message, code=code, permission=_permission(service, error.operation_name)) from None
        except (BotoCoreError, ResponseParserError) as error:  # the latter of a proxy that answers in AWS's place
            raise AwsError(str(error), code=type(error).__name__, permission=_permission(service, operation)) from None


def connect(region: str) -> Account:
    """The account that the user's credentials belong to; the command is refused where there is none to ask."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError
    except ImportError:
        refuse("boto3", "installed: AWS is asked through it", "pip install boto3")
    try:
        return Account(boto3.Session(region_name=region), region)
    except BotoCoreError as error:  # a profile that is not there
        refuse("AWS credentials", f"a profile that exists: {error}", "aws configure list-profiles")
    except AwsError as error:
        if error.code in _NO_CREDENTIALS:
            allowed = f"credentials that AWS accepts in {region}, and a region that the account has enabled: {error}"
            refuse("AWS credentials", allowed, "aws configure", "aws sso login")
        refuse("AWS", f"an answer of STS in {region}: {error}", f"aws sts get-caller-identity --region {region}")


def _permission(service: str, operation: str) -> str:
    """`describe_vpcs` and `DescribeVpcs` of ec2 as ec2:DescribeVpcs."""
    camel = operation if "_" not in operation else "".join(word.title() for word in operation.split("_"))
    return _PERMISSIONS.get((service, camel), f"{_PREFIXES.get(service, service)}:{camel}")
