"""The command line of every program of the control plane. All listen on 127.0.0.1 only."""

from __future__ import annotations

import sys
from pathlib import Path

from simulation import paths, tools
from simulation.control_plane import kwok, lws
from simulation.control_plane.access import kubeconfig_of
from simulation.control_plane.state import State, certificates

PORTS = (
    "etcd",
    "etcd-peer",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "lws-manager",
    "lws-health",
    "kwok",
)
"""What needs a port."""

SERVICES = "10.96.0.0/16"


def arguments(program: str, state: State) -> list[str]:
    """The command that starts `program`; the files it names are written before."""
    if program == "node-agent":
        return [sys.executable, "-m", "simulation.control_plane.node_agent"]
    return [str(tools.binary(program)), *_FLAGS[program](state)]


def environment(program: str) -> dict[str, str]:
    """Nothing of the caller's environment reaches a long-lived process, passphrases least of all."""
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(paths.control_plane())}
    if program == "lws-manager":
        variables["KUBECONFIG"] = str(kubeconfig_of("lws-manager"))
    if program == "node-agent":
        variables |= {"PYTHONPATH": str(paths.ROOT), "SIMULATION_HOME": str(paths.home().resolve())}
    return variables


def _etcd(state: State) -> list[str]:
    client, peer = (f"http://127.0.0.1:{state.ports[name]}" for name in ("etcd", "etcd-peer"))
    return [
        "--name=simulation",
        f"--data-dir={paths.control_plane() / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=simulation={peer}",
        "--unsafe-no-fsync",
    ]


def _kube_apiserver(state: State) -> list[str]:
    folder = certificates()
    return [
        f"--etcd-servers=http://127.0.0.1:{state.ports['etcd']}",
        *_secure(state, "kube-apiserver"),
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        *_pair("tls-cert-file", "tls-private-key-file", folder / "kube-apiserver"),
        f"--client-ca-file={folder / 'ca.crt'}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--service-cluster-ip-range={SERVICES}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'service-accounts.pub'}",
        f"--service-account-signing-key-file={folder / 'service-accounts.key'}",
        *_pair("kubelet-client-certificate", "kubelet-client-key", folder / "kubelet-client"),
        *_pair("proxy-client-cert-file", "proxy-client-key-file", folder / "front-proxy"),
        f"--requestheader-client-ca-file={folder / 'ca.crt'}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    ]


def _kube_controller_manager(state: State) -> list[str]:
    folder = certificates()
    return [
        *_delegated(state, "kube-controller-manager"),
        "--use-service-account-credentials=true",
        # A claim that comes before its volume is known waits for the next round, by default 15 s.
        "--pvclaimbinder-sync-period=1s",
        f"--service-account-private-key-file={folder / 'service-accounts.key'}",
        f"--root-ca-file={folder / 'ca.crt'}",
        f"--service-cluster-ip-range={SERVICES}",
    ]


def _kube_scheduler(state: State) -> list[str]:
    return _delegated(state, "kube-scheduler")


def _delegated(state: State, program: str) -> list[str]:
    config = kubeconfig_of(program)
    flags = [f"--{flag}={config}" for flag in _KUBECONFIG_FLAGS]
    return [*flags, *_secure(state, program), "--leader-elect=false"]


_KUBECONFIG_FLAGS = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")


def _secure(state: State, program: str) -> list[str]:
    return ["--bind-address=127.0.0.1", f"--secure-port={state.ports[program]}"]


def _pair(certificate_flag: str, key_flag: str, stem: Path) -> list[str]:
    return [f"--{certificate_flag}={stem}.crt", f"--{key_flag}={stem}.key"]


_FLAGS = {
    "etcd": _etcd,
    "kube-apiserver": _kube_apiserver,
    "kube-controller-manager": _kube_controller_manager,
    "kube-scheduler": _kube_scheduler,
    "lws-manager": lws.flags,
    "kwok": kwok.flags,
}
