"""What a user writes under `vllm-multinode:deployment` in `Pulumi.<stack>.yaml`.

One frozen tree of models. It checks every value by itself; rules that join several values stand in
`rules.py`, and `problems.py` turns both into one message. Secrets (`apiKey`, `huggingFaceToken`) are
configuration keys of their own: nested in this object they would make all of it secret.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from planner import checks, defaults
from planner.platform_settings import AnyFabric, EfaFabric, GpuNodes, InfinibandFabric, OnDemandPurchase, Platform
from planner.sections import PinnedImage, Section, Usd, Word
from planner.weight_settings import ClaimWeights, Staging, Weights


class Serving(Section):
    """vLLM. Parallelism left out is chosen by the planner; `max_model_len` counts prompt and answer.

    `image` left out is AWS's, which has EFA's user space, and on InfiniBand the stock one. `extra_args` are words that
    every pod's command line gets besides; `argument_rules.py` says which it must not hold.
    """

    image: PinnedImage | None = None
    vllm_version: Annotated[str, AfterValidator(checks.vllm_version)] = defaults.VLLM
    tensor_parallel: Annotated[int, Field(ge=1)] | None = None
    pipeline_parallel: Annotated[int, Field(ge=1)] | None = None
    max_model_len: Annotated[int, Field(ge=1024)] = 131072
    max_num_seqs: Annotated[int, Field(ge=1, le=4096)] = 64
    max_num_batched_tokens: Annotated[int, Field(ge=1024)] = 8192
    gpu_memory_utilization: Annotated[float, Field(ge=0.5, le=0.98)] = 0.90
    kv_cache_dtype: Literal["auto", "fp8"] = "auto"
    expert_parallel: bool = False
    extra_args: tuple[Word, ...] = ()
    allow_anonymous: bool = False


class Chart(Section):
    """A Helm chart: where it comes from, and whether it is installed or the cluster has it already.

    `chart` may be a folder or an `oci://` reference, for mirrors and clusters without internet; `image`
    replaces the chart's image repository.
    """

    install: bool = True
    chart: str | None = None
    repository: str | None = None
    version: str | None = None
    image: str | None = None


class Charts(Section):
    """The cluster software that the stack brings along, each replaceable and each skippable."""

    nvidia_device_plugin: Chart = Chart()
    efa_device_plugin: Chart = Chart()
    leader_worker_set: Chart = Chart()


class Deployment(Section):
    """The whole of `vllm-multinode:deployment`.

    `model` is a name of the catalogue, or a mapping that describes a checkpoint (`inline_models.KEYS`).
    `prices` replaces a part's price, in USD per unit; `python -m planner price` lists parts and units.
    `max_hourly_price` refuses a stack whose known parts cost more, in USD per hour.
    """

    name: Annotated[str, AfterValidator(checks.deployment_name)]
    model: Annotated[object, AfterValidator(checks.model)]
    platform: Platform
    gpu_nodes: GpuNodes
    fabric: AnyFabric = EfaFabric()
    purchase: OnDemandPurchase = OnDemandPurchase()
    weights: Weights
    staging: Staging = Staging()
    serving: Serving = Serving()
    charts: Charts = Charts()
    prices: dict[str, Usd] = Field(default_factory=dict)
    max_hourly_price: Usd | None = None

    @property
    def image(self) -> str:
        """The serving image: as written, or the one that has the fabric's user space."""
        fits = defaults.STOCK_IMAGE if isinstance(self.fabric, InfinibandFabric) else defaults.IMAGE
        return self.serving.image or fits

    @property
    def namespace(self) -> str:
        """The namespace in which the stack's pods run: one of its name, or that of an existing claim."""
        return self.weights.namespace if isinstance(self.weights, ClaimWeights) else self.name
