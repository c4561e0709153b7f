"""Bytes over the wire of a training step with `sharded_lookup` and with `tf.nn.embedding_lookup`.

Starts a cluster on this machine: a worker and parameter servers, which hold a table in shards, and
this process as the coordinator. Each task is reached through a proxy that counts what passes in
both directions; a connection passes the proxy of the task that is called, so each byte counts once.
Counted is what TCP carries: data and the messages of gRPC, without headers of TCP and IP. A step
looks up a batch of ids and subtracts the gradient from the shards; the table after the steps has
to be the same to the bit for each side before anything is reported.
`python benchmarks/sharded_lookup.py --help` lists the options.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    # Run by its path, Python looks for modules in this folder and not in the one above.
    sys.path[0] = str(_ROOT)
    sys.path.insert(1, str(_ROOT / "python"))

import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from benchmarks.cluster import Task, free_address  # noqa: E402

_SERVER = """\
import tensorflow as tf

import tf_stitch_gather

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
server = tf.distribute.Server(
    resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id
)
print("ready", flush=True)
server.join()
"""
_WARM_UP_STEPS = 3
_BATCHES = 4
_SETTLE_SECONDS = 0.02  # For what is sent after a step: acknowledgements of gRPC.


@dataclasses.dataclass(frozen=True)
class Result:
    """One line of the report: a way to look up, on ids of one distribution."""

    ids: str
    side: str
    distinct: float
    least_bytes: float
    step_bytes: float
    step_seconds: float


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="sharded_lookup",
        description=__doc__.splitlines()[0] if __doc__ else None,
    )
    add = parser.add_argument
    add("--rows", type=int, default=100_000, metavar="N", help="rows of the table")
    add("--width", type=int, default=64, metavar="N", help="float32 numbers in a row")
    add("--ids", type=int, default=8_192, metavar="N", help="ids in a batch")
    add("--shards", type=int, default=2, metavar="N", help="parameter servers, a shard on each")
    add("--steps", type=int, default=20, metavar="N", help="steps that are counted, of each side")
    add(
        "--skew",
        type=float,
        default=1.2,
        metavar="A",
        help="exponent of the Zipf distribution that ids are drawn from, beside the uniform one",
    )
    add("--csv", type=Path, metavar="FILE", help="write every number to this file")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    options = parse(arguments)
    console = Console(width=None if sys.stdout.isatty() else 120)
    rng = np.random.default_rng(0)
    shape = (_BATCHES, options.ids)
    draws = {
        "uniform": rng.integers(0, options.rows, shape),
        f"Zipf {options.skew}": (rng.zipf(options.skew, shape) - 1) % options.rows,
    }
    with _cluster(options.shards) as count:
        try:
            results = _measure(options, draws, count)
        except ArithmeticError as error:
            console.print(str(error), style="red", markup=False)
            return 1
    _print(console, results, options)
    if options.csv:
        with options.csv.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [field.name for field in dataclasses.fields(Result)])
            writer.writeheader()
            writer.writerows(dataclasses.asdict(result) for result in results)
    return 0


@contextmanager
def _cluster(shards: int) -> Iterator[Callable[[], int]]:
    """A worker and parameter servers, of which TF_CONFIG then tells this process.

    Yields a function that counts the bytes between all tasks up to now.
    """
    own = {"ps": [free_address() for _ in range(shards)], "worker": [free_address()]}
    paths = [str(_ROOT / "python")]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:

        def start(program: Path, *arguments: str, **task: Any) -> Task:
            log = Path(folder) / f"{program.stem}{len(tasks)}.log"
            tasks.append(Task(program, *arguments, log=log, python_path=paths, **task))
            stack.callback(tasks[-1].close)
            return tasks[-1]

        tasks: list[Task] = []
        wire = start(_ROOT / "benchmarks" / "wire.py", *own["ps"], *own["worker"])
        *servers, worker = json.loads(wire.read_line())
        seen = {"ps": servers, "worker": [worker], "chief": [free_address()]}
        program = Path(folder) / "server.py"
        program.write_text(_SERVER, "utf-8")
        for job, addresses in own.items():
            for index, address in enumerate(addresses):
                # A task listens at its own address; all others know that of its proxy.
                known = {**seen, job: [*seen[job]]}
                known[job][index] = address
                start(program, cluster=known, job=job, index=index)
        for task in tasks[1:]:
            if task.read_line() != "ready":
                raise RuntimeError("a server printed something else than that it is ready")
        os.environ["TF_CONFIG"] = json.dumps(
            {"cluster": seen, "task": {"type": "chief", "index": 0}}
        )

        def count() -> int:
            wire.input.write("\n")
            wire.input.flush()
            return int(wire.read_line())

        yield count


def _measure(
    options: argparse.Namespace, draws: dict[str, np.ndarray], count: Callable[[], int]
) -> list[Result]:
    """Runs all sides in turn. Raises ArithmeticError when their tables differ."""
    import tensorflow as tf
    import tf_stitch_gather as sg

    def by_hand(table: Any, ids: Any) -> Any:
        distinct, places = tf.unique(ids)
        return tf.gather(tf.nn.embedding_lookup(table, distinct), places)

    lookups: dict[str, Callable[[Any, Any], Any] | None] = {
        "no lookup": None,
        "tf.nn.embedding_lookup": tf.nn.embedding_lookup,
        "the same of tf.unique ids": by_hand,
        "sharded_lookup": sg.sharded_lookup,
    }
    partitioner = tf.distribute.experimental.partitioners.FixedShardsPartitioner(options.shards)
    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.TFConfigClusterResolver(), variable_partitioner=partitioner
    )
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

    def make_table() -> Any:
        with strategy.scope():
            return tf.Variable(tf.zeros([options.rows, options.width]))

    def shards_of(table: Any) -> list[Any]:
        return list(getattr(table, "variables", [table]))

    def make_step(lookup: Callable[[Any, Any], Any] | None, table: Any, batches: Any) -> Any:
        shards = shards_of(table)

        def step(number: Any) -> Any:
            ids = tf.constant(batches, tf.int64)[number]
            if lookup is None:
                return tf.reduce_sum(ids)
            with tf.GradientTape() as tape:
                # Of whole numbers, whose sums are the same in any order.
                rows = lookup(table, ids)
                loss = tf.reduce_sum(rows * tf.cast(ids % 5 + 1, tf.float32)[:, None])
            for shard, gradient in zip(shards, tape.gradient(loss, shards), strict=True):
                shard.scatter_sub(gradient)
            return loss

        return tf.function(step, input_signature=[tf.TensorSpec([], tf.int32)], autograph=False)

    def run(step: Any, number: int) -> float:
        start = time.perf_counter()
        coordinator.schedule(step, args=(tf.constant(number % _BATCHES),))
        coordinator.join()
        return time.perf_counter() - start

    results = []
    for label, batches in draws.items():
        tables = {side: make_table() for side, lookup in lookups.items() if lookup}
        steps = {
            side: make_step(lookup, tables.get(side), batches) for side, lookup in lookups.items()
        }
        for step in steps.values():
            for number in range(_WARM_UP_STEPS):
                run(step, number)
        carried: dict[str, list[int]] = {side: [] for side in steps}
        seconds: dict[str, list[float]] = {side: [] for side in steps}
        for number in range(options.steps):
            for side, step in steps.items():
                before = count()
                seconds[side].append(run(step, number))
                time.sleep(_SETTLE_SECONDS)
                carried[side].append(count() - before)
        values = {side: tf.concat(shards_of(t), 0).numpy() for side, t in tables.items()}
        for side, found in values.items():
            if not np.array_equal(found, values["tf.nn.embedding_lookup"]) or not found.any():
                raise ArithmeticError(f"wrong table, nothing reported: {label}, {side}")
        distinct = statistics.mean(np.unique(batch).size for batch in batches)
        for side in steps:
            results.append(
                Result(
                    ids=label,
                    side=side,
                    distinct=distinct,
                    # A row and its gradient, with an id each of 4 bytes.
                    least_bytes=distinct * (2 * 4 * options.width + 2 * 4),
                    step_bytes=statistics.mean(carried[side]),
                    step_seconds=statistics.median(seconds[side]),
                )
            )
    return results


def _print(console: Console, results: Sequence[Result], options: argparse.Namespace) -> None:
    table = Table(
        title=f"{options.rows:,} rows of {options.width} float32 in {options.shards} shards, "
        f"{options.ids:,} ids a batch, {options.steps} steps"
    )
    table.add_column("ids")
    table.add_column("side")
    for heading in ("distinct", "bytes a step", "of embedding_lookup", "of the least", "ms a step"):
        table.add_column(heading, justify="right")
    for result in results:
        builtin = next(
            r for r in results if r.ids == result.ids and r.side == "tf.nn.embedding_lookup"
        )
        table.add_row(
            result.ids,
            result.side,
            f"{result.distinct:,.0f}",
            f"{result.step_bytes:,.0f}",
            f"{result.step_bytes / builtin.step_bytes:.3f}",
            f"{result.step_bytes / result.least_bytes:.2f}",
            f"{result.step_seconds * 1e3:.1f}",
        )
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
