"""The options that the commands of `python -m planner` share."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated

import typer

StackFile = Annotated[FilePath | None, typer.Argument(help="A Pulumi.<stack>.yaml.", show_default=False)]
ModelName = Annotated[str | None, typer.Option("--model", help="A model of the catalogue, as kimi-k2.5.")]
PrecisionName = Annotated[str | None, typer.Option("--precision", help="bf16, fp8, int4 or nvfp4.")]
GpuName = Annotated[str | None, typer.Option("--gpu", help="Any GPU, as h100-80gb; instead of --instance-type.")]
Instance = Annotated[str | None, typer.Option("--instance-type", help="GPU instance type, as p5.48xlarge.")]
GpusPerNode = Annotated[int | None, typer.Option("--gpus-per-node", help="With --gpu.")]
Nodes = Annotated[int | None, typer.Option("--nodes", help="Number of GPU nodes.")]
Tensor = Annotated[int | None, typer.Option("--tensor-parallel", help="Chosen by the planner if left out.")]
Pipeline = Annotated[int | None, typer.Option("--pipeline-parallel", help="Chosen by the planner if left out.")]
Data = Annotated[int | None, typer.Option("--data-parallel", help="Replicas that share the experts.")]
Context = Annotated[int | None, typer.Option("--decode-context-parallel", help="Ranks that share the KV cache.")]
Expert = Annotated[bool, typer.Option("--expert-parallel", help="Whole experts on each rank.")]
Utilization = Annotated[float | None, typer.Option("--gpu-memory-utilization", help="Share that vLLM takes.")]
Length = Annotated[int | None, typer.Option("--max-model-len", help="Tokens of prompt and answer.")]
Sequences = Annotated[int | None, typer.Option("--max-num-seqs", help="Requests running at once.")]
Batched = Annotated[int | None, typer.Option("--max-num-batched-tokens", help="Tokens of one step.")]
CacheType = Annotated[str | None, typer.Option("--kv-cache-dtype", help="auto or fp8.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Explain = Annotated[bool, typer.Option("--explain", help="Show each formula with its numbers.")]
