"""Answers of AWS to questions that moto does not know, through botocore's Stubber, which holds them to the API's model.

They show what a command makes of an answer of this shape. They do NOT show that AWS gives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.stub import Stubber

from operations.account import Account, connect
from tests.operations.made import REGION

Answers = dict[tuple[str, str], Any]
"""By service and operation: an answer, a function from the request to one, or the code of an error."""


def answering(monkeypatch: pytest.MonkeyPatch, command: Any, answers: Answers) -> None:
    """Let a command's module connect to an account that knows these answers and asks moto for all others."""
    account = connect(REGION)
    ask, pages = account.ask, account.pages

    def stubbed_ask(service: str, operation: str, **request: Any) -> dict[str, Any]:
        with _stub(account, service, operation, request, answers):
            return ask(service, operation, **request)

    def stubbed_pages(service: str, operation: str, key: str, **request: Any) -> Iterator[Any]:
        with _stub(account, service, operation, request, answers):
            yield from list(pages(service, operation, key, **request))

    monkeypatch.setattr(account, "ask", stubbed_ask)
    monkeypatch.setattr(account, "pages", stubbed_pages)
    monkeypatch.setattr(command, "connect", lambda _: account)


@contextmanager
def _stub(account: Account, service: str, operation: str, request: dict[str, Any], answers: Answers) -> Iterator[None]:
    answer = answers.get((service, operation))
    if callable(answer):
        answer = answer(request)
    if answer is None:
        yield
        return
    with Stubber(account.client(service)) as stub:
        if isinstance(answer, str):
            stub.add_client_error(operation, answer, "as the test wants it")
        else:
            stub.add_response(operation, answer, request)
        yield
