"""Counts the bytes that reach the tasks of a cluster and leave them, from between the tasks.

Run as a program, `wire.py TARGET...`, it listens at a new address for each target and passes
connections on. It prints the addresses as a JSON list, and after each line that it reads, the bytes
that have passed so far, both ways. In a process of its own: TensorFlow holds Python's lock while it
connects.
"""

from __future__ import annotations

import asyncio
import json
import sys

from cluster import free_address

_CHUNK = 1 << 16


class CountingProxy:
    """Passes connections on to `target`, `host:port`.

    Attributes:
      address: where it listens.
      total: bytes so far.
    """

    def __init__(self, target: str) -> None:
        self.address = free_address()
        self.total = 0
        self._target = target.split(":")

    async def listen(self) -> None:
        """Starts to take connections."""
        host, port = self.address.split(":")
        await asyncio.start_server(self._connect, host, int(port))

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection(self._target[0], int(self._target[1]))
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._pass(reader, there[1]), self._pass(there[0], writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(_CHUNK):
                self.total += len(data)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


async def main(targets: list[str]) -> None:
    """Listens for each target, and answers until standard input ends."""
    proxies = [CountingProxy(target) for target in targets]
    for proxy in proxies:
        await proxy.listen()
    print(json.dumps([proxy.address for proxy in proxies]), flush=True)
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(sum(proxy.total for proxy in proxies), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
