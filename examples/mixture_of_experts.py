"""Trains a mixture of experts on handwritten digits, with the built-in ops and with ours.

Run it with `make models`. It exits with 1 if the two trainings do not agree or do not learn.

The model is the sparsely gated layer of Shazeer et al. (2017), as the Switch Transformer has it: a
gate scores the experts for each image, the two best are asked, and their answers are added with the
gate's weights. Only the two work. So the rows of a batch are

1. partitioned by expert, with `tf.dynamic_partition`,
2. fetched in the order of the experts, with `gather_nd`; each row twice, so its gradient is a sum,
3. put back in the order of the batch, with `dynamic_stitch`.

The data are the 1,797 images of 8 x 8 pixels that scikit-learn ships (`load_digits`). Nothing is
downloaded.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from demo import BUILT_IN, OURS, LookupOps, conclude  # First, as it sets what TensorFlow reads.

# isort: split
import keras
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

NUM_EXPERTS = 8
EXPERTS_PER_IMAGE = 2
DIM = 96
HIDDEN = 192
BATCH_SIZE = 256
LEARNING_RATE = 0.003
# Keeps the gate from sending everything to the expert that was best at first.
BALANCE = 0.01

WARM_UP_STEPS = 5
# The losses are the same bits: the ops move rows, and add no more than two numbers at a time, which
# gives the same in either order. The rest is room for a matmul that rounds otherwise.
LOSS_TOLERANCE = 1e-5


class MixtureOfExperts(keras.layers.Layer):
    """Sends each row of a batch to `EXPERTS_PER_IMAGE` of `NUM_EXPERTS` small networks."""

    def __init__(self, ops: LookupOps) -> None:
        super().__init__()
        self.ops = ops
        self.gate = keras.layers.Dense(NUM_EXPERTS, use_bias=False, activation="softmax")
        self.experts = [
            keras.Sequential([keras.layers.Dense(HIDDEN, "relu"), keras.layers.Dense(DIM)])
            for _ in range(NUM_EXPERTS)
        ]

    def call(self, x: tf.Tensor, images: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the output, the experts of each row `[rows, EXPERTS_PER_IMAGE]`, and the balance.

        The gate sees the images, the experts see `x`. The balance is 1 where the experts share the
        rows evenly and grows where they do not.
        """
        probabilities = self.gate(images)
        weights, chosen = tf.math.top_k(probabilities, EXPERTS_PER_IMAGE)
        weights /= tf.reduce_sum(weights, axis=1, keepdims=True)
        owner = tf.reshape(chosen, [-1])
        places = tf.dynamic_partition(tf.range(tf.size(owner)), owner, NUM_EXPERTS)
        rows = tf.concat(places, axis=0) // EXPERTS_PER_IMAGE
        questions = tf.split(
            self.ops.gather_nd(x, rows[:, tf.newaxis]), [tf.size(place) for place in places]
        )
        answers = [e(question) for e, question in zip(self.experts, questions, strict=True)]
        merged = tf.reshape(self.ops.dynamic_stitch(places, answers), [-1, EXPERTS_PER_IMAGE, DIM])
        share = tf.reduce_mean(tf.one_hot(owner, NUM_EXPERTS), axis=0)
        balance = NUM_EXPERTS * tf.reduce_sum(share * tf.reduce_mean(probabilities, axis=0))
        return tf.reduce_sum(merged * weights[..., tf.newaxis], axis=1), chosen, balance


