"""What NCCL's own log (NCCL_DEBUG=INFO, subsystems INIT and NET) says about the network that it uses.

Pure text in, facts out. The formats are those of NCCL 2.12 to 2.31 and aws-ofi-nccl 1.6 to 1.21: NVIDIA/nccl
src/transport/net.cc, src/transport/net_ib/init.cc, src/plugin/net.cc and aws/aws-ofi-nccl src/nccl_ofi_net.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+\S*)")
_NETWORK = re.compile(r"NCCL INFO Using network (.+?)\s*$")
_OFI_PROVIDER = re.compile(
    r"NET/OFI Selected [Pp]rovider is ([^\s,]+)(?:, fabric is (\S+))?(?: \(found (\d+) nics?\))?",
)
_IB_DEVICES = re.compile(r"NET/IB : Using(.+?); OOB")
_IB_DEVICE = re.compile(r"[\w-]+:\d+(?::\d*)*/(IB|RoCE)")
_NET_CHANNEL = re.compile(r"\[(?:send|receive)\] via NET/(.+?)/(\d+)(?:\(\d+\))?((?:/\S+|\(PCI\))*)\s*(?:comm .*)?$")
_LOCAL_CHANNEL = re.compile(r"-> \d+\[[0-9a-f]+\] via (P2P|SHM)(/[A-Za-z]+)?")
_WARNING = re.compile(r"NCCL WARN (.+?)\s*$")
_MISSING = re.compile(
    r"NCCL INFO (NET/Plugin ?: (?:Could not find|No plugin found|dlerror).*?|NET/IB : No device found|"
    r"Failed to open libibverbs.*?)\.?\s*$"
)
_NETWORK_FAILURE = re.compile(
    r"NET/OFI|NET/IB|Failed to initialize any NET plugin|ibv_|libfabric|libibverbs", re.IGNORECASE
)
OFI_NETWORKS = ("Libfabric", "AWS Libfabric", "OFI")
"""Names of aws-ofi-nccl's network: since 1.12, before, and when NCCL_NET asks for it by that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclLog:
    """The facts of one rank's log, or of several ranks' logs together.

    `libfabric_nics` counts the devices that aws-ofi-nccl found, `hcas` the InfiniBand HCAs of NCCL's own transport (one
    with RoCE is none); of several ranks the least, None where no log tells.
    `channels` are networks that data goes through between nodes (`Libfabric`, `IB`, `Socket`), `local` the paths inside
    a node (`P2P/CUMEM`, `SHM/direct`); `gpudirect` is true when every network channel has GPUDirect RDMA. `missing` are
    remarks that a network's library or devices are not there.
    """

    version: str | None = None
    networks: frozenset[str] = frozenset()
    provider: str | None = None
    fabric: str | None = None
    libfabric_nics: int | None = None
    hcas: int | None = None
    channels: frozenset[str] = frozenset()
    local: frozenset[str] = frozenset()
    gpudirect: bool = False
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def network_warnings(self) -> tuple[str, ...]:
        """Warnings that say why a network could not be used."""
        return tuple(warning for warning in self.warnings if _NETWORK_FAILURE.search(warning))

    @property
    def transport(self) -> str | None:
        """A short name of what carries the data, None when no channel was logged."""
        if not self.channels:
            return " + ".join(sorted(self.local)) or None
        names = []
        for channel in sorted(self.channels):
            name = f"NET/{channel}"
            if channel in OFI_NETWORKS and self.provider:
                name = f"NET/OFI {self.fabric or self.provider}"
            names.append(name)
        return " + ".join(names) + (" GDRDMA" if self.gpudirect else "")


def parse(lines: Iterable[str]) -> NcclLog:
    """Read the lines of one log; those of several processes may be interleaved."""
    version = provider = fabric = None
    networks, channels, local = set(), set(), set()
    nics: list[int] = []
    hcas: list[int] = []
    direct: list[bool] = []
    warnings: dict[str, None] = {}
    missing: dict[str, None] = {}
    for line in lines:
        if found := _NET_CHANNEL.search(line):
            channels.add(found[1])
            direct.append("/GDRDMA" in found[3])
        elif found := _LOCAL_CHANNEL.search(line):
            local.add(found[1] + (found[2] or ""))
        elif found := _NETWORK.search(line):
            networks.add(found[1])
        elif found := _OFI_PROVIDER.search(line):
            provider, fabric = found[1], found[2] or fabric
            nics.append(int(found[3] or 0))
        elif found := _IB_DEVICES.search(line):
            hcas.append(_IB_DEVICE.findall(found[1]).count("IB"))
        elif found := _WARNING.search(line):
            warnings.setdefault(found[1])
        elif found := _MISSING.search(line):
            missing.setdefault(found[1])
        elif found := _VERSION.search(line):
            version = found[1]
    return NcclLog(
        version=version,
        networks=frozenset(networks),
        provider=provider,
        fabric=fabric,
        libfabric_nics=min(nics, default=None),
        hcas=min(hcas, default=None),
        channels=frozenset(channels),
        local=frozenset(local),
        gpudirect=bool(direct) and all(direct),
        warnings=tuple(warnings),
        missing=tuple(missing),
    )


def why_not(log: NcclLog, *, kind: str, nics: int) -> str | None:
    """Why this log does not prove that `kind` (efa or infiniband) carries the data over `nics` devices, or None."""
    wanted = "NET/OFI with provider efa" if kind == "efa" else "NET/IB"
    said = log.network_warnings[:1] or log.missing[:2]
    hint = f"; NCCL said: {'; '.join(said)}" if said else ""
    foreign = sorted(name for name in log.channels if not _carries(kind, name))
    if foreign:
        return f"data goes through {', '.join(f'NET/{name}' for name in foreign)} instead of {wanted}{hint}"
    if not log.channels:
        return f"NCCL's log shows no channel through {wanted}{hint}"
    if kind == "efa" and log.provider != "efa":
        return f"libfabric's provider is {log.provider or 'not named in the log'} instead of efa{hint}"
    found, what = (log.libfabric_nics, "EFA devices") if kind == "efa" else (log.hcas, "InfiniBand HCAs")
    if (found or 0) < nics:
        return f"NCCL found {found or 'no'} {what} instead of {nics}{hint}"
    return None


def _carries(kind: str, network: str) -> bool:
    # HPC-X's plugin calls itself IBext or IBext_v<n>, older ones "NCCL RDMA Plugin".
    return network in OFI_NETWORKS if kind == "efa" else network.startswith(("IB", "NCCL RDMA Plugin"))
