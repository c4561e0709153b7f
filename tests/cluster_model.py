"""A small model over a table in shards, which each kind of cluster and a single process train."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tf_stitch_gather as tsg

ROWS, WIDTH, BATCH, FEATURES = 40, 4, 8, 3
RATE = 0.5


def table() -> np.ndarray:
    """The table before training."""
    return np.random.default_rng(1).normal(size=(ROWS, WIDTH)).astype(np.float32)


def batch(number: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Ids, some of them more than once, and labels that depend on them."""
    rng = np.random.default_rng(1000 + number % 8)
    ids = rng.zipf(1.3, (BATCH, FEATURES)) % ROWS
    return tf.constant(ids, tf.int32), tf.constant(np.sin(ids).sum(1), tf.float32)


def loss_of(
    shards: Any, scale: Any, ids: tf.Tensor, labels: tf.Tensor, strategy: str | None = None
) -> tf.Tensor:
    """The squared error, summed over the examples and divided by the size of a whole batch."""
    rows = tsg.sharded_lookup(shards, ids, strategy)
    return tf.reduce_sum((scale * tf.reduce_sum(rows, [1, 2]) - labels) ** 2) / BATCH


def adagrad_step(
    shards: Sequence[Any], states: Sequence[Any], scale: Any, strategy: str | None = None
) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """A step by Adagrad, which goes wrong where a gradient names a row twice."""

    def step(ids: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = loss_of(shards, scale, ids, labels, strategy)
        *gradients, by_scale = tape.gradient(loss, [*shards, scale])
        for shard, state, gradient in zip(shards, states, gradients, strict=True):
            tf.raw_ops.ResourceSparseApplyAdagradV2(
                var=shard.handle,
                accum=state.handle,
                lr=RATE,
                epsilon=1e-7,
                grad=gradient.values,
                indices=gradient.indices,
            )
        scale.assign_sub(0.01 * by_scale)
        return loss

    return step


def single_process(steps: int, count: int = 2) -> tuple[list[float], np.ndarray]:
    """The losses of so many steps in one process, and the table after them."""
    shards = [tf.Variable(part) for part in np.array_split(table(), count)]
    states = [tf.Variable(tf.fill(shard.shape, 0.1)) for shard in shards]
    step = tf.function(adagrad_step(shards, states, tf.Variable(1.0), "div"), autograph=False)
    losses = [float(step(*batch(number))) for number in range(steps)]
    return losses, np.concatenate([shard.numpy() for shard in shards])
