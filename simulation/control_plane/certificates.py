"""The control plane's own certificate authority and certificates, made with openssl 3.0 or newer.

They are worth nothing outside 127.0.0.1 and are thrown away with the cluster.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path

from simulation.control_plane.errors import ControlPlaneError

DAYS = "3650"
ADMINISTRATORS = "/O=system:masters"

CLIENTS = {
    "admin": f"{ADMINISTRATORS}/CN=admin",
    "kubelet-client": f"{ADMINISTRATORS}/CN=kube-apiserver-kubelet-client",
    "lws-manager": f"{ADMINISTRATORS}/CN=lws-controller-manager",
    "kwok": f"{ADMINISTRATORS}/CN=kwok-controller",
    "node-agent": f"{ADMINISTRATORS}/CN=node-agent",
    "front-proxy": "/CN=front-proxy-client",
    "kube-controller-manager": "/CN=system:kube-controller-manager",
    "kube-scheduler": "/CN=system:kube-scheduler",
}
"""Client certificates by file name, with the user and group that the API server reads in them."""

SERVERS = {
    "kube-apiserver": "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.96.0.1",
    "webhook/tls": "DNS:localhost,IP:127.0.0.1",
}
"""Server certificates by file name, with the names they are valid for."""


def make(folder: Path) -> None:
    """Writes into `folder` the authority, every client's and server's pair, and the service accounts' keys.

    Raises ControlPlaneError if openssl is missing or refuses.
    """
    if shutil.which("openssl") is None:
        raise ControlPlaneError("openssl is not on PATH. Install it (Debian, Ubuntu: apt-get install openssl).")
    folder.mkdir(parents=True, mode=0o700)
    (folder / "webhook").mkdir()
    authority = [
        "basicConstraints=critical,CA:TRUE",
        "keyUsage=critical,keyCertSign,cRLSign,digitalSignature",
    ]
    _certificate(folder, "ca", "/CN=simulation-ca", authority)
    for name, subject in CLIENTS.items():
        _certificate(folder, name, subject, _leaf("clientAuth"), signed=True)
    for name, alternatives in SERVERS.items():
        extensions = [*_leaf("serverAuth"), f"subjectAltName={alternatives}"]
        _certificate(folder, name, "/CN=simulation", extensions, signed=True)
    _openssl(folder, "genrsa", "-out", "service-accounts.key", "2048")
    _openssl(folder, "rsa", "-in", "service-accounts.key", "-pubout", "-out", "service-accounts.pub")


def authority(folder: Path) -> str:
    """The certificate authority as the EKS API gives it: base64 of its PEM."""
    return base64.b64encode((folder / "ca.crt").read_bytes()).decode()


def _leaf(usage: str) -> list[str]:
    return ["basicConstraints=CA:FALSE", "keyUsage=critical,digitalSignature", f"extendedKeyUsage={usage}"]


def _certificate(folder: Path, name: str, subject: str, extensions: list[str], *, signed: bool = False) -> None:
    request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    request += ["-days", DAYS, "-subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.crt"]
    request += ["-CA", "ca.crt", "-CAkey", "ca.key"] if signed else []
    for extension in extensions:
        request += ["-addext", extension]
    _openssl(folder, *request)


def _openssl(folder: Path, *arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ControlPlaneError(
            f"openssl {arguments[0]} failed (version 3.0 or newer is needed): {done.stderr.strip()}"
        )
