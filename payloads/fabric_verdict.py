"""From what the nodes reported to one verdict. Pure: no process, no network."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from payloads import nccl_log
from payloads.fabric_run import NodeResult
from payloads.fabric_settings import ExitCode, FabricError, Settings

REASON_CHARACTERS = 400
VERDICT_CHARACTERS = 1500
"""Twice the reason, once for people and once in the JSON object, fits into the termination message's 4096 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome for people and programs; bandwidths in GB/s (1e9 bytes), None where the test did not get so far."""

    verdict: str
    code: int
    step: str
    reason: str
    nodes: int
    world_size: int
    bytes: int
    busbw_gb_per_s: float | None = None
    algbw_gb_per_s: float | None = None
    per_gpu_gb_per_s: float | None = None
    median_seconds: float | None = None
    slowest_seconds: float | None = None
    transport: str | None = None
    nics: int | None = None
    gpudirect: bool | None = None
    nccl: str = ""
    driver: str = ""
    torch: str = ""
    gpu: str = ""

    @property
    def line(self) -> str:
        """One line for a person."""
        word = {"pass": "passed", "warn": "passed with a warning", "fail": f"failed ({self.step})"}[self.verdict]
        return f"fabric test {word}: {' '.join(self.reason.split())}"

    @property
    def text(self) -> str:
        """The line, and the JSON object on a line of its own."""
        return f"{self.line}\n{json.dumps(asdict(self))}"


def failed(settings: Settings, code: ExitCode, reason: str, figures: Mapping[str, Any] | None = None) -> Verdict:
    """A verdict that blocks."""
    return _verdict(settings, "fail", code, reason, figures or {})


def compare(settings: Settings, hellos: Sequence[Mapping[str, Any]]) -> None:
    """Check what the nodes said of themselves, in the order of node ranks, in the order of the checks.

    Raises:
        FabricError: BAD_CONFIGURATION, what a node found wrong with itself, or VERSIONS_DIFFER.
    """
    for hello in hellos:
        for name, wanted in settings.shared.items():
            if hello["shared"].get(name) != wanted:
                raise FabricError(
                    ExitCode.BAD_CONFIGURATION,
                    f"{_node(hello)} was given FABRIC_{name}={hello['shared'].get(name)}, the leader {wanted}",
                )
    problems = [(hello["code"], f"{_node(hello)}: {hello['reason']}") for hello in hellos if hello["code"]]
    if problems:
        first = min(code for code, _ in problems)
        raise FabricError(ExitCode(first), ". ".join(reason for code, reason in problems if code == first))
    for name in ("driver", "nccl", "torch"):
        found = {hello["node"][name] for hello in hellos}
        if len(found) > 1:
            listed = ", ".join(f"{_node(hello)} {hello['node'][name] or 'none'}" for hello in hellos)
            raise FabricError(ExitCode.VERSIONS_DIFFER, f"the {name} versions differ: {listed}")


def judge(settings: Settings, results: Sequence[NodeResult], missing: Mapping[int, str]) -> Verdict:
    """Judge sum, transport, bandwidth. `missing`: nodes that left no result, and why."""
    figures = measured(settings, results)
    try:
        _check_ranks(settings, results, missing)
        if settings.kind != "none" and settings.nodes > 1:
            _check_transport(settings, results)
        warning = _check_bandwidth(settings, figures)
    except FabricError as error:
        return failed(settings, error.code, str(error), figures)
    if settings.kind != "none" and settings.nodes > 1 and not figures["gpudirect"]:
        warning = ". ".join(filter(None, (warning, "NCCL does not use GPUDirect RDMA: data goes through host memory")))
    summary = _summary(settings, figures)
    return _verdict(
        settings, "warn" if warning else "pass", ExitCode.PASS, f"{warning}. {summary}" if warning else summary, figures
    )


def measured(settings: Settings, results: Sequence[NodeResult]) -> dict[str, Any]:
    """The figures as far as they are known.

    The median of the timed all-reduces counts: one hiccup of a shared switch is no reason to refuse a cluster, and a
    lost rail slows each of them. Bus bandwidth is 2 (n - 1) / n x bytes / time (NVIDIA/nccl-tests:doc/PERFORMANCE.md).
    `per_gpu` is what each GPU's share of the network carries at least, whatever the algorithm: an all-reduce moves
    2 (nodes - 1) / nodes x bytes out of each node, so busbw x (nodes - 1) / (ranks - 1). A ring moves more, up to busbw
    over one link between two nodes.
    """
    logs = [result.log for result in results]
    counts = {"efa": [log.libfabric_nics for log in logs], "infiniband": [log.hcas for log in logs]}
    known = [count for count in counts.get(settings.kind, ()) if count is not None]
    figures: dict[str, Any] = {
        "transport": next((log.transport for log in logs if log.transport), None),
        "nics": min(known, default=None),
        "gpudirect": all(log.gpudirect for log in logs) if settings.nodes > 1 and logs else None,
    }
    seconds = next((record["seconds"] for result in results for record in result.records if "seconds" in record), None)
    if seconds and settings.ranks > 1:
        median = statistics.median(seconds)
        algbw = settings.bytes / median / 1e9
        busbw = algbw * 2 * (settings.ranks - 1) / settings.ranks
        rates = {"median_seconds": median, "slowest_seconds": max(seconds)}
        rates |= {"algbw_gb_per_s": algbw, "busbw_gb_per_s": busbw}
        if settings.nodes > 1:
            rates["per_gpu_gb_per_s"] = busbw * (settings.nodes - 1) / (settings.ranks - 1)
        figures |= {name: float(f"{rate:.6g}") for name, rate in rates.items()}
    return figures


