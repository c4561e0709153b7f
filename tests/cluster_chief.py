"""The coordinator of a cluster with parameter servers: does what it is told by lines of JSON.

A line that it reads is `[name of a command, argument...]`. It answers with a line:
`["done", result]` or `["failed", name of the exception, its text]`.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import cluster_model as model
import tensorflow as tf
import tf_stitch_gather as tsg

tf.get_logger().setLevel("CRITICAL")


def documented_example() -> dict[str, Any]:
    """Runs the coordinator's program of docs/clusters.md; returns its names."""
    page = Path(__file__).resolve().parent.parent / "docs" / "clusters.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    # In a file, where TensorFlow finds the source of the function.
    file = Path("example.py").resolve()
    file.write_text(blocks[-1], "utf-8")
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(blocks[-1], str(file), "exec"), names)
    return names


class Chief:
    """The commands, and the model that they train on the cluster of the documented example."""

    def __init__(self) -> None:
        names = documented_example()
        self.example_losses = names["losses"]
        self.coordinator = names["coordinator"]
        with names["strategy"].scope():
            self.table = tf.Variable(model.table())
            state = tf.Variable(tf.fill([model.ROWS, model.WIDTH], 0.1))
            scale = tf.Variable(1.0)
            self.counts = tf.Variable(tf.zeros([model.ROWS, 1]))
        train = model.adagrad_step(self.table.variables, state.variables, scale, "div")
        self.trained = 0

        @tf.function(autograph=False)
        def step(ids: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            # Each task has a file of its own in its folder.
            return train(ids, labels), tf.io.read_file("name")

        @tf.function(autograph=False)
        def count(ids: tf.Tensor) -> None:
            shards = self.counts.variables
            with tf.GradientTape() as tape:
                total = tf.reduce_sum(tsg.sharded_lookup(self.counts, ids))
            for shard, gradient in zip(shards, tape.gradient(total, shards), strict=True):
                shard.scatter_add(gradient)

        self._step, self._count = step, count

    def _train_once(self) -> tuple[float, str]:
        result = self.coordinator.schedule(self._step, args=model.batch(self.trained))
        self.coordinator.join()
        loss, worker = result.fetch()
        self.trained += 1
        return float(loss), worker.decode()

    def example(self) -> list[float]:
        """The losses of the documented example."""
        return self.example_losses

    def train(self, steps: int) -> list[tuple[float, str]]:
        """Loss and worker of each of so many steps, one after the other."""
        return [self._train_once() for _ in range(steps)]

    def train_until(self, worker: str, seconds: float = 60) -> list[tuple[float, str]]:
        """Loss and worker of each step, up to the first by `worker`."""
        done = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            done.append(self._train_once())
            if done[-1][1] == worker:
                return done
            time.sleep(0.05)
        raise TimeoutError(f"{worker} made none of {len(done)} steps")

    def train_until_failure(self, seconds: float = 60) -> list[tuple[float, str]]:
        """Trains until a step fails, with its exception."""
        self.train_until("nobody", seconds)
        raise AssertionError

    def values(self) -> list[list[float]]:
        """The table."""
        return tf.concat(self.table.variables, 0).numpy().tolist()

    def count_at_once(self, steps: int) -> list[float]:
        """How often each id comes in so many batches, added up by all workers at once."""
        for number in range(steps):
            self.coordinator.schedule(self._count, args=model.batch(number)[:1])
        self.coordinator.join()
        return tf.concat(self.counts.variables, 0).numpy()[:, 0].tolist()

    def bad_id(self) -> None:
        """A step with an id that no shard has."""
        ids, labels = model.batch(0)
        ids = tf.tensor_scatter_nd_update(ids, [[2, 1]], [model.ROWS + 3])
        self.coordinator.schedule(self._step, args=(ids, labels))
        self.coordinator.join()

    def lookup(self, ids: list[int], device: str | None, traced: bool) -> list[list[float]]:
        """A lookup without the coordinator, under a device's name."""

        def rows() -> tf.Tensor:
            with tf.device(device):
                return tsg.sharded_lookup(self.table, ids)

        return (tf.function(rows, autograph=False) if traced else rows)().numpy().tolist()

    def check(self) -> list[str]:
        """`check_cluster`."""
        return tsg.check_cluster()

    def steps(self) -> int:
        """How many steps the model has been trained."""
        return self.trained


def main() -> None:
    chief = Chief()
    print("connected", flush=True)
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        try:
            answer = ["done", getattr(chief, command)(*arguments)]
        except Exception as error:
            answer = ["failed", type(error).__name__, str(error)]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
