"""Prove the fabric between the GPU nodes before anything is served over it.

Runs as `python3 -m payloads.fabric_test` in the serving image, one pod a node with all of its GPUs and fabric devices;
starts `torch.distributed.run` itself. Node rank 0, the leader, gathers the reports and judges; the others end with its
verdict, or with their own where they cannot hear it. Checked in this order, each with its own exit code
(`payloads.fabric_settings.ExitCode`):

    peers       every node reports to the leader in time                                     11 PEERS_MISSING
    gpus        each node sees the expected number of GPUs; all ranks meet                   12 GPU_COUNT
    devices     the EFA devices or active InfiniBand HCAs are in the container               13 FABRIC_DEVICES
    versions    driver, NCCL and torch are the same on all nodes                             14 VERSIONS_DIFFER
    collective  the all-reduce starts and ends                                               15 COLLECTIVE_FAILED
    sum         every element of it is exact on every rank, before and after the load        16 WRONG_SUM
    transport   NCCL's own log shows the required fabric and its number of devices           17 WRONG_TRANSPORT
    bandwidth   bus bandwidth is not below FABRIC_FAIL_BELOW                                 18 LOW_BANDWIDTH

Besides: 0 PASS (also with a warning), 1 UNEXPECTED, 10 BAD_CONFIGURATION, 143 INTERRUPTED. A bandwidth below
FABRIC_WARN_BELOW is a warning. FABRIC_MODE=warn turns LOW_BANDWIDTH into a warning, and nothing else.

Environment variables, the same on all nodes but for rank and name:
    FABRIC_NODES              number of nodes
    FABRIC_NODE_RANK          0 is the leader; default: JOB_COMPLETION_INDEX, which an Indexed Job sets
    FABRIC_NODE_NAME          how messages call the node; default: the host name
    FABRIC_LEADER             name or IP of node rank 0; not needed for one node
    FABRIC_PORT               TCP port of the reports on the leader, default 29400; torch's rendezvous takes the next
    FABRIC_GPUS               GPUs a node, a rank each
    FABRIC_KIND               efa, infiniband, or none: no fabric is required (one node: its inner links are tested)
    FABRIC_NICS               fabric devices a node, at least; not needed for none
    FABRIC_BACKEND            nccl (default), or gloo: ranks on CPUs, for tests
    FABRIC_MODE               require (default) or warn
    FABRIC_BYTES              size of the all-reduce, default 2 GiB
    FABRIC_WARN_BELOW, FABRIC_FAIL_BELOW
                              bus bandwidth in GB/s (1e9 bytes), default 0: never
    FABRIC_WARM_UP, FABRIC_ITERATIONS
                              untimed and timed all-reduces, default 5 and 20; their median counts
    FABRIC_PEER_TIMEOUT_SECONDS, FABRIC_TEST_TIMEOUT_SECONDS
                              for the nodes to report (default 900), for the ranks to end (default 300)
    FABRIC_CONFIGMAP, FABRIC_CONFIGMAP_NAMESPACE
                              an existing ConfigMap that the leader's service account may patch; default: log only.
                              Keys: phase (peers, measuring, complete, failed), message, verdict (JSON), updated
    FABRIC_TERMINATION_LOG    default /dev/termination-log
    FABRIC_SERVICE_ACCOUNT    folder with the files token and ca.crt; default: where Kubernetes mounts them
    FABRIC_ROOT               folder that holds sys/ and dev/; default /
NCCL's and libfabric's own variables (NCCL_NET, NCCL_SOCKET_IFNAME, …) are passed on to the ranks.

The last two lines of the log are the verdict: a sentence, and a JSON object with the fields of
`payloads.fabric_verdict.Verdict`. The termination message holds both, the ConfigMap the sentence as `message`, the
object as `verdict`.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from dataclasses import asdict, replace
from types import FrameType

from payloads import fabric_devices, fabric_peers, fabric_run, fabric_verdict
from payloads.fabric_devices import Node
from payloads.fabric_peers import Channel, Message, PeerLostError
from payloads.fabric_run import NodeResult
from payloads.fabric_settings import ExitCode, FabricError, Settings
from payloads.fabric_verdict import Verdict
from payloads.reporting import ConfigMapBoard, log, write_termination_message

ANSWER_SECONDS = 30.0
"""Allowance for a message beyond the time that the work before it may take."""


def main() -> int:
    """Run this node's part, report it, and return the exit code."""
    # The first process of a container has no default action for SIGTERM: without a handler it is ignored.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        settings = Settings.from_environment(os.environ)
    except FabricError as error:
        text = f"fabric test failed (configuration): {error}"
        write_termination_message(text, os.environ.get("FABRIC_TERMINATION_LOG", ""))
        log(text)
        return error.code
    verdict = run(settings)
    write_termination_message(verdict.text, settings.termination_log)
    log(verdict.text)
    return verdict.code


def run(settings: Settings) -> Verdict:
    """The verdict of this node's part; the leader also posts it."""
    name = settings.configmap if settings.is_leader else ""
    board = ConfigMapBoard(namespace=settings.namespace, name=name, account=settings.account)
    try:
        verdict = lead(settings, board) if settings.is_leader else follow(settings)
    except FabricError as error:
        verdict = fabric_verdict.failed(settings, error.code, str(error))
    except Exception as error:
        log(traceback.format_exc())
        verdict = fabric_verdict.failed(settings, ExitCode.UNEXPECTED, f"{type(error).__name__}: {error}")
    phase = "failed" if verdict.code else "complete"
    board.post(phase=phase, message=verdict.line, verdict=verdict.text.splitlines()[-1])
    return verdict


