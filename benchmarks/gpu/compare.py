"""Ratios of these ops to the built-in ones on a GPU.

Each pair is checked for equal results, then timed in turns in one process; the time of a side is
the median. Every call ends with a wait for the device. `--device CPU:0` serves to try the program
without a GPU.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf
import tf_stitch_gather as sg

Side = Callable[[], tf.Tensor]


def gather(rng: np.random.Generator, rows: int, count: int, width: int) -> Iterator[tuple]:
    params = tf.constant(rng.random((rows, width), np.float32))
    indices = tf.constant(rng.integers(0, rows, (count, 1)), tf.int32)
    name = f"gather_nd {count} of {rows} x {width}"
    yield name, lambda: sg.gather_nd(params, indices), lambda: tf.gather_nd(params, indices)

    # Small whole numbers add up to the same sum in any order.
    updates = tf.constant(rng.integers(-8, 9, (count, width)), tf.float32)
    yield (
        name.replace("gather", "scatter"),
        lambda: sg.scatter_nd(indices, updates, [rows, width]),
        lambda: tf.scatter_nd(indices, updates, [rows, width]),
    )


def stitch(rng: np.random.Generator, rows: int, width: int) -> Iterator[tuple]:
    order = rng.permutation(rows).astype(np.int32)
    indices = [tf.identity(tf.constant(part)) for part in np.array_split(order, 2)]
    data = [tf.constant(rng.random((len(part), width), np.float32)) for part in indices]
    name = f"dynamic_stitch {rows} x {width}"
    yield (
        name,
        lambda: sg.dynamic_stitch(indices, data),
        lambda: tf.dynamic_stitch(indices, data),
    )
    yield (
        f"{name}, size given",
        lambda: sg.dynamic_stitch(indices, data, size=rows),
        lambda: tf.dynamic_stitch(indices, data),
    )


def seconds(side: Side, wait: Callable[[], None]) -> float:
    begin = time.perf_counter()
    side()
    wait()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="GPU:0")
    parser.add_argument("--repeats", type=int, default=31)
    options = parser.parse_args()
    if options.device.startswith("GPU") and not tf.config.list_physical_devices("GPU"):
        raise SystemExit("TensorFlow sees no GPU here: nothing was timed")

    def wait() -> None:
        if options.device.startswith("GPU"):
            tf.test.experimental.sync_devices()

    rng = np.random.default_rng(1)
    with tf.device(options.device):
        cases = [
            case
            for count in (1_000, 100_000, 1_000_000)
            for width in (1, 16, 128)
            for cases_of in (gather(rng, 100_000, count, width), stitch(rng, count, width))
            for case in cases_of
        ]
        for name, ours, builtin in cases:
            np.testing.assert_array_equal(ours().numpy(), builtin().numpy(), err_msg=name)
            times: tuple[list[float], list[float]] = ([], [])
            for _ in range(options.repeats):
                times[0].append(seconds(ours, wait))
                times[1].append(seconds(builtin, wait))
            mine, theirs = (statistics.median(side) for side in times)
            print(f"{name:42} {mine * 1e6:9.1f} us {theirs * 1e6:9.1f} us {theirs / mine:7.2f} x")


if __name__ == "__main__":
    main()
