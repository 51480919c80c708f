"""The stack: settings -> plan -> site, weights, GPU nodes, serving -> outputs."""

from components import inputs
from components.device_plugins import DevicePlugins, DevicePluginsArgs
from components.fabric_gate import FabricGate, FabricGateArgs
from components.gang_operator import GangOperator, GangOperatorArgs
from components.gpu_nodes import GpuNodes, GpuNodesArgs
from components.namespace import namespace_of
from components.node_caches import NodeCaches, NodeCachesArgs
from components.outputs import announce, export
from components.serving import Serving, ServingArgs
from components.site import build
from components.weight_cache import weight_cache
from components.weight_staging import WeightStaging, WeightStagingArgs

given = inputs.read()
planned = given.plan
settings, weights = planned.settings, planned.weights

# Network, cluster and CPU nodes on EKS; or the way into a cluster that is there.
site = build(settings)
operator_args = GangOperatorArgs(chart=settings.charts.leader_worker_set, site=site)
operator = GangOperator("gang-operator", operator_args, site.opts)
namespace = namespace_of(settings, site.opts)

cache = weight_cache("weights", planned, namespace, site)
staging_args = WeightStagingArgs(plan=planned, site=site, cache=cache, secrets=given.sources)
staged = [WeightStaging("staging", staging_args, site.opts)] if weights.staged_by_job else []

gpu_nodes = None
if site.eks is not None:
    # After the weights no GPU is paid for before they are there; in overlap nodes boot beside the staging, not before.
    wait_for = staged if weights.start == "after_staging" else cache.parts
    gpu_nodes = GpuNodes("gpu-nodes", GpuNodesArgs(plan=planned, eks=site.eks, after=wait_for), site.eks.opts)
    announce(planned, gpu_nodes)
nodes = [gpu_nodes] if gpu_nodes else []
plugins = DevicePlugins("device-plugins", DevicePluginsArgs(plan=planned, site=site, after=nodes), site.opts)
fill_args = NodeCachesArgs(plan=planned, site=site, cache=cache, secrets=given.sources, after=[*nodes, *staged])
filled = [NodeCaches("node-caches", fill_args, site.opts)] if settings.weights.kind == "nvme" else []

gates: list[FabricGate] = []
if planned.serving and planned.fabric.tested:
    under_test = gpu_nodes.identity if gpu_nodes else "nodes of an existing cluster"
    gate_args = FabricGateArgs(plan=planned, namespace=cache.namespace, nodes=under_test, after=[*nodes, plugins])
    gates = [FabricGate("fabric-gate", gate_args, site.opts)]

before = [operator, *nodes, plugins, *staged, *filled, *gates]
serving_args = ServingArgs(plan=planned, cache=cache, api_key=given.api_key, after=before)
serving = Serving("serving", serving_args, site.opts) if planned.serving else None
export(planned, site, serving, gates[0].verdict if gates else None)
