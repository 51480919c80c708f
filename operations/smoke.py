"""`python -m operations.smoke`: is the model served as it should be? Run it while `pulumi stack output connect` runs.

Asks in this order, each with its time: health, models, a wrong key refused, a chat, a streamed chat, a tool call, a
prompt near the longest. The environment variable VLLM_API_KEY holds the key; without one, as for a stack with
`allowAnonymous`, no key is checked. The exit status says what failed first:

    0 all passed     11 health    12 models      13 key       14 chat
    2 refused input  15 stream    16 tool call   17 long prompt
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console

from operations.openai_api import Api, ApiError

FIRST_EXIT_STATUS = 11
ANSWER_TOKENS = 64
LONG_MARGIN = 256
"""Tokens left free of the longest request: the answer, and the chat template around the prompt."""

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@dataclass(slots=True)
class Smoke:
    """The checks. `model` and `longest` (tokens) are known once the models have been asked for."""

    api: Api
    model: str = ""
    longest: int = 0

    def health(self) -> str:
        """The leader is up: all ranks have loaded."""
        self.api.get("/health")
        return "the server is up"

    def models(self) -> str:
        """Which model is served, and how long a request may be."""
        listed = self.api.get("/v1/models")["data"]
        if not listed:
            raise ApiError("no model is served", 200)
        served = listed[0]
        self.model, self.longest = served["id"], int(served.get("max_model_len") or 0)
        return f"{self.model}, requests of at most {self.longest:,} tokens"

    def key(self) -> str:
        """A wrong key is refused."""
        if not self.api.key:
            return "not checked: VLLM_API_KEY is not set"
        try:
            Api(self.api.url, "wrong-on-purpose", self.api.timeout).get("/v1/models")
        except ApiError as error:
            if error.status == 401:
                return "a wrong key is refused"
            raise
        raise ApiError("a wrong key was accepted: the API is open to everybody", 200)

    def chat(self) -> str:
        """One answer."""
        answer = self.api.post("/v1/chat/completions", self._request("Say hello."))
        choice, usage = answer["choices"][0], answer["usage"]
        message = choice["message"]
        text = message.get("content") or message.get("reasoning_content") or message.get("reasoning") or ""
        if not text.strip():
            raise ApiError(f"an empty answer (finish_reason {choice.get('finish_reason')})", 200)
        return f"{usage['completion_tokens']} tokens: {' '.join(text.split())[:60]}"

    def stream(self) -> str:
        """An answer in pieces, as it is made."""
        started = time.monotonic()
        first, pieces = 0.0, 0
        for piece in self.api.stream(
            "/v1/chat/completions", self._request("Count from one to ten.") | {"stream": True}
        ):
            delta = piece["choices"][0]["delta"] if piece["choices"] else {}
            if any(delta.get(field) for field in ("content", "reasoning_content", "reasoning")):
                pieces += 1
                first = first or time.monotonic() - started
        if pieces < 2:
            raise ApiError(f"{pieces} pieces instead of a stream", 200)
        return f"{pieces} pieces, the first after {first:.2f} s"

    def tool_call(self) -> str:
        """The parser of the model's tool calls."""
        choice = {"type": "function", "function": {"name": "get_weather"}}
        request = self._request("What is the weather in Paris?") | {"tools": [WEATHER], "tool_choice": choice}
        calls = self.api.post("/v1/chat/completions", request)["choices"][0]["message"].get("tool_calls") or []
        if not calls or calls[0]["function"]["name"] != "get_weather":
            raise ApiError("no call of the tool in the answer: has the model a tool call parser?", 200)
        return f"get_weather({calls[0]['function']['arguments']})"

    def long_prompt(self) -> str:
        """A prompt that nearly fills the longest request: the KV cache holds what the plan says."""
        wanted = self.longest - LONG_MARGIN
        if wanted <= 0:
            raise ApiError(f"the server did not say how long a request may be ({self.longest})", 200)
        text = "word " * wanted
        counted = int(self.api.post("/tokenize", {"model": self.model, "prompt": text})["count"])
        words = max(1, wanted * wanted // counted)
        answer = self.api.post("/v1/chat/completions", self._request("word " * words, tokens=8))
        return f"{answer['usage']['prompt_tokens']:,} of {self.longest:,} tokens"

    def _request(self, question: str, tokens: int = ANSWER_TOKENS) -> dict[str, object]:
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": question}],
            "max_tokens": tokens,
            "temperature": 0,
        }

    @property
    def checks(self) -> tuple[tuple[str, Callable[[], str]], ...]:
        """In the order in which they are made; the exit status of each is its place from 11 on."""
        return (
            ("health", self.health),
            ("models", self.models),
            ("key", self.key),
            ("chat", self.chat),
            ("stream", self.stream),
            ("tool call", self.tool_call),
            ("long prompt", self.long_prompt),
        )


def run(smoke: Smoke, console: Console) -> int:
    """Make every check, print a line for each, and return the exit status. What needs the model stops without one."""
    status = 0
    for place, (name, check) in enumerate(smoke.checks, start=FIRST_EXIT_STATUS):
        started = time.monotonic()
        try:
            said, mark = check(), "pass"
        except ApiError as error:
            said, mark = str(error), "FAIL"
            status = status or place
        console.print(f"{mark}  {name:<12} {time.monotonic() - started:7.2f} s  {said}", highlight=False, markup=False)
        if mark == "FAIL" and name in ("health", "models"):
            break
    return status


def main(
    url: Annotated[str, typer.Option("--url", help="Where the API answers.")] = "http://127.0.0.1:8000",
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds for one answer.", min=1, max=3600)] = 600,
) -> None:
    """Health, models, key, chat, stream, tool call and a long prompt against a served model."""
    if not url.startswith(("http://", "https://")):
        typer.echo(f"--url {url}\n   allowed: an address that begins with http:// or https://", err=True)
        raise typer.Exit(2)
    smoke = Smoke(Api(url.rstrip("/"), os.environ.get("VLLM_API_KEY", ""), timeout))
    raise typer.Exit(run(smoke, Console(soft_wrap=True)))


if __name__ == "__main__":
    typer.run(main)
