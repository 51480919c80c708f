"""The plugin's process: serves the provider on a port of 127.0.0.1 that it prints for the engine.

The SDK's own server appends a Python traceback to every error. A refusal of the simulation is no fault of the
program, so this one passes its text on alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc.aio  # type: ignore[import-untyped]
from pulumi.provider.experimental.provider import Provider
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import provider_pb2_grpc

VERSION = "7.51.1"
"""The release of pulumi-aws whose resources are simulated; the same as in requirements.txt."""

CALLS_AT_ONCE = 64
"""Threads for the engine's calls. asyncio's own pool has six on two cores, which slow creations would fill."""

_Method = Callable[[Any, Any, Any], Awaitable[Any]]
_CALLS = (
    "CheckConfig",
    "DiffConfig",
    "Configure",
    "Check",
    "Diff",
    "Create",
    "Update",
    "Delete",
    "Read",
    "Invoke",
)


class Servicer(ProviderServicer):
    """The SDK's servicer, with refusals passed on as they are."""


def _without_traceback(method: _Method) -> _Method:
    async def call(servicer: Any, request: Any, context: Any) -> Any:  # noqa: ANN401
        try:
            return await method(servicer, request, context)
        except Exception as error:
            refusal = error.__context__  # the SDK has wrapped what the provider raised
            if type(refusal).__module__.startswith("simulation."):
                await context.abort(grpc.StatusCode.UNKNOWN, str(refusal))
            raise

    return call


for _name in _CALLS:
    setattr(Servicer, _name, _without_traceback(getattr(ProviderServicer, _name)))


def serve(arguments: list[str], provider: Provider) -> None:
    """Serves until the engine ends the process. `arguments` are the engine's address and its flags."""
    engine_address = next((item for item in arguments if not item.startswith("-")), "")

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(CALLS_AT_ONCE))
        server = grpc.aio.server(options=_GRPC_CHANNEL_OPTIONS)
        servicer = Servicer(arguments, VERSION, provider, engine_address)
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        await server.wait_for_termination()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())
