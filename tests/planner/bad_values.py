"""Values that a stack file must not hold, with what the refusal has to say about each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bad:
    """`value` at `path` is refused at `named` (`path` if empty), saying `allowed` and what is to be typed.

    `typed` is what follows `pulumi config`; `@` stands for `--path 'deployment.<named>'`.
    """

    why: str
    path: str
    value: object
    allowed: str
    typed: str
    named: str = ""

    @property
    def place(self) -> str:
        return self.named or self.path

    @property
    def command(self) -> str:
        return "pulumi config " + self.typed.replace("@", f"--path 'deployment.{self.place}'")


IMAGE = "public.ecr.aws/deep-learning-containers/vllm:0.27.1-gpu-py312-cu130-ubuntu22.04-ec2"
SLOW = {"kind": "fsx", "revision": "0" * 40, "capacityGib": 1200, "throughputPerTib": 125}
LWS_0_7 = {"leaderWorkerSet": {"install": False, "version": "0.7.0"}}
OLD = {"vllmVersion": "0.17.0", "image": "example.org/vllm:0.17.0"}
CIDRS = "platform.publicAccessCidrs"
INSTANCE = "gpuNodes.instanceType"
VERSION = "serving.vllmVersion"
KUBERNETES = "platform.kubernetesVersion"
NETWORK = "platform.network"

BAD_VALUES = [
    Bad("unknown key", "gpuNode", 2, "did you mean gpuNodes", "rm @"),
    Bad("unknown nested key", "serving.maxModelLength", 4096, "did you mean maxModelLen", "rm @"),
    Bad("unknown model", "model", "kimi-k2", "kimi-k2.5", "set @ kimi-k2.5"),
    Bad("unknown instance type", INSTANCE, "p5.48xl", "p5en.48xlarge", "set @ p5.48xlarge"),
    Bad(
        "model does not fit",
        "gpuNodes.count",
        1,
        "p5en.48xlarge, TP 8 x PP 1",
        "set --path 'deployment.gpuNodes.count' 2",
        named="gpuNodes",
    ),
    Bad(
        "tensor parallel that does not divide the heads",
        "serving.tensorParallel",
        7,
        "does not divide the 64 attention heads",
        "rm @",
    ),
    Bad("more ranks than GPUs", "serving.tensorParallel", 64, "a product of 16", "rm @"),
    Bad("stages that leave GPUs over", "serving.pipelineParallel", 3, "8 x 2", "rm @"),
    Bad(
        "zone of another region",
        "platform.availabilityZone",
        "eu-west-1a",
        "a zone of us-east-1",
        "set @ us-east-1a",
    ),
    Bad(
        "zone that is a region",
        "platform.availabilityZone",
        "us-east-1",
        "a zone of us-east-1",
        "set @ us-east-1a",
    ),
    Bad("FSx capacity", "weights.capacityGib", 1300, "1200, 2400 or a multiple of 2400", "set @ 2400"),
    Bad("slow FSx", "weights", SLOW, "this takes 8126 s", "set @ 250", named="weights.throughputPerTib"),
    Bad("FSx throughput", "weights.throughputPerTib", 300, "125, 250, 500 or 1000", "set @ 1000"),
    Bad(
        "moving revision",
        "weights.revision",
        "main",
        "40 hex digits",
        "set @ 4d01dfe0332d63057c186e0b26216581",
    ),
    Bad(
        "the whole internet",
        CIDRS,
        ["0.0.0.0/0"],
        "not the whole internet",
        "set @ 203.0.113.7/32",
        f"{CIDRS}[0]",
    ),
    Bad(
        "half of the internet",
        CIDRS,
        ["0.0.0.0/1"],
        "not the whole internet",
        "set @ 203.0.113.7/32",
        f"{CIDRS}[0]",
    ),
    Bad("no CIDR", CIDRS, ["home"], "an IPv4 network", "set @ 203.0.113.7/32", f"{CIDRS}[0]"),
    Bad(
        "no address at all",
        CIDRS,
        [],
        "at least one network",
        f"set --path 'deployment.{CIDRS}[0]' 203.0.113.7/32",
    ),
    Bad("negative node count", "gpuNodes.count", -2, "0 (paused) to 16", "set @ 2"),
    Bad("count that is no number", "gpuNodes.count", "two", "0 (paused) to 16", "set @ 2"),
    Bad("unpinned image", "serving.image", "vllm/vllm-openai:latest", "not `latest`", f"set @ {IMAGE}"),
    Bad("image without tag", "serving.image", "host:5000/vllm", "not `latest`", f"set @ {IMAGE}"),
    Bad("short digest", "serving.image", "vllm@sha256:0a1b", "64 hex digits", f"set @ {IMAGE}"),
    Bad("image without EFA", "serving.image", "vllm/vllm-openai:v0.27.1", "EFA user space", f"set @ {IMAGE}"),
    Bad("denied 0.18", VERSION, "0.18.3", "0.18.x", "set @ 0.27.1"),
    Bad("denied 0.22.0", VERSION, "0.22.0", "0.22.0", "set @ 0.27.1"),
    Bad("denied 0.28.0", VERSION, "0.28.0", "0.28.0", "set @ 0.27.1"),
    Bad("nightly build", VERSION, "0.28.0rc1", "a released version", "set @ 0.27.1"),
    Bad("older than the model", "serving", OLD, "0.19.1 or newer for Kimi-K2.5", "set @ 0.27.1", named=VERSION),
    Bad("image of another version", VERSION, "0.33.0", "0.27.1, the version in the tag", "set @ 0.27.1"),
    Bad("name that is no DNS label", "name", "Kimi_K25", "a DNS label", "set @ kimi-k25"),
    Bad("name too long", "name", "k" * 49, "at most 48 characters", f"set @ {'k' * 48}"),
    Bad("old Kubernetes", KUBERNETES, "1.32", "1.33 or newer", "set @ 1.35"),
    Bad("version without quotes", KUBERNETES, 1.35, "as a quoted string", "set @ 1.35"),
    Bad(
        "AMI of another Kubernetes",
        "gpuNodes.amiRelease",
        "1.34.2-20260818",
        "a release for Kubernetes 1.35",
        "set @ 1.35.6-20260818",
    ),
    Bad("AMI id", "gpuNodes.amiRelease", "ami-0123", "<Kubernetes version>-<date>", "set @ 1.35.6-20260818"),
    Bad("instance without EFA", INSTANCE, "g6e.2xlarge", "a type with EFA", "set @ p5.48xlarge"),
    Bad(
        "longer than the context",
        "serving.maxModelLen",
        300_000,
        "at most 262144, the context",
        "set @ 262144",
    ),
    Bad(
        "batch smaller than its sequences",
        "serving",
        {"maxNumSeqs": 2048, "maxNumBatchedTokens": 1024},
        "at least maxNumSeqs, 2048",
        "set @ 8192",
        named="serving.maxNumBatchedTokens",
    ),
    Bad("old operator", "charts", LWS_0_7, "0.8.0 or newer", "set @ 0.10.0", "charts.leaderWorkerSet.version"),
    Bad("all of the memory", "serving.gpuMemoryUtilization", 0.99, "0.5 to 0.98", "set @ 0.9"),
    Bad("price of no part", "prices.gpuNode", 50.0, "a part: gpuNodes", "rm @"),
    Bad("negative price", "prices.gpuNodes", -1, "greater than 0", "rm @"),
    Bad("endless price", "prices.gpuNodes", float("inf"), "finite number", "rm @"),
    Bad(
        "limit below the stack's price",
        "maxHourlyPrice",
        100,
        "gpuNodes 110.08",
        "set --path 'deployment.gpuNodes.count'",
    ),
    Bad("no limit at all", "maxHourlyPrice", 0, "greater than 0", "rm @"),
    Bad("negative limit", "maxHourlyPrice", -5, "greater than 0", "rm @"),
    Bad("limit that is no number", "maxHourlyPrice", "cheap", "a valid number", "rm @"),
    Bad("unknown network", NETWORK, {"kind": "shared"}, "new or existing", "set @ new", f"{NETWORK}.kind"),
    Bad(
        "no id of a VPC",
        NETWORK,
        {"kind": "existing", "vpcId": "vpc"},
        "the id of a VPC",
        "set @ vpc-0123456789abcdef0",
        named=f"{NETWORK}.vpcId",
    ),
    Bad(
        "small VPC",
        NETWORK,
        {"kind": "new", "cidr": "10.0.0.0/24"},
        "a private /16",
        "set @ 10.42.0.0/16",
        f"{NETWORK}.cidr",
    ),
]
