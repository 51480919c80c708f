"""What the plan decides: weights, serving, restarts, pausing."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

import planner
from planner import ServingPlan, plan
from planner.catalogue.kimi import KIMI_K2_5
from planner.parallelism import Parallelism, choose, legal
from planner.plan import restart_policy
from planner.vllm import EnvVar

Raw = dict[str, Any]


def serving(raw: Raw) -> ServingPlan:
    found = plan(raw, api_key_given=True).serving
    assert found is not None
    return found


def flags(args: tuple[str, ...]) -> dict[str, str]:
    """Flag by value; a flag without a value has an empty one."""
    pairs = zip(args, (*args[1:], ""), strict=True)
    return {flag: "" if value.startswith("--") else value for flag, value in pairs if flag.startswith("--")}


def test_tensor_parallel_stays_in_the_node_and_stages_cross_nodes(raw: Raw) -> None:
    assert (serving(raw).tensor_parallel, serving(raw).pipeline_parallel) == (8, 2)


def test_every_legal_split_uses_each_gpu_once() -> None:
    shapes = legal(KIMI_K2_5, 8, 2)
    assert Parallelism(16, 1) in shapes
    assert all(shape.tensor * shape.pipeline == 16 for shape in shapes)
    assert choose(KIMI_K2_5, 8, 2, tensor=16) == Parallelism(16, 1)
    assert choose(KIMI_K2_5, 8, 2, tensor=16, pipeline=2) is None


def test_both_commands_start_with_the_staged_model(raw: Raw) -> None:
    for command in (serving(raw).leader, serving(raw).worker):
        assert command.args[0] == "/weights/Kimi-K2.5-4d01dfe0332d"
        assert flags(command.args)["--served-model-name"] == "moonshotai/Kimi-K2.5"


def test_the_rank_comes_from_the_leader_worker_set(raw: Raw) -> None:
    found = flags(serving(raw).worker.args)
    assert found["--nnodes"] == "$(LWS_GROUP_SIZE)"
    assert found["--node-rank"] == "$(LWS_WORKER_INDEX)"
    assert found["--master-addr"] == "$(LWS_LEADER_ADDRESS)"
    assert found["--master-port"] == "29501"
    assert found["--distributed-executor-backend"] == "mp"


def test_leader_and_worker_differ_in_their_tail_alone(raw: Raw) -> None:
    leader, worker = serving(raw).leader, serving(raw).worker
    assert leader.args[-4:] == ("--host", "0.0.0.0", "--port", "8000")
    assert worker.args == (*leader.args[:-4], "--headless")
    assert leader.env == worker.env


def test_quantization_is_left_to_the_checkpoint(raw: Raw) -> None:
    assert "--quantization" not in serving(raw).leader.args


def test_the_models_own_flags_are_given(raw: Raw) -> None:
    found = flags(serving(raw).leader.args)
    assert found["--mm-encoder-tp-mode"] == "data"
    assert found["--tool-call-parser"] == found["--reasoning-parser"] == "kimi_k2"
    assert {"--trust-remote-code", "--enable-auto-tool-choice"} <= set(found)


def test_settings_reach_the_command_line(raw: Raw) -> None:
    raw["serving"] |= {"maxNumSeqs": 32, "maxModelLen": 65_536, "gpuMemoryUtilization": 0.92}
    found = flags(serving(raw).leader.args)
    assert found["--max-num-seqs"] == "32"
    assert found["--max-model-len"] == "65536"
    assert found["--gpu-memory-utilization"] == "0.92"
    assert found["--safetensors-load-strategy"] == "prefetch"


def test_a_missing_fabric_fails_instead_of_falling_back_to_tcp(raw: Raw) -> None:
    environment = {variable.name: variable for variable in serving(raw).leader.env}
    assert environment["NCCL_NET"].value == "OFI"
    assert environment["NCCL_SOCKET_IFNAME"].value == environment["GLOO_SOCKET_IFNAME"].value == "eth0"
    assert environment["FI_EFA_USE_HUGE_PAGE"].value == "0"


def test_each_rank_names_its_own_address(raw: Raw) -> None:
    assert EnvVar("VLLM_HOST_IP", field_path="status.podIP") in serving(raw).leader.env


def test_the_engine_waits_as_long_as_the_startup_probe(raw: Raw) -> None:
    environment = {variable.name: variable.value for variable in serving(raw).leader.env}
    assert environment["VLLM_ENGINE_READY_TIMEOUT_S"] == str(serving(raw).startup_seconds) == "7200"


@pytest.mark.parametrize(
    "name",
    ["VLLM_PORT", "NCCL_IB_GID_INDEX", "FI_PROVIDER", "FI_EFA_USE_DEVICE_RDMA", "HF_TOKEN", "VLLM_API_KEY"],
)
def test_a_variable_that_harms_or_is_obsolete_is_not_set(raw: Raw, name: str) -> None:
    assert name not in {variable.name for variable in serving(raw).leader.env}


def test_serving_is_offline_and_writes_to_one_directory(raw: Raw) -> None:
    environment = {variable.name: variable.value or "" for variable in serving(raw).leader.env}
    assert environment["HF_HUB_OFFLINE"] == "1"
    for name in ("VLLM_CACHE_ROOT", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "HF_HOME"):
        assert environment[name].startswith("/cache/")


def test_one_node_needs_no_rendezvous(raw: Raw) -> None:
    raw["gpuNodes"] |= {"instanceType": "p5en.48xlarge", "count": 1}
    found = serving(raw)
    assert (found.tensor_parallel, found.pipeline_parallel) == (8, 1)
    assert {"--nnodes", "--node-rank", "--master-addr", "--master-port"}.isdisjoint(found.leader.args)


def test_the_grace_period_outlasts_pre_stop_and_draining(raw: Raw) -> None:
    found = serving(raw)
    assert flags(found.leader.args)["--shutdown-timeout"] == str(found.shutdown_timeout_seconds)
    assert found.termination_grace_seconds > found.pre_stop_seconds + found.shutdown_timeout_seconds


@pytest.mark.parametrize("version", ["0.9.0", "0.10.0", "v0.10.0", "1.0.0"])
def test_newer_operators_recreate_the_group_after_start(version: str) -> None:
    policy = restart_policy(version)
    assert policy.policy == "RecreateGroupAfterStart"
    assert not policy.annotations


def test_operator_0_8_recreates_after_start_by_annotation() -> None:
    policy = restart_policy("0.8.0")
    assert policy.policy == "RecreateGroupOnPodRestart"
    annotation = "leaderworkerset.sigs.k8s.io/experimental-recreate-group-after-start"
    assert set(policy.annotations) == {annotation}


def test_the_restart_policy_follows_the_configured_operator(raw: Raw) -> None:
    raw["charts"] = {"leaderWorkerSet": {"install": False, "version": "0.8.0"}}
    assert serving(raw).restart == restart_policy("0.8.0")


def test_a_count_of_zero_pauses_the_stack(raw: Raw) -> None:
    raw["gpuNodes"]["count"] = 0
    paused = plan(raw, api_key_given=True)
    assert paused.serving is None
    assert paused.weights.model_directory == "Kimi-K2.5-4d01dfe0332d"


def test_every_node_reads_the_whole_checkpoint_through_the_file_system(raw: Raw) -> None:
    found = plan(raw, api_key_given=True).weights
    assert found.expected_load_seconds == pytest.approx(2 * 595.15e9 / 2343.75e6, rel=0.001)


def test_a_large_file_system_is_limited_by_the_nodes_network(raw: Raw) -> None:
    raw["weights"]["capacityGib"] = 48_000
    assert plan(raw, api_key_given=True).weights.expected_load_seconds == pytest.approx(595.15e9 / 12.5e9, rel=0.001)


def test_an_environment_variable_has_one_source() -> None:
    with pytest.raises(ValueError, match="exactly one"):
        EnvVar("BOTH", "value", field_path="status.podIP")
    with pytest.raises(ValueError, match="exactly one"):
        EnvVar("NONE")


def test_the_planner_imports_neither_pulumi_nor_the_rest_of_the_project() -> None:
    allowed = {"planner", "pydantic", "pydantic_core", "annotated_types", "rich", "typer", "yaml", "boto3", "botocore"}
    for file in Path(planner.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                root = name.partition(".")[0]
                assert root in allowed or root in sys.stdlib_module_names, f"{file.name} imports {name}"