class Classifier(tf.Module):
    """Tells the digit of an image."""

    def __init__(self, ops: LookupOps, seed: int, steps: int) -> None:
        super().__init__()
        keras.utils.set_random_seed(seed)
        self.read = keras.layers.Dense(DIM, "relu")
        self.mixture = MixtureOfExperts(ops)
        self.decide = keras.layers.Dense(10)
        self.scores(tf.zeros([1, 64]))  # Makes the weights, by the seed.
        self.weights = [
            weight
            for layer in (self.read, self.mixture, self.decide)
            for weight in layer.trainable_weights
        ]
        self.optimizer = keras.optimizers.Adam(
            keras.optimizers.schedules.CosineDecay(LEARNING_RATE, steps)
        )
        self.optimizer.build(self.weights)

    def scores(self, images: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        hidden = self.read(images)
        mixed, chosen, balance = self.mixture(hidden, images)
        return self.decide(hidden + mixed), chosen, balance

    @tf.function
    def train_step(self, images: tf.Tensor, digits: tf.Tensor) -> tf.Tensor:
        """Takes one step of Adam and returns the loss before it."""
        with tf.GradientTape() as tape:
            scores, _, balance = self.scores(images)
            errors = tf.nn.sparse_softmax_cross_entropy_with_logits(digits, scores)
            loss = tf.reduce_mean(errors) + BALANCE * balance
        self.optimizer.apply(tape.gradient(loss, self.weights), self.weights)
        return loss


@dataclass
class Run:
    """One training run: the model, and what it did at each step."""

    name: str
    model: Classifier
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)

    def step(self, images: tf.Tensor, digits: tf.Tensor) -> None:
        start = time.perf_counter()
        loss = float(self.model.train_step(images, digits))
        self.seconds.append(time.perf_counter() - start)
        self.losses.append(loss)


@dataclass(frozen=True)
class Data:
    train_images: np.ndarray
    train_digits: np.ndarray
    test_images: np.ndarray
    test_digits: np.ndarray


def load_data(seed: int) -> Data:
    """Splits the images, their pixels from 0 to 1, into four parts to train on and one to test."""
    images, digits = load_digits(return_X_y=True)
    images, digits = (images / 16).astype(np.float32), digits.astype(np.int32)
    train, test, train_digits, test_digits = train_test_split(
        images, digits, test_size=0.2, random_state=seed, stratify=digits
    )
    return Data(train, train_digits, test, test_digits)


def train(data: Data, epochs: int, seed: int) -> tuple[Run, Run]:
    """Trains the model with either library, batch by batch in turn, on the same batches."""
    batches = len(data.train_digits) // BATCH_SIZE
    runs = [Run(ops.name, Classifier(ops, seed, epochs * batches)) for ops in (BUILT_IN, OURS)]
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        order = rng.permutation(len(data.train_digits))[: batches * BATCH_SIZE]
        for number, picked in enumerate(np.split(order, batches)):
            batch = tf.constant(data.train_images[picked]), tf.constant(data.train_digits[picked])
            for run in runs if number % 2 else reversed(runs):
                run.step(*batch)
        for run in runs:
            scores, *_ = run.model.scores(tf.constant(data.test_images))
            right = np.argmax(scores, axis=1) == data.test_digits
            run.accuracies.append(float(np.mean(right)))
    return runs[0], runs[1]


def draw(run: Run, data: Data, path: Path) -> np.ndarray:
    """Draws what the experts have learned; returns each expert's share of each digit."""
    _, chosen, _ = run.model.scores(tf.constant(data.test_images))
    first = chosen.numpy()[:, 0]
    share = np.array(
        [
            [np.mean(first[data.test_digits == digit] == expert) for digit in range(10)]
            for expert in range(NUM_EXPERTS)
        ]
    )
    figure = plt.figure(figsize=(9, 4), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=[5, 1, 4])

    axes = left.subplots()
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (expert, digit), part in np.ndenumerate(share):
        if part >= 0.05:
            colour = "white" if part > 0.6 else "black"
            label = f"{100 * part:.0f}"
            axes.text(digit, expert, label, ha="center", va="center", fontsize=7, color=colour)
    axes.set(
        title="test images of a digit that an\nexpert is asked first about, in %",
        xlabel="digit",
        ylabel="expert",
        xticks=range(10),
        yticks=range(NUM_EXPERTS),
    )

    middle.suptitle("mean", fontsize=9)
    for expert, axes in enumerate(middle.subplots(NUM_EXPERTS, 1)):
        mine = data.test_images[first == expert]
        axes.imshow((mine.mean(axis=0) if len(mine) else np.zeros(64)).reshape(8, 8), cmap="gray_r")
        axes.set(xticks=[], yticks=[])

    axes = right.subplots()
    steps = np.arange(1, len(run.losses) + 1)
    axes.semilogy(steps, run.losses, color="tab:blue")
    axes.set(xlabel="step", title="loss (blue), error on\ntest images (orange)")
    ends = np.linspace(0, len(steps), len(run.accuracies) + 1)[1:]
    errors = 1 - np.array(run.accuracies)
    axes.semilogy(ends, np.where(errors > 0, errors, np.nan), color="tab:orange")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    plt.close(figure)
    return share


