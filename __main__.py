"""The stack: settings -> plan -> network, cluster, weights, GPU nodes, serving -> outputs."""

import pulumi
from pulumi import ResourceOptions
from pulumi.runtime import get_config
from pulumi_aws.provider import Provider

from components.cluster import Cluster, ClusterArgs
from components.device_plugins import DevicePlugins, DevicePluginsArgs
from components.gang_operator import GangOperator, GangOperatorArgs
from components.gpu_nodes import GpuNodes, GpuNodesArgs
from components.launch_template import STACK_TAG
from components.namespace import Namespace
from components.network import Network, NetworkArgs
from components.outputs import export
from components.serving import Serving, ServingArgs
from components.system_nodes import SystemNodes, SystemNodesArgs
from components.weight_cache import WeightCache, WeightCacheArgs
from components.weight_staging import WeightStaging, WeightStagingArgs
from planner import SettingsError, plan, report

config = pulumi.Config()
api_key, hub_token = config.get_secret("apiKey"), config.get_secret("huggingFaceToken")
# vLLM takes an empty key for none: the API would be open to everybody.
key_given = bool((get_config(config.full_key("apiKey")) or "").strip())
try:
    secrets = {"api_key_given": key_given, "hub_token_given": hub_token is not None}
    planned = plan(config.get_object("deployment") or {}, **secrets)
except SettingsError as error:
    raise pulumi.RunError(str(error)) from None
pulumi.log.info(report.plain_text(report.render(planned)))

settings = planned.settings
aws = Provider("aws", region=settings.platform.region, default_tags={"tags": {STACK_TAG: settings.name}})
on_aws = ResourceOptions(providers=[aws])

network = Network("network", NetworkArgs(settings=settings), on_aws)
cluster = Cluster("cluster", ClusterArgs(settings=settings, network=network), on_aws)
system_nodes = SystemNodes("system-nodes", SystemNodesArgs(settings=settings, cluster=cluster, network=network), on_aws)
in_cluster = ResourceOptions(providers=[aws, cluster.kubernetes])
operator_args = GangOperatorArgs(chart=settings.charts.leader_worker_set, cluster=cluster, nodes=system_nodes)
operator = GangOperator("gang-operator", operator_args, in_cluster)
namespace = Namespace("namespace", settings.name, in_cluster).namespace
cache_args = WeightCacheArgs(
    plan=planned, namespace=namespace, network=network, cluster=cluster, csi_driver=system_nodes
)
cache = WeightCache("weights", cache_args, in_cluster)
staging_args = WeightStagingArgs(plan=planned, cache=cache, hub_token=hub_token, nodes=system_nodes)
staging = WeightStaging("staging", staging_args, in_cluster)
gpu_args = GpuNodesArgs(plan=planned, cluster=cluster, network=network, after=[staging])
gpu_nodes = GpuNodes("gpu-nodes", gpu_args, on_aws)
plugin_args = DevicePluginsArgs(charts=settings.charts, cluster=cluster, nodes=gpu_nodes)
plugins = DevicePlugins("device-plugins", plugin_args, in_cluster)
serving_args = ServingArgs(
    plan=planned, cache=cache, api_key=api_key if key_given else None, after=[operator, gpu_nodes, plugins]
)
serving = Serving("serving", serving_args, in_cluster) if planned.serving else None
export(planned, cluster, serving)