def _check_ranks(settings: Settings, results: Sequence[NodeResult], missing: Mapping[int, str]) -> None:
    said = [(result, record) for result in results for record in result.records if record.get("code")]
    for code in (ExitCode.GPU_COUNT, ExitCode.WRONG_SUM):
        reasons = [f"{_place(result)}: {record['reason']}" for result, record in said if record["code"] == code]
        if reasons:
            raise FabricError(code, _few(reasons))
    # Who was stopped because another failed is no cause.
    causes_first = sorted(results, key=lambda result: result.problem.startswith("stopped"))
    troubles = [trouble for result in causes_first if (trouble := _trouble(result, settings.gpus))]
    troubles += [f"node rank {rank} left no result: {why}" for rank, why in sorted(missing.items())]
    if not troubles:
        return
    warnings = dict.fromkeys(warning for result in results for warning in result.log.warnings)
    no_network = settings.kind != "none" and any(result.log.network_warnings for result in results)
    code = ExitCode.WRONG_TRANSPORT if no_network else ExitCode.COLLECTIVE_FAILED
    quoted = [f"NCCL said: {'; '.join(list(warnings)[:2])}"] if warnings else []
    raise FabricError(code, _few([*quoted, *troubles]))


def _trouble(result: NodeResult, ranks: int) -> str | None:
    unfinished = [record for record in result.records if record["step"] != "done"]
    if not result.problem and not unfinished and len(result.records) == ranks:
        return None
    what = result.problem or f"{len(result.records) - len(unfinished)} of {ranks} ranks reached the end"
    if unfinished:
        steps = ", ".join(sorted({record["step"] for record in unfinished}))
        what += f" (rank {', '.join(str(record['rank']) for record in unfinished)} in step {steps})"
    reason = next((record["reason"] for record in unfinished if record.get("reason")), "")
    return f"{_place(result)}: {what}{': ' + reason if reason else ''}"


def _check_transport(settings: Settings, results: Sequence[NodeResult]) -> None:
    for result in results:
        reason = nccl_log.why_not(result.log, kind=settings.kind, nics=settings.nics)
        if not reason and result.logged < settings.gpus:
            reason = f"NCCL wrote the log of {result.logged} of {settings.gpus} ranks"
        if reason:
            raise FabricError(ExitCode.WRONG_TRANSPORT, f"{_place(result)}: {reason}")


def _check_bandwidth(settings: Settings, figures: Mapping[str, Any]) -> str:
    busbw = figures.get("busbw_gb_per_s")
    if busbw is None:  # one rank: there is no bus
        return ""
    for limit, name, blocks in (
        (settings.fail_below, "fail_below", settings.mode == "require"),
        (settings.warn_below, "warn_below", False),
    ):
        if busbw < limit:
            reason = f"bus bandwidth {_rate(busbw)} GB/s is below {limit:g} ({name})"
            if blocks:
                raise FabricError(ExitCode.LOW_BANDWIDTH, f"{reason}. {_summary(settings, figures)}")
            return reason
    return ""


def _summary(settings: Settings, figures: Mapping[str, Any]) -> str:
    if settings.ranks == 1:
        return "one rank: NCCL starts and ends, there is no other rank to measure with"
    text = (
        f"{settings.nodes} x {settings.gpus} ranks, all-reduce of {settings.bytes / 2**20:.0f} MiB at "
        f"{_rate(figures['busbw_gb_per_s'])} GB/s bus bandwidth"
    )
    if settings.nodes > 1:
        text += f" ({_rate(figures['per_gpu_gb_per_s'])} GB/s per GPU)"
    text += f" over {figures['transport'] or settings.backend}"
    if figures["nics"] is not None:
        text += f", {figures['nics']} network devices a node"
    text += "; every sum was exact"
    if settings.nodes == 1:
        text += ". One node: this shows the links inside it, nothing about a fabric between nodes"
    return text


def _verdict(settings: Settings, word: str, code: ExitCode, reason: str, figures: Mapping[str, Any]) -> Verdict:
    return Verdict(
        verdict=word,
        code=int(code),
        step=code.step,
        reason=reason[:VERDICT_CHARACTERS],
        nodes=settings.nodes,
        world_size=settings.ranks,
        bytes=settings.bytes,
        **figures,
    )


def _few(reasons: Iterable[str]) -> str:
    reasons = [reason[:REASON_CHARACTERS] for reason in reasons]
    rest = f" (and {len(reasons) - 3} more)" if len(reasons) > 3 else ""
    return "; ".join(reasons[:3]) + rest


def _rate(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.4f}"


def _place(result: NodeResult) -> str:
    return f"node {result.rank} ({result.name})"


def _node(hello: Mapping[str, Any]) -> str:
    return f"node {hello['rank']} ({hello['name']})"
