"""Which process a run is in, in a form that tells later whether that process still lives.

A process that is killed cannot say so: Dagster goes on to show its run as started and counts it among those
that may run at a time. So each run carries the name of its process: machine, boot, number and start.
"""

import os
import socket
from pathlib import Path
from typing import Final

PROCESS_TAG: Final = "tilewright/process"
"""Tag of every run whose stages began."""

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


def this_process() -> str:
    """The name of this process."""
    return f"{socket.gethostname()} {_boot()} {os.getpid()} {_start(os.getpid())}"


def has_ended(process: str) -> bool:
    """Whether a process certainly lives no more; of those of other machines nothing is known."""
    match process.split(" "):
        case [machine, boot, number, start] if machine == socket.gethostname() and number.isdigit():
            return boot != _boot() or start != _start(int(number))
        case _:
            return False


def _boot() -> str:
    try:
        return _BOOT.read_text().strip()
    except OSError:  # no Linux
        return "-"


def _start(number: int) -> str:
    """When a process began, in the system's own count; "-" when it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "-"
    return "-" if fields[0] in {"Z", "X"} else fields[19]
