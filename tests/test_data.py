"""tf.data pipelines that hold the ops, in one process and in the service of two."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
import pytest
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from support import equal

TABLE = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)


def look_up(index: tf.Tensor) -> tf.Tensor:
    return tsg.gather_nd(tf.constant(TABLE), index[..., tf.newaxis])


def by_parity(numbers: tf.Tensor) -> tf.Tensor:
    """Doubles the even numbers of a batch and negates the odd ones, each in its place."""
    side = tf.cast(numbers % 2, tf.int32)
    even, odd = tf.dynamic_partition(numbers, side, 2)
    places = tf.dynamic_partition(tf.range(tf.size(numbers)), side, 2)
    return tsg.dynamic_stitch(places, [even * 2, -odd])


class TestPipeline:
    def test_map_and_batch(self):
        """In parallel, before and after the batch, over a last batch that is not full."""
        data = (
            tf.data.Dataset.range(50)
            .map(lambda k: (k, look_up(k)), num_parallel_calls=tf.data.AUTOTUNE)
            .batch(8, num_parallel_calls=2)
            .map(lambda k, rows: (k, rows, look_up(k), by_parity(k)), num_parallel_calls=2)
            .prefetch(tf.data.AUTOTUNE)
        )
        batches = list(data.as_numpy_iterator())
        assert [len(batch[0]) for batch in batches] == [8] * 6 + [2]
        k, single, batched, parity = (np.concatenate(part) for part in zip(*batches, strict=True))
        equal(single, TABLE[k])
        equal(batched, TABLE[k])
        equal(parity, np.where(k % 2, -k, 2 * k))

    def test_shapes_are_known_where_they_follow(self):
        data = tf.data.Dataset.range(6).batch(2, drop_remainder=True)
        assert data.map(look_up).element_spec.shape == (2, 3)
        assert data.map(by_parity).element_spec.shape.as_list() == [None]
        assert tf.data.Dataset.range(6).batch(2).map(look_up).element_spec.shape.as_list() == (
            [None, 3]
        )

    def test_padded_batches_of_words(self):
        """Strings of sentences of several lengths, turned round within the padded batch."""
        words = tf.constant(["a", "bb", "ccc", "dd"])
        data = tf.data.Dataset.range(1, 5).map(lambda n: tsg.gather_nd(words, tf.range(n)[:, None]))

        def turn(batch):
            last = tf.shape(batch)[1] - 1
            order = tf.repeat((last - tf.range(last + 1))[None], tf.shape(batch)[0], axis=0)
            return tsg.gather_nd(batch, order[..., None], batch_dims=1)

        first, second = data.padded_batch(2).map(turn).as_numpy_iterator()
        equal(first, [["", "a"], ["bb", "a"]])
        equal(second, [["", "ccc", "bb", "a"], ["dd", "ccc", "bb", "a"]])

    def test_a_pipeline_is_saved_and_loaded(self, tmp_path):
        data = tf.data.Dataset.range(7).map(look_up)
        data.save(str(tmp_path / "data"))
        equal(list(tf.data.Dataset.load(str(tmp_path / "data"))), TABLE[:7])
        counted = tf.data.Dataset.range(7).map(look_up).cache()
        for _ in range(2):
            equal(list(counted), TABLE[:7])

    def test_feeds_fit(self):
        ids = tf.data.Dataset.range(48).batch(16).map(lambda k: (look_up(k), look_up(k)[:, :1]))
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.Adam(0.05), "mse")
        loss = model.fit(ids, epochs=20, verbose=0).history["loss"]
        assert loss[-1] < 0.5 * loss[0]

    def test_in_a_session(self):
        v1 = tf.compat.v1
        with tf.Graph().as_default(), v1.Session() as session:
            data = v1.data.Dataset.range(6).batch(4).map(by_parity)
            step = v1.data.make_one_shot_iterator(data).get_next()
            equal(session.run(step), [0, -1, 4, -3])
            equal(session.run(step), [8, -5])
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(step)

    def test_a_bad_element_does_not_end_the_pipeline(self):
        """The error says which index; the elements after it are there for `ignore_errors`."""
        data = tf.data.Dataset.from_tensor_slices([1, 70, 2]).map(look_up)
        with support.fails("[70] does not index into param shape [50,3]"):
            list(data)
        equal(list(data.ignore_errors()), TABLE[[1, 2]])


class TestControlFlow:
    """tf.while_loop and tf.cond with the ops in the condition, in the body and as the state."""

    @pytest.mark.parametrize("mode", support.MODES)
    def test_a_linked_list_is_followed(self, mode):
        following = tf.constant([3, 0, -1, 4, 2])

        def follow(start):
            def unfinished(_, node):
                return tsg.gather_nd(following, node[None]) >= 0

            def step(passed, node):
                passed = tsg.dynamic_stitch(
                    [tf.range(tf.size(passed)), tf.size(passed)], [passed, node]
                )
                return passed, tsg.gather_nd(following, node[None])

            shapes = [tf.TensorShape([None]), tf.TensorShape([])]
            empty = tf.zeros([0], tf.int32)
            return tf.while_loop(unfinished, step, [empty, start], shape_invariants=shapes)

        passed, last = support.call(mode, follow, tf.constant(1))
        equal(passed, [1, 0, 3, 4])
        equal(last, 2)

    def test_gradient_through_both_branches_in_a_loop(self):
        rows = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

        def run(x):
            def step(k, total):
                picked = tf.cond(
                    k % 2 == 0,
                    lambda: tsg.gather_nd(x, [[k], [k]]),
                    lambda: tsg.dynamic_stitch([[1, 0]], [x[:2] * 10.0]),
                )
                return k + 1, total + picked

            return tf.while_loop(lambda k, _: k < 3, step, [0, tf.zeros([2, 2])])[1]

        equal(tf.function(run)(rows), [[36, 48], [16, 28]])
        gradient = support.gradients(tf.function(run), [rows])[0]
        equal(gradient, [[12, 12], [10, 10], [2, 2]])


SERVER = """
    import sys

    import tensorflow as tf

    dispatcher = tf.data.experimental.service.DispatchServer()
    worker = tf.data.experimental.service.WorkerServer(
        tf.data.experimental.service.WorkerConfig(
            dispatcher_address=dispatcher.target.partition("://")[2]
        )
    )
    print(dispatcher.target, flush=True)
    if sys.stdin.readline():
        import tf_stitch_gather

        print("imported", flush=True)
        sys.stdin.readline()  # Until the client has ended, however it has.