def introduce(settings: Settings) -> Message:
    """What this node says of itself; `code` and `reason` when it is not fit for the test."""
    hello: Message = {"rank": settings.node_rank, "name": settings.node_name, "shared": settings.shared}
    try:
        node = fabric_devices.inspect(settings)
    except FabricError as error:
        log(f"this node, rank {settings.node_rank}: {error}")
        return hello | {"node": asdict(Node()), "code": error.code, "reason": str(error)}
    log(f"this node, rank {settings.node_rank}: {asdict(node)}")
    return hello | {"node": asdict(node), "code": 0, "reason": ""}


def lead(settings: Settings, board: ConfigMapBoard) -> Verdict:
    """Gather the nodes, measure with them, judge, and tell them the verdict."""
    board.post(phase="peers", message=f"waiting for {settings.nodes} nodes", verdict="")
    found: dict[int, tuple[Channel, Message]] = {}
    if settings.nodes > 1:
        with fabric_peers.listen(settings.port) as server:
            own = introduce(settings)
            found = fabric_peers.gather(server, settings.nodes, settings.peer_timeout)
    else:
        own = introduce(settings)
    hellos = [own, *(found[rank][1] for rank in sorted(found))]
    channels = {rank: channel for rank, (channel, _) in found.items()}
    try:
        _require_peers(settings, hellos)
        fabric_verdict.compare(settings, hellos)
        board.post(phase="measuring", message=f"measuring with {settings.ranks} ranks")
        verdict = measure_and_judge(settings, channels)
    except FabricError as error:
        verdict = fabric_verdict.failed(settings, error.code, str(error))
    verdict = replace(verdict, **own["node"])
    for channel in channels.values():
        _send(channel, {"verdict": asdict(verdict)})
    return verdict


def _require_peers(settings: Settings, hellos: list[Message]) -> None:
    there = {hello["rank"]: hello["name"] for hello in hellos}
    if missing := [str(rank) for rank in range(settings.nodes) if rank not in there]:
        listed = ", ".join(f"{rank} ({name})" for rank, name in there.items())
        raise FabricError(
            ExitCode.PEERS_MISSING,
            f"node rank {', '.join(missing)} did not report within {settings.peer_timeout:g} s; there: {listed}. "
            "Is its pod running, and may it reach the leader's port?",
        )


def measure_and_judge(settings: Settings, channels: dict[int, Channel]) -> Verdict:
    """The leader's part of the measurement; `channels` by node rank."""
    results: dict[int, NodeResult] = {}
    lost: dict[int, str] = {}

    def listen(seconds: float) -> str | None:
        open_channels = {rank: channels[rank] for rank in channels if rank not in results and rank not in lost}
        for rank in fabric_peers.readable(open_channels, seconds):
            try:
                results[rank] = NodeResult.from_message(channels[rank].receive(ANSWER_SECONDS)["result"])
            except PeerLostError as error:
                lost[rank] = str(error)
            if rank in lost or results[rank].problem:
                return f"stopped when node rank {rank} failed"
        return None

    for channel in channels.values():
        _send(channel, {"start": True})
    own = fabric_run.measure(settings, listen)
    while len(results) + len(lost) < len(channels):
        before = len(results) + len(lost)
        listen(ANSWER_SECONDS)
        if len(results) + len(lost) == before:
            break
    silent = {rank: f"still running after {ANSWER_SECONDS:g} s more" for rank in channels if rank not in results}
    return fabric_verdict.judge(settings, [own, *results.values()], silent | lost)


def follow(settings: Settings) -> Verdict:
    """Report to the leader, measure when it says so, and take its verdict.

    Raises:
        FabricError: the leader cannot be reached or is lost, with what this node itself knows.
    """
    hello = introduce(settings)
    channel = fabric_peers.connect(settings.leader, settings.port, settings.peer_timeout)
    _send(channel, hello)
    answer = _receive(channel, settings.peer_timeout + ANSWER_SECONDS, hello["reason"])
    if "verdict" in answer:
        return Verdict(**answer["verdict"])

    def listen(seconds: float) -> str | None:
        return "stopped by the leader" if fabric_peers.readable({0: channel}, seconds) else None

    result = fabric_run.measure(settings, listen)
    _send(channel, {"result": result.as_message()})
    own = fabric_verdict.judge(settings, [result], {}) if result.problem else None
    answer = _receive(channel, settings.test_timeout + ANSWER_SECONDS, own.reason if own else "")
    return Verdict(**answer["verdict"])


def _send(channel: Channel, message: Message) -> None:
    # Whoever is lost shows when its answer is waited for.
    try:
        channel.send(message)
    except PeerLostError as error:
        log(f"a message was not sent: {error}")


def _receive(channel: Channel, seconds: float, known: str) -> Message:
    try:
        return channel.receive(seconds)
    except PeerLostError as error:
        own = f"; this node itself: {known}" if known else ""
        raise FabricError(ExitCode.COLLECTIVE_FAILED, f"the leader was lost ({error}); see its pod{own}") from error


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise FabricError(ExitCode.INTERRUPTED, "the test was interrupted; it starts over when it is run again")


if __name__ == "__main__":
    sys.exit(main())
