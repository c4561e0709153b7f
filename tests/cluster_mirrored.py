"""A worker of a MultiWorkerMirroredStrategy: trains the model, prints its losses and its table."""

from __future__ import annotations

import json
import os

import cluster_model as model
import numpy as np
import tensorflow as tf

STEPS = 6
RATE = 0.05


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    worker = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    with strategy.scope():
        shards = [tf.Variable(part) for part in np.array_split(model.table(), 2)]

    def step(ids: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = model.loss_of(shards, 1.0, ids, labels, "div")
        # Dense: TensorFlow 2.21 crashes when it gathers the sparse gradients of this model, with
        # tf.nn.embedding_lookup too.
        gradients = [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, shards)]

        def apply(strategy: tf.distribute.Strategy, gradients: list[tf.Tensor]) -> None:
            pairs = list(zip(gradients, shards, strict=True))
            sums = strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, pairs)
            for shard, gradient in zip(shards, sums, strict=True):
                strategy.extended.update(shard, subtract, args=(RATE * gradient,))

        tf.distribute.get_replica_context().merge_call(apply, args=(gradients,))
        return loss

    def subtract(shard: tf.Variable, change: tf.Tensor) -> None:
        shard.assign_sub(change)

    @tf.function(autograph=False)
    def train(ids: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        losses = strategy.run(step, args=(ids, labels))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, None)

    losses = []
    half = model.BATCH // 2
    for number in range(STEPS):
        mine = [tensor[worker * half : (worker + 1) * half] for tensor in model.batch(number)]
        losses.append(float(train(*mine)))
    table = np.concatenate([shard.numpy() for shard in shards])
    print(json.dumps({"losses": losses, "table": table.tolist()}), flush=True)


if __name__ == "__main__":
    main()
