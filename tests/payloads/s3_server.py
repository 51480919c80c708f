"""moto's S3 server on loopback, in a process of its own, in the place of AWS.

It keeps objects in memory and honours conditional writes, ranges, multipart uploads and their checksums. It does NOT
check policies or signatures: that a role may do what staging does is for a real account to show.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

BUCKET = "weights-bucket"
START_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Server:
    """Address of the server, and a client of its own."""

    url: str
    client: Any

    @property
    def environment(self) -> dict[str, str]:
        """What a pod is given to reach it."""
        return {
            "AWS_ENDPOINT_URL_S3": self.url,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "loopback",
            "AWS_SECRET_ACCESS_KEY": "loopback",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def objects(self, prefix: str) -> dict[str, bytes]:
        """Return the content of every object under a prefix, by path."""
        listing = self.client.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", ())
        return {
            entry["Key"].removeprefix(prefix): self.client.get_object(Bucket=BUCKET, Key=entry["Key"])["Body"].read()
            for entry in listing
        }

    def empty(self) -> None:
        """Delete every object."""
        for entry in self.client.list_objects_v2(Bucket=BUCKET).get("Contents", ()):
            self.client.delete_object(Bucket=BUCKET, Key=entry["Key"])

    def reset(self) -> None:
        """Forget everything, and make the bucket anew."""
        request = urllib.request.Request(f"{self.url}/moto-api/reset", method="POST")  # noqa: S310  http on loopback
        urllib.request.urlopen(request).close()  # noqa: S310
        self.client.create_bucket(Bucket=BUCKET)


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """Run moto on a free port of 127.0.0.1 until the block ends; its output goes to `folder`."""
    log = folder / "moto.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
            stdout=output,
            stderr=output,
            env={"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1"},
        )
        try:
            url = _address(process, log)
            client = boto3.client(
                "s3",
                endpoint_url=url,
                region_name="us-east-1",
                aws_access_key_id="loopback",
                aws_secret_access_key="loopback",
            )
            yield S3Server(url=url, client=client)
        finally:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the server says where it listens."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        for word in log.read_text().split():
            if word.startswith("http://127.0.0.1:"):
                return word
        time.sleep(0.05)
    raise RuntimeError(f"moto did not start:\n{log.read_text()}")
