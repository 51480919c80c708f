"""Starting, resuming and stopping the local control plane as a whole."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Callable
from dataclasses import replace

from simulation import paths, tools
from simulation.control_plane import certificates, lws, processes, programs, state
from simulation.control_plane.access import ClusterAccess, access_to, write_kubeconfigs
from simulation.control_plane.api import Api, ApiError
from simulation.control_plane.errors import ControlPlaneError
from simulation.control_plane.leftovers import record_baseline
from simulation.control_plane.state import State

START_SECONDS = 90
"""Up takes 9 s on two quiet cores; a laptop that compiles beside it takes several times that."""


def start(cluster: str, kubernetes_version: str) -> ClusterAccess:
    """Starts a fresh control plane for `cluster`, or returns the access to the one that runs already.

    `kubernetes_version` is the minor version as EKS names it ("1.35"). Raises ControlPlaneError if another
    version is asked for, if another cluster of this home is up, or if a program does not come up; nothing is
    left running then.
    """
    _check_version(kubernetes_version)
    kept = state.load()
    if kept is not None:
        if kept.cluster != cluster:
            raise ControlPlaneError(
                f"The local control plane of {paths.home()} is cluster {kept.cluster!r}; it holds one only. "
                f"Destroy that stack first, or set SIMULATION_HOME to another folder for {cluster!r}."
            )
        resume()
        return access_to(kept)
    fresh = State(cluster=cluster, kubernetes_version=kubernetes_version, ports=_free_ports(), processes={})
    try:
        _prepare(fresh)
        resume()
    except BaseException:
        stop()
        raise
    return access_to(fresh)


def _prepare(fresh: State) -> None:
    """Writes all files that programs need; the record last, since what is recorded can be resumed."""
    shutil.rmtree(paths.control_plane(), ignore_errors=True)
    state.log("any").parent.mkdir(parents=True)
    certificates.make(state.certificates())
    write_kubeconfigs(fresh)
    state.save(fresh)


def resume() -> bool:
    """Starts again what does not run any more (after a restart of the machine) on the kept data and ports.

    Returns whether there is a control plane to resume; does nothing if there is none.
    """
    kept = state.load()
    if kept is None:
        return False
    if not all(program in kept.processes and kept.processes[program].is_alive for program in ORDER):
        _bring_up(kept)
    record_baseline(state.connect())
    return True


def stop() -> None:
    """Ends every process that `start` made and forgets the cluster. Does nothing if there is none."""
    kept = state.load()
    if kept is not None:
        for identity in reversed(kept.processes.values()):
            processes.kill(identity)
    shutil.rmtree(paths.control_plane(), ignore_errors=True)


ORDER = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "lws-manager",
    "kwok",
    "node-agent",
)


def _bring_up(current: State) -> None:
    current = _run(current, "etcd")
    _wait_for_port(current, "etcd")
    current = _run(current, "kube-apiserver")
    api = Api(current.ports["kube-apiserver"], state.certificates())
    _wait(current, "kube-apiserver", api.is_ready)
    current = _run(current, "kube-controller-manager")
    current = _run(current, "kube-scheduler")
    lws.define(api)
    _wait(current, "kube-apiserver", lambda: lws.is_defined(api))
    for program in ("lws-manager", "kwok", "node-agent"):
        current = _run(current, program)
    for program in ("lws-manager", "kwok", "kube-scheduler", "kube-controller-manager"):
        _wait_for_port(current, program)
    lws.register_webhooks(api, current)
    _wait(current, "kube-controller-manager", lambda: _admits_pods(api))


def _run(current: State, program: str) -> State:
    """Starts `program` unless it runs; recorded at once, so that a crash leaves nothing unknown behind."""
    known = current.processes.get(program)
    if known is not None and known.is_alive:
        return current
    identity = processes.launch(
        programs.arguments(program, current),
        log=state.log(program),
        environment=programs.environment(program),
    )
    current = replace(current, processes=current.processes | {program: identity})
    state.save(current)
    return current


def _wait(current: State, program: str, check: Callable[[], bool]) -> None:
    """Waits until `check` holds, but not for a program that has died."""
    identity = current.processes[program]
    processes.wait_until(
        f"{program} comes up",
        lambda: check() or not identity.is_alive,
        seconds=START_SECONDS,
        log=state.log(program),
    )
    if not identity.is_alive:
        raise ControlPlaneError(f"{program} ended while it was starting.{processes.tail(state.log(program))}")


def _wait_for_port(current: State, program: str) -> None:
    def listens() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", current.ports[program]), 1):
            return True
        return False

    _wait(current, program, listens)


def _admits_pods(api: Api) -> bool:
    """A pod is refused until its namespace's default service account is there."""
    try:
        api.get("/api/v1/namespaces/default/serviceaccounts/default")
    except ApiError:
        return False
    return True


def _free_ports() -> dict[str, int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in programs.PORTS]
        return dict(zip(programs.PORTS, (one.getsockname()[1] for one in sockets), strict=True))


def _check_version(wanted: str) -> None:
    command = [str(tools.binary("kube-apiserver")), "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    built = answer.split()[-1].removeprefix("v")
    if not built.startswith(f"{wanted}."):
        minor = built.rpartition(".")[0]
        raise ControlPlaneError(
            f"The stand-in runs Kubernetes {built}; version {wanted!r} was asked for. Ask for {minor!r}."
        )
