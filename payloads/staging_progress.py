"""Where staging says how far it is: log lines and one ConfigMap; and its own termination message."""

from __future__ import annotations

import os
import time

from payloads import reporting
from payloads.reporting import ConfigMapBoard, log
from payloads.staging_settings import Settings


def without_token(text: str) -> str:
    """Hide the Hub token, which an error message may repeat."""
    token = os.environ.get("HF_TOKEN")
    return text.replace(token, "***") if token else text


def write_termination_message(verdict: str) -> None:
    """Leave the verdict where `kubectl describe` and the Kubernetes provider show it."""
    reporting.write_termination_message(verdict, os.environ.get("STAGE_TERMINATION_LOG", ""))


class ProgressBoard:
    """Reports bytes done, rate and time left, at most every `report_seconds`."""

    def __init__(self, settings: Settings) -> None:
        """Nothing is reported until `begin`."""
        self._report_seconds = settings.report_seconds
        self.post = ConfigMapBoard(
            namespace=settings.progress_namespace,
            name=settings.progress_configmap,
            account=os.environ.get("STAGE_SERVICE_ACCOUNT", ""),
        ).post
        self._whole = self._before = 0
        self.begin("starting", total=0, done=0)

    def is_part(self, *, whole: int, before: int) -> None:
        """The phases that follow are about a part of `whole` bytes, of which `before` went before that part."""
        self._whole, self._before = whole, before

    def begin(self, phase: str, *, total: int, done: int) -> None:
        """Start a phase of `total` bytes, of which `done` are there already."""
        self._phase, self._total = phase, self._whole or total
        self._reported_at, self._reported_bytes = time.monotonic(), self._before + done

    def update(self, done: int) -> None:
        """Report when the last report is old enough."""
        now = time.monotonic()
        done += self._before
        elapsed = now - self._reported_at
        if elapsed < self._report_seconds:
            return
        rate = max(done - self._reported_bytes, 0) / elapsed
        self._reported_at, self._reported_bytes = now, done
        percent = min(100.0 * done / self._total, 100.0) if self._total else 100.0
        eta = f"{max(self._total - done, 0) / rate:.0f}" if rate else "unknown"
        line = f"{self._phase}: {percent:.1f} %, {rate / 1e9:.2f} GB/s, {eta} s left"
        log(line)
        self.post(
            phase=self._phase,
            percent=f"{percent:.1f}",
            gigabytesPerSecond=f"{rate / 1e9:.2f}",
            secondsLeft=eta,
            message=line,
        )
