"""Processes of a TensorFlow cluster on this machine, which end with the one that started them.

Run as a program, `python cluster.py FD FILE ARGUMENT...`, it runs FILE and ends at once when the
other end of the pipe FD is closed, as it is when its owner ends in whatever way.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import runpy
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_SYSTEM_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST_PORT = 10_000


def free_address() -> str:
    """`host:port` with a port that nothing uses.

    Below the ports that the system hands out by itself, so that it stays free until it is used,
    also while a server there is started again.
    """
    try:
        last = int(_SYSTEM_PORTS.read_text("ascii").split()[0]) - 1
    except OSError:
        last = 32_767
    ports = list(range(_FIRST_PORT, max(last, _FIRST_PORT + 1_000)))
    random.shuffle(ports)
    for port in ports:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return f"127.0.0.1:{port}"
    raise OSError("no port is free")


class Task:
    """A Python program in a process of its own, killed when this object is closed.

    Attributes:
      output: what the program prints, to be read by lines.
      input: what it reads.
    """

    def __init__(
        self,
        program: Path,
        *arguments: str,
        cluster: Mapping[str, Sequence[str]] | None = None,
        job: str = "",
        index: int = 0,
        folder: Path | None = None,
        log: Path,
        python_path: Sequence[str] = (),
    ) -> None:
        """Starts `program` in `folder`, as task `index` of `job` where a `cluster` is given."""
        read_end, self._lifeline = os.pipe()
        environment = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ, "CUDA_VISIBLE_DEVICES": ""}
        paths = [environment.get("PYTHONPATH", ""), *python_path]
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        if cluster is not None:
            task = {"type": job, "index": index}
            environment["TF_CONFIG"] = json.dumps({"cluster": dict(cluster), "task": task})
        self.log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__)), str(read_end), str(program), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=[read_end],
                text=True,
                cwd=folder,
                env=environment,
            )
        os.close(read_end)
        assert self._process.stdin is not None and self._process.stdout is not None
        self.input: IO[str] = self._process.stdin
        self.output: IO[str] = self._process.stdout

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def read_line(self, seconds: float = 120) -> str:
        """The next line that the program prints.

        Raises RuntimeError when the program ends instead, and ends it when it takes longer.
        """
        timer = threading.Timer(seconds, self._process.kill)
        timer.start()
        try:
            line = self.output.readline()
        finally:
            timer.cancel()
        if not line:
            self.close()
            tail = self.log.read_text("utf-8", "replace")[-3000:]
            raise RuntimeError(f"a process of the cluster ended:\n{tail}")
        return line.rstrip("\n")

    def close(self) -> None:
        """Ends the process, at once."""
        self._process.kill()
        self._process.wait()
        self.input.close()
        self.output.close()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1


def _end_with(descriptor: int) -> None:
    os.read(descriptor, 1)
    os._exit(1)


def _main() -> None:
    descriptor, program = int(sys.argv[1]), sys.argv[2]
    threading.Thread(target=_end_with, args=[descriptor], daemon=True).start()
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path(program).resolve().parent)
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    _main()
