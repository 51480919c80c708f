"""The stack: settings -> plan -> network, cluster, weights, GPU nodes, serving -> outputs."""

import pulumi
from pulumi_aws import Provider

from components.cluster import Cluster, ClusterArgs
from components.device_plugins import DevicePlugins, DevicePluginsArgs
from components.gpu_nodes import GpuNodes, GpuNodesArgs
from components.namespace import Namespace
from components.network import Network, NetworkArgs
from components.outputs import export
from components.serving import Serving, ServingArgs
from components.stack_plan import read_plan
from components.system_nodes import SystemNodes, SystemNodesArgs
from components.weight_cache import WeightCache, WeightCacheArgs
from components.weight_staging import WeightStaging, WeightStagingArgs