def report(console: Console, built_in: Run, ours: Run) -> list[str]:
    """Prints both runs side by side; returns what went wrong."""
    table = Table(title="One model, trained twice from the same seed", title_justify="left")
    for heading in ("step", "loss, built-in", "loss, ours", "difference"):
        table.add_column(heading, justify="right")
    for step in np.unique(np.linspace(0, len(ours.losses) - 1, 7).astype(int)):
        a, b = built_in.losses[step], ours.losses[step]
        table.add_row(str(step + 1), f"{a:.6f}", f"{b:.6f}", f"{b - a:+.1e}")
    console.print(table)

    def median_ms(run: Run) -> str:
        return f"{1e3 * statistics.median(run.seconds[WARM_UP_STEPS:]):.2f} ms"

    timed = zip(built_in.seconds[WARM_UP_STEPS:], ours.seconds[WARM_UP_STEPS:], strict=True)
    table = Table()
    for heading in ("", "built-in", "ours"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_row(
        "test images told right", *(f"{100 * r.accuracies[-1]:.1f} %" for r in (built_in, ours))
    )
    table.add_row("time a step, median", median_ms(built_in), median_ms(ours))
    table.add_row(
        "speed-up of the whole step, median",
        "",
        f"{statistics.median(a / b for a, b in timed):.2f} x",
    )
    console.print(table)

    failures = []
    gap = max(abs(a - b) for a, b in zip(built_in.losses, ours.losses, strict=True))
    if not gap <= LOSS_TOLERANCE:  # Also true when a loss is not a number.
        failures.append(f"the losses are {gap:.1e} apart, more than {LOSS_TOLERANCE}")
    if not ours.losses[-1] < 0.5 * ours.losses[0]:
        failures.append(f"the loss did not halve: {ours.losses[0]} to {ours.losses[-1]}")
    return failures


def main(arguments: Sequence[str] | None = None) -> int:
    """Trains, compares and draws; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=80, help="over the data (default: 80)")
    parser.add_argument("--seed", type=int, default=0, help="seed of every draw (default: 0)")
    parser.add_argument(
        "--picture", type=Path, default=Path("build/models/mixture_of_experts.png"), metavar="PATH"
    )
    options = parser.parse_args(arguments)
    if options.epochs < 2:
        parser.error(f"--epochs must be at least 2, got {options.epochs}")
    console = Console()
    tf.config.set_visible_devices([], "GPU")
    start = time.perf_counter()
    data = load_data(options.seed)
    console.print(
        f"{len(data.train_digits):,} images of handwritten digits to train on, "
        f"{len(data.test_digits)} to test. {NUM_EXPERTS} experts, of which "
        f"{EXPERTS_PER_IMAGE} see an image.\n",
        highlight=False,
    )
    built_in, ours = train(data, options.epochs, options.seed)
    failures = report(console, built_in, ours)
    share = draw(ours, data, options.picture)
    console.print(
        f"The expert that is asked first most often for a digit sees "
        f"{100 * share.max(axis=0).mean():.0f} % of it on average; by chance it would be near "
        f"{100 / NUM_EXPERTS:.0f} %.\nPicture: {options.picture}",
        highlight=False,
    )
    return conclude(console, failures, start)


if __name__ == "__main__":
    sys.exit(main())
