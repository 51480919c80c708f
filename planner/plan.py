"""From a stack file's settings to one frozen plan, before anything is created."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner import cache, prices, schema, vllm, weights
from planner.alternatives import Alternative
from planner.argument_rules import ARGUMENT_RULES
from planner.checks import version
from planner.fabric import FabricPlan, fabric_plan
from planner.hardware import InstanceType
from planner.memory import Fit
from planner.models import Model
from planner.overhead import Load
from planner.placement import Placement, placement
from planner.platform_rules import PLATFORM_RULES
from planner.price_rules import LIMIT_RULES, PRICE_RULES, bill_of
from planner.prices import PriceFileError
from planner.pricing import Price
from planner.problems import Problem, SettingsError
from planner.rules import RULES, Facts, Rule, broken
from planner.serving_rules import DEFAULT_LEADER_WORKER_SET, FIT_RULES, NAMED_ALTERNATIVES, SPLIT_RULES, fit_of, fitting
from planner.settings import Deployment
from planner.vllm import Command
from planner.weight_rules import WEIGHT_RULES, load_seconds
from planner.weight_settings import Start

VALUE_RULES: tuple[Rule, ...] = (*RULES, *PLATFORM_RULES, *WEIGHT_RULES, *SPLIT_RULES, *ARGUMENT_RULES, *PRICE_RULES)
"""All rules but those that ask whether the model fits and what it costs."""

_RESTART_ANNOTATION = "leaderworkerset.sigs.k8s.io/experimental-recreate-group-after-start"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """How the operator restarts a group: its policy, and annotations on the LeaderWorkerSet."""

    policy: str
    annotations: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsPlan:
    """The cached checkpoint: `model_directory` below the mount, and `size_bytes`.

    `staged_by_job`: CPU nodes fill the cache, or with `through_bucket` a bucket, from which each node fills its own
    disks in `fill_seconds`. All nodes together then read it in `expected_load_seconds`.
    """

    model_directory: str
    size_bytes: int
    start: Start
    staged_by_job: bool
    through_bucket: bool
    fill_seconds: float
    expected_load_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPlan:
    """How vLLM runs. All durations in seconds."""

    nodes: int
    tensor_parallel: int
    pipeline_parallel: int
    fit: Fit
    leader: Command
    worker: Command
    restart: RestartPolicy
    port: int
    master_port: int
    startup_seconds: int
    shutdown_timeout_seconds: int
    pre_stop_seconds: int
    termination_grace_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that the components need to know. `serving` is None while the stack is paused.

    `alternatives`: other hardware on which the model fits as configured, the cheapest first.
    """

    settings: Deployment
    model: Model
    instance: InstanceType
    placement: Placement
    fabric: FabricPlan
    weights: WeightsPlan
    serving: ServingPlan | None
    price: Price
    alternatives: tuple[Alternative, ...]


def plan(raw: Mapping[str, object], *, api_key_given: bool, hub_token_given: bool = False) -> Plan:
    """Check `raw`, the value of `vllm-multinode:deployment`, and decide everything that follows from it.

    Raises SettingsError, whose message names every problem of the file.
    """
    rules = (*VALUE_RULES, *FIT_RULES, *LIMIT_RULES)
    return decide(check(raw, rules, api_key_given=api_key_given, hub_token_given=hub_token_given))


def check(raw: Mapping[str, object], rules: tuple[Rule, ...], *, api_key_given: bool, hub_token_given: bool) -> Facts:
    """The settings, if every value is allowed and every rule holds; raises SettingsError if not."""
    try:
        prices.reference()
    except PriceFileError as error:
        broken_file = Problem(path=("prices",), given=prices.FILE.name, allowed=f"a readable file: {error}", mends=())
        raise SettingsError((broken_file,)) from None
    settings, problems, replaced = schema.read(raw)
    facts = Facts(settings=settings, api_key_given=api_key_given, hub_token_given=hub_token_given)
    found = (*problems, *broken(rules, facts, replaced))
    if found:
        raise SettingsError(found)
    return facts


def decide(facts: Facts) -> Plan:
    """The plan for settings that have been checked."""
    settings = facts.settings
    return Plan(
        settings=settings,
        model=facts.model,
        instance=facts.instance,
        placement=placement(settings, facts.instance),
        fabric=fabric_plan(settings, facts.instance),
        weights=_weights_plan(facts),
        serving=_serving_plan(facts),
        price=bill_of(facts),
        alternatives=_alternatives(facts),
    )


def _alternatives(facts: Facts) -> tuple[Alternative, ...]:
    found = fitting(facts, Load.of(facts.settings.serving))
    return tuple(item for item in found if item.instance.name != facts.instance.name)[:NAMED_ALTERNATIVES]


def restart_policy(operator_version: str) -> RestartPolicy:
    """Recreate the group only once it has started: a slow image pull must not restart it for ever.

    0.9 made this a policy of its own; 0.8 knows it as an annotation.
    """
    if version(operator_version) >= (0, 9):
        return RestartPolicy(policy="RecreateGroupAfterStart", annotations={})
    return RestartPolicy(policy="RecreateGroupOnPodRestart", annotations={_RESTART_ANNOTATION: "true"})


def _weights_plan(facts: Facts) -> WeightsPlan:
    settings, size = facts.settings, weights.checkpoint_bytes(facts.model)
    return WeightsPlan(
        model_directory=cache.model_directory(settings, facts.model),
        size_bytes=round(size),
        start=cache.start(settings, settings.purchase.kind),
        staged_by_job=cache.staged_by_job(settings),
        through_bucket=cache.through_bucket(settings),
        fill_seconds=cache.fill_seconds(settings, size, facts.instance),
        expected_load_seconds=load_seconds(facts),
    )


def _serving_plan(facts: Facts) -> ServingPlan | None:
    fit = fit_of(facts)
    if fit is None:
        return None
    settings = facts.settings
    shape = fit.shape
    leader, worker = vllm.commands(settings, facts.model, shape, fabric_plan(settings, facts.instance))
    return ServingPlan(
        nodes=settings.gpu_nodes.count,
        tensor_parallel=shape.tensor,
        pipeline_parallel=shape.pipeline,
        fit=fit,
        leader=leader,
        worker=worker,
        restart=restart_policy(settings.charts.leader_worker_set.version or DEFAULT_LEADER_WORKER_SET),
        port=vllm.PORT,
        master_port=vllm.MASTER_PORT,
        startup_seconds=vllm.STARTUP_SECONDS,
        shutdown_timeout_seconds=vllm.SHUTDOWN_TIMEOUT_SECONDS,
        pre_stop_seconds=vllm.PRE_STOP_SECONDS,
        termination_grace_seconds=vllm.TERMINATION_GRACE_SECONDS,
    )
