"""sharded_lookup on real clusters of processes on this machine.

One cluster of two workers, two parameter servers and a coordinator serves most of the tests, which
run in their order: later ones kill a worker.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cluster_mirrored
import cluster_model as model
import numpy as np
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "tests"
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks.cluster import Task, free_address  # noqa: E402

PAGE = ROOT / "docs" / "clusters.md"
TASKS = [("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1)]
PACKAGE = str(Path(tsg.__file__).resolve().parent.parent)


class Cluster:
    """The processes, and how to ask the coordinator."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        counts = {"chief": 1, "ps": 2, "worker": 2}
        self.addresses = {job: [free_address() for _ in range(n)] for job, n in counts.items()}
        self.tasks: dict[tuple[str, int], Task] = {}
        page = PAGE.read_text("utf-8")
        with_library = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)[1]
        without = re.sub("^import tf_stitch_gather.*$", "", with_library, flags=re.M)
        assert without != with_library
        self.programs = {True: folder / "server.py", False: folder / "without_library.py"}
        for library, source in ((True, with_library), (False, without)):
            self.programs[library].write_text(source, "utf-8")
        self.losses: list[float] = []

    def start(self, job: str, index: int, library: bool = True) -> None:
        """Starts a task; `wait` for it before it is used."""
        name = f"{job}{index}"
        place = self.folder / name
        place.mkdir(exist_ok=True)
        (place / "name").write_text(name, "utf-8")
        self.tasks[job, index] = Task(
            HERE / "cluster_chief.py" if job == "chief" else self.programs[library],
            cluster=self.addresses,
            job=job,
            index=index,
            folder=place,
            log=self.folder / f"{name}.log",
            python_path=[PACKAGE],
        )

    def wait(self, job: str, index: int) -> None:
        """Waits until a task says that it is ready."""
        wanted = "connected" if job == "chief" else f"/job:{job}/task:{index} is ready"
        while self.tasks[job, index].read_line() != wanted:
            pass

    def kill(self, job: str, index: int) -> None:
        self.tasks.pop((job, index)).close()

    def ask(self, command: str, *arguments: Any) -> Any:
        """What the coordinator answers; its exception is raised as `FailedError`."""
        chief = self.tasks["chief", 0]
        chief.input.write(json.dumps([command, *arguments]) + "\n")
        chief.input.flush()
        kind, *answer = json.loads(chief.read_line())
        if kind == "failed":
            raise FailedError(*answer)
        return answer[0]

    def trained(self, steps: list[tuple[float, str]]) -> set[str]:
        """Asserts that all steps have the losses of a single process; returns their workers."""
        self.losses += [loss for loss, _ in steps]
        losses, _ = model.single_process(len(self.losses))
        np.testing.assert_allclose(self.losses, losses, rtol=1e-5)
        return {worker for _, worker in steps}


