"""Lines of real NCCL logs, as people posted them (owner/repo#thread), for the parser and for tests that feed a log.

Host names and addresses are the posters' own or shortened. Where a thread shows one rank only, tests make the others'
lines in the same format and say so.
"""

from __future__ import annotations

EFA_DIRECT_2_27 = """\
NCCL INFO NET/Plugin: Loaded net plugin Libfabric (v10)
NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.17.2
NCCL INFO NET/OFI Using Libfabric version 2.3
NCCL INFO NET/OFI Using transport protocol RDMA (platform set)
NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)
NCCL INFO NET/OFI NIC group 0 device #0 0000:52:00.0
NCCL INFO Using network Libfabric
NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC
NCCL INFO Channel 02/0 : 8[0] -> 0[0] [receive] via NET/Libfabric/0/GDRDMA
NCCL INFO Channel 03/0 : 0[0] -> 8[0] [send] via NET/Libfabric/0/GDRDMA
"""
"""p5, SGLang's write-up of EFA; the provider line is that of awslabs/awsome-distributed-ai
architectures/aws-pcs/tests/compute-test.md."""

EFA_P5EN = """\
8h200-3:6310:6318 [0] NCCL INFO NET/OFI Selected Provider is efa (found 16 nics)
8h200-3:6310:6318 [0] NCCL INFO NET/OFI NIC group 0 device #0 0000:56:00.0
8h200-2:6831:6840 [0] NCCL INFO NET/OFI Support for global registrations: true
8h200-2:6831:6840 [0] NCCL INFO NET/OFI Support for DMA-BUF registrations: false
8h200-2:6831:6840 [0] NCCL INFO Using network Libfabric
"""
"""NVIDIA/nccl#1597: the plugin before it named the fabric."""

OLD_EFA = """\
ip-192-168-29-243:26465:26533 [0] NCCL INFO Ring 00 : 7 -> 8 [receive] via NET/AWS Libfabric/0
ip-192-168-16-255:35480:35545 [0] NCCL INFO Ring 00 : 15 -> 0 [receive] via NET/AWS Libfabric/0
ip-192-168-29-243:26465:26533 [0] NCCL INFO Ring 00 : 8[0] -> 9[1] via P2P/IPC
"""
"""NVIDIA/nccl#229."""

OFI_FAILED = """\
algo-1:17774:17853 [1] nccl_net_ofi_create_plugin:259 NCCL WARN NET/OFI aws-ofi-nccl initialization failed
algo-1:17774:17853 [1] NCCL INFO NCCL_IB_DISABLE set by environment to 1.
algo-1:17774:17853 [1] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0
algo-1:17774:17853 [1] NCCL INFO NET/Socket : Using [0]eth0:10.0.227.37<0>
algo-1:17774:17853 [1] NCCL INFO Using non-device net plugin version 0
algo-1:17774:17853 [1] NCCL INFO Using network Socket
"""
"""aws/aws-ofi-nccl#715: the silent fall to TCP."""

NO_EFA_DEVICE = """\
ip-172-31-3-90:1929:1937 [0] \
nccl_net_ofi_rdma_init:7978 NCCL WARN NET/OFI OFI fi_getinfo() call failed: No data available
"""
"""aws/aws-ofi-nccl#1020: /dev/infiniband was not in the container."""

SOCKET = """\
node0:13571:13571 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0
node2:22555:22555 [0] NCCL INFO Channel 01/0 : 2[1] -> 1[0] [receive] via NET/Socket/0
node0:13572:13572 [1] NCCL INFO Channel 00 : 2[1] -> 0[0] via SHM/direct/direct
"""
"""NVIDIA/nccl#690."""

IB_GDRDMA = """\
10-90-43-152:120890:121560 [0] NCCL INFO Channel 01 : 2[c7000] -> 0[87000] [receive] via NET/IB/5/GDRDMA
10-90-43-152:120890:121562 [2] NCCL INFO Channel 01 : 2[c7000] -> 0[87000] [send] via NET/IB/5/GDRDMA
"""
"""NVIDIA/nccl#707."""

IB_VLLM = """\
os-node-created-f8h54:5021:6239 [6] NCCL INFO Channel 00/0 : 6[6] -> 7[7] via P2P/CUMEM/read
os-node-created-f8h54:5021:6242 [6] NCCL INFO [Proxy Progress] Device 6 CPU core 121
os-node-created-f8h54:5021:6239 [6] NCCL INFO Channel 07/0 : 6[6] -> 14[6] [send] via NET/IB/11/GDRDMA
os-node-created-f8h54:5021:6239 [6] NCCL INFO Channel 03/0 : 22[6] -> 6[6] [receive] via NET/IB/11/GDRDMA
"""
"""vllm-project/vllm#27521."""

IB_WITHOUT_GPUDIRECT = """\
:22901:22901 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/4
:22901:22901 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/5
"""
"""autoscriptlabs/nccl-mesh-plugin#56."""

IB_SHARP_4 = """\
qh100-gpu19:49357:49418 [3] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/IB/SHARP [2]mlx5_4:1/IB/SHARP \
[3]mlx5_5:1/IB/SHARP [RO]; OOB ibp25s0:10.20.0.119<0>
qh100-gpu19:49357:49418 [3] NCCL INFO Using network IBext
"""
"""NVIDIA/nccl#1357: NVIDIA's plugin of HPC-X."""

ROCE_2 = """\
dgxh100-4:460770:460842 [0] NCCL INFO NET/IB : Using [0]mlx5_10:1/RoCE [1]mlx5_11:1/RoCE [RO]; \
OOB enp220s0np0:11.1.128.136<0>
dgxh100-4:460770:460842 [0] NCCL INFO Using network IB
"""
"""NVIDIA/nccl-tests#185."""

ROCE_MERGED = """\
hostname:116024:116024 [0] NCCL INFO NET/IB : Using [0]={[0] mlx5_7:1/RoCE, [1] mlx5_6:1/RoCE} ; \
OOB eth0:10.164.53.65<0>
"""
"""vllm-project/vllm#6201: NCCL 2.20 with merged ports."""

NO_IB = """\
MLVM:12345:12345 [2] NCCL INFO NET/IB : No device found.
flow-matic:820398:820779 [0] NCCL INFO NET/Socket : Using [0]eno3:169.229.48.108<0> [1]lxcbr0:10.0.3.1<0>
flow-matic:820398:820779 [0] NCCL INFO Using network Socket
"""
"""vllm-project/vllm#6370."""

VERSION_2_28 = "cn76:155:155 [5] NCCL INFO NCCL version 2.28.9+cuda13.0\n"
"""siderolabs/docs#566."""

VERSION_2_19 = "NCCL version 2.19.3+cuda12.3\n"
"""NVIDIA/nccl-tests#185: before 2.28 rank 0 alone said it, without a prefix."""