"""


@pytest.fixture
def server() -> Iterator[subprocess.Popen]:
    """A dispatcher and a worker of tf.data in a process of their own."""
    home = str(Path(tsg.__file__).resolve().parent.parent)
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SERVER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": home, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    try:
        yield process
    finally:
        process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
        process.kill()
        process.wait()
        process.stdout.close()


def test_service_in_two_processes(server):
    """A worker without the library says so; after one import it serves."""
    address = server.stdout.readline().strip()

    def served(data: tf.data.Dataset) -> tf.data.Dataset:
        return data.apply(tf.data.experimental.service.distribute("parallel_epochs", address))

    data = tf.data.Dataset.range(20).batch(5).map(lambda k: (k, look_up(k), by_parity(k)))
    with support.fails("Op type not registered 'My", kinds=tf.errors.OpError):
        list(served(data))
    print(file=server.stdin, flush=True)
    assert server.stdout.readline() == "imported\n"
    batches = list(served(data).as_numpy_iterator())
    k, rows, parity = (np.concatenate(part) for part in zip(*batches, strict=True))
    equal(np.sort(k), np.arange(20))
    equal(rows, TABLE[k])
    equal(parity, np.where(k % 2, -k, 2 * k))
    broken = served(tf.data.Dataset.range(20).map(lambda k: look_up(k * 10)))
    with support.fails("[50] does not index into param shape [50,3]", kinds=tf.errors.OpError):
        list(broken)