class FailedError(Exception):
    """An exception in the coordinator: the name of its class and its text."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        for task in TASKS:
            cluster.start(*task)
        cluster.start("chief", 0)
        for task in [*TASKS, ("chief", 0)]:
            cluster.wait(*task)
        yield cluster
    finally:
        for task in cluster.tasks.values():
            task.close()


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """What the two workers of a MultiWorkerMirroredStrategy print."""
    folder = tmp_path_factory.mktemp("mirrored")
    addresses = {"worker": [free_address(), free_address()]}
    workers = [
        Task(
            HERE / "cluster_mirrored.py",
            cluster=addresses,
            job="worker",
            index=index,
            log=folder / f"worker{index}.log",
            python_path=[PACKAGE],
        )
        for index in range(2)
    ]
    try:
        yield [json.loads(worker.read_line()) for worker in workers]
    finally:
        for worker in workers:
            worker.close()


def test_the_documented_example_trains(cluster: Cluster) -> None:
    losses = cluster.ask("example")
    assert losses[-1] < 0.5 * losses[0]


def test_every_task_has_the_ops(cluster: Cluster) -> None:
    tasks = {f"/job:{job}/task:{index}" for job, index in [*TASKS, ("chief", 0)]}
    assert set(cluster.ask("check")) == tasks


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("device", [None, "/job:worker/task:1"], ids=["chief", "worker"])
def test_a_lookup_anywhere(cluster: Cluster, device: str | None, traced: bool) -> None:
    rows = cluster.ask("lookup", [39, 0, 39], device, traced)
    support.same(np.float32(rows), np.float32(cluster.ask("values"))[[39, 0, 39]])


def test_parameter_servers_train_as_a_single_process(cluster: Cluster) -> None:
    cluster.trained(cluster.ask("train", 12))
    _, table = model.single_process(len(cluster.losses))
    support.close(np.float32(cluster.ask("values")), table)
    assert cluster.losses[-1] < cluster.losses[0]


def test_workers_at_once_lose_no_gradient(cluster: Cluster) -> None:
    batches = [model.batch(number)[0].numpy().reshape(-1) for number in range(40)]
    want = np.bincount(np.concatenate(batches), minlength=model.ROWS)
    assert cluster.ask("count_at_once", 40) == want.tolist()


def test_an_id_that_no_shard_has_changes_nothing(cluster: Cluster) -> None:
    before = cluster.ask("values")
    with pytest.raises(FailedError, match=r"ids\[2,1\] = 43 is not covered by shards") as failure:
        cluster.ask("bad_id")
    assert failure.value.kind == "InvalidArgumentError"
    assert cluster.ask("values") == before
    cluster.trained(cluster.ask("train", 2))


def test_a_session_reads_and_trains_on_the_servers(cluster: Cluster) -> None:
    """TensorFlow 1: a PartitionedVariable on the same servers; only rows leave them."""
    v1 = tf.compat.v1
    target = "grpc://" + cluster.addresses["worker"][0]
    assert len(tsg.check_cluster(target)) == len(TASKS) + 1
    with tf.Graph().as_default():
        with v1.device(v1.train.replica_device_setter(ps_tasks=2)):
            table = v1.get_variable(
                "table",
                [model.ROWS, model.WIDTH],
                initializer=v1.constant_initializer(1.0),
                partitioner=v1.fixed_size_partitioner(2),
                use_resource=True,
            )
        with tf.device("/job:worker/task:0"):
            ids = v1.placeholder(tf.int32, [None])
            rows = tsg.sharded_lookup(table, ids)
            train = v1.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(rows))
        trace = v1.RunMetadata()
        start = v1.global_variables_initializer()
        with v1.Session(target) as session:
            session.run(start)
            session.run(
                train,
                {ids: [39, 0, 39]},
                v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE),
                trace,
            )
            found = session.run(rows, {ids: [0, 1, 39]})
    support.same(found[:, 0], np.float32([0.5, 1.0, 0.0]))
    where = {
        (node.timeline_label.split(" = ")[-1].split("(")[0], device.device.split("/device")[0])
        for device in trace.step_stats.dev_stats
        for node in device.node_stats
    }
    readers = {device for op, device in where if op == "MyResourceGatherNd"}
    assert readers == {f"/job:ps/replica:0/task:{index}" for index in range(2)}
    assert ("MyDynamicStitchSized", "/job:worker/replica:0/task:0") in where


def test_a_worker_is_killed_and_restarted(cluster: Cluster) -> None:
    cluster.kill("worker", 1)
    assert cluster.trained(cluster.ask("train", 6)) == {"worker0"}
    cluster.start("worker", 1)
    cluster.wait("worker", 1)
    assert "worker1" in cluster.trained(cluster.ask("train_until", "worker1"))
    cluster.trained(cluster.ask("train", 6))
    _, table = model.single_process(len(cluster.losses))
    support.close(np.float32(cluster.ask("values")), table)


def test_a_worker_without_the_library_is_named(cluster: Cluster) -> None:
    cluster.kill("worker", 1)
    cluster.start("worker", 1, library=False)
    cluster.wait("worker", 1)
    with pytest.raises(FailedError, match="Op type not registered 'My"):
        cluster.ask("train_until_failure")
    with pytest.raises(FailedError, match="/job:worker/task:1 has not loaded the ops") as failure:
        cluster.ask("check")
    assert failure.value.kind == "NotFoundError"
    assert "imports tf_stitch_gather before" in failure.value.text
    # Nothing is lost: started rightly, it goes on where it was.
    cluster.kill("worker", 1)
    cluster.start("worker", 1)
    cluster.wait("worker", 1)
    missed = cluster.ask("steps") - len(cluster.losses)
    cluster.losses = model.single_process(len(cluster.losses) + missed)[0]
    assert "worker1" in cluster.trained(cluster.ask("train_until", "worker1"))


def test_mirrored_workers_train_as_a_single_process(mirrored: list[dict[str, Any]]) -> None:
    shards = [tf.Variable(part) for part in np.array_split(model.table(), 2)]
    losses = []
    for number in range(cluster_mirrored.STEPS):
        with tf.GradientTape() as tape:
            loss = model.loss_of(shards, 1.0, *model.batch(number), "div")
        losses.append(float(loss))
        for shard, gradient in zip(shards, tape.gradient(loss, shards), strict=True):
            change = cluster_mirrored.RATE * gradient.values
            shard.scatter_sub(tf.IndexedSlices(change, gradient.indices))
    table = np.concatenate([shard.numpy() for shard in shards])
    for worker in mirrored:
        np.testing.assert_allclose(worker["losses"], losses, rtol=1e-5)
        support.close(np.float32(worker["table"]), table)


def test_bytes_over_the_wire(tmp_path: Path) -> None:
    """The benchmark: little more is sent than each distinct row once, and its gradient."""
    pytest.importorskip("rich")
    numbers = tmp_path / "numbers.csv"
    program = ROOT / "benchmarks" / "sharded_lookup.py"
    sizes = ["--rows", "20000", "--width", "32", "--ids", "2048", "--steps", "4"]
    printed = support.run_python(program, *sizes, "--csv", str(numbers))
    assert "sharded_lookup" in printed
    with numbers.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    bytes_of = {(row["ids"], row["side"]): float(row["step_bytes"]) for row in rows}
    for ids in ("uniform", "Zipf 1.2"):
        least = next(float(row["least_bytes"]) for row in rows if row["ids"] == ids)
        assert least < bytes_of[ids, "sharded_lookup"] < 1.2 * least + 20_000
        assert bytes_of[ids, "sharded_lookup"] < bytes_of[ids, "tf.nn.embedding_lookup"]


def test_no_process_outlives_its_owner(tmp_path: Path) -> None:
    """Not even one that is killed, and cannot clean up."""
    program = tmp_path / "sleep.py"
    program.write_text("import time\nprint('up', flush=True)\ntime.sleep(600)\n", "utf-8")
    owner = (
        "import sys, time; from pathlib import Path\n"
        "from benchmarks.cluster import Task\n"
        f"task = Task(Path({str(program)!r}), log=Path({str(tmp_path / 'log')!r}))\n"
        "assert task.read_line() == 'up'; print(task.pid, flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", owner], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        os.kill(pid, 0)
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while is_running(pid):
        assert time.monotonic() < deadline, "the process is still there"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
