"""One pod on all GPUs and the fabric of a node of the cluster that the stack file names; no AWS."""

from pathlib import Path

import pulumi
from pulumi_kubernetes import Provider
from pulumi_kubernetes.core.v1 import Namespace, Pod

deployment = pulumi.Config().require_object("deployment")
platform = deployment["platform"]
provider = Provider("theirs", kubeconfig=Path(platform["kubeconfig"]).read_text(), context=platform["context"])
opts = pulumi.ResourceOptions(provider=provider)
namespace = Namespace("own", metadata={"name": deployment["name"]}, opts=opts)
devices = {"nvidia.com/gpu": "8", "rdma/hca_shared_devices_a": "1"}
Pod(
    "serving",
    metadata={"namespace": namespace.metadata["name"]},
    spec={
        "node_selector": {"node.kubernetes.io/instance-type": "h100-ib"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "containers": [{"name": "vllm", "image": "vllm", "resources": {"limits": devices}}],
    },
    opts=opts,
)
