"""Trains a small language model on a sharded embedding table, with the built-in ops and with ours.

Run it with `make demo`. It has three parts, and exits with 1 if any of them finds a wrong result:

1. The same model, from the same seed, is trained once with `tf.gather_nd` and `tf.dynamic_stitch`
   and once with `tf_stitch_gather.gather_nd` and `tf_stitch_gather.dynamic_stitch`. The losses have
   to agree within float rounding; the time a step is shown for both.
2. A row that is looked up twice, under the optimizers of Keras: where the gradient of the built-in
   op lists the row twice, they take a wrong step.
3. Each op beside the built-in way to do the same work: results compared first, then timed.

The text is real English: the language reference that `help()` shows, which ships with Python's
standard library as `pydoc_data.topics`. Nothing is downloaded.

The model is the vector log-bilinear language model of Mnih and Kavukcuoglu (2013): the predicted
word vector is a position-weighted sum of the vectors of the words before, and a word's score is its
dot product with that, added to the logarithm of the word's own frequency. It learns by sampled
softmax. Both of its tables are split over four shards by `id % 4`, so that each lookup partitions
the ids, gathers from every shard, and stitches the rows back into order.

The comparison is of the CPU kernels; a GPU, if there is one, is left alone.
"""

from __future__ import annotations

import argparse
import os
import pydoc_data.topics
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

# TensorFlow reads this when it is imported: without it, its start-up notes mix with the tables.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
import tf_stitch_gather
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

NUM_SHARDS = 4
DIM = 128
CONTEXT = 8
BATCH_SIZE = 4096
NUM_SAMPLED = 128
LEARNING_RATE = 0.004
HELD_OUT = 0.1

# The first steps trace the function and warm the caches; they are trained but not timed.
WARM_UP_STEPS = 5
# Merging repeated rows adds the same float32 numbers in another order, and Adam carries that on.
LOSS_TOLERANCE = 1e-5
SUM_TOLERANCE = 1e-5


@dataclass(frozen=True)
class LookupOps:
    """The two ops a sharded lookup is made of; the training runs differ in nothing else."""

    name: str
    gather_nd: Callable[..., tf.Tensor]
    dynamic_stitch: Callable[..., tf.Tensor]


BUILT_IN = LookupOps("built-in", tf.gather_nd, tf.dynamic_stitch)
OURS = LookupOps("ours", tf_stitch_gather.gather_nd, tf_stitch_gather.dynamic_stitch)


# ----------------------------------------------------------------------------------------- the text


@dataclass(frozen=True)
class Corpus:
    """Text as word ids: windows of `CONTEXT` words, each with the word that follows it."""

    vocabulary: list[str]
    unigram: np.ndarray  # [vocabulary size], the probability of each word in the training part
    contexts: np.ndarray  # [windows, CONTEXT] int32, training part
    targets: np.ndarray  # [windows] int32
    held_out_contexts: np.ndarray
    held_out_targets: np.ndarray


def tokenize(text: str) -> list[str]:
    """Splits text into lower-case words and the punctuation of a sentence."""
    return re.findall(r"[a-z]+(?:['\u2019][a-z]+)?|[.,;:?!]", text.lower())


def load_corpus() -> Corpus:
    """Reads the text, keeps the words that occur twice or more, and holds out its end."""
    topics = pydoc_data.topics.topics
    words = tokenize("\n".join(topics[name] for name in sorted(topics)))
    num_train = int(len(words) * (1 - HELD_OUT))
    counts = Counter(words[:num_train])
    vocabulary = ["<rare>"] + [word for word, count in counts.most_common() if count > 1]
    known = {word: i for i, word in enumerate(vocabulary)}
    ids = np.array([known.get(word, 0) for word in words], np.int32)
    windows = np.lib.stride_tricks.sliding_window_view(ids, CONTEXT + 1)
    train, held_out = windows[: num_train - CONTEXT], windows[num_train:]
    unigram = np.bincount(ids[:num_train], minlength=len(vocabulary)) / num_train
    return Corpus(
        vocabulary=vocabulary,
        unigram=unigram,
        contexts=train[:, :-1],
        targets=train[:, -1],
        held_out_contexts=held_out[:, :-1],
        held_out_targets=held_out[:, -1],
    )


# ---------------------------------------------------------------------------------------- the model


class ShardedTable(tf.Module):
    """An embedding table whose row `i` is row `i // NUM_SHARDS` of shard `i % NUM_SHARDS`."""

    def __init__(self, values: tf.Tensor, ops: LookupOps, name: str) -> None:
        super().__init__(name=name)
        self._ops = ops
        self.shards = [
            tf.Variable(values[shard::NUM_SHARDS], name=f"shard_{shard}")
            for shard in range(NUM_SHARDS)
        ]

    def lookup(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns the rows of `ids`, of shape `ids.shape + [DIM]`."""
        flat = tf.reshape(ids, [-1])
        owner = flat % NUM_SHARDS
        places = tf.dynamic_partition(tf.range(tf.size(flat)), owner, NUM_SHARDS)
        rows = tf.dynamic_partition(flat // NUM_SHARDS, owner, NUM_SHARDS)
        parts = [
            self._ops.gather_nd(shard, row[:, tf.newaxis])
            for shard, row in zip(self.shards, rows, strict=True)
        ]
        return tf.reshape(self._ops.dynamic_stitch(places, parts), [*ids.shape, DIM])

    def dense(self) -> np.ndarray:
        """Returns the whole table in the order of the ids."""
        table = np.empty((sum(int(s.shape[0]) for s in self.shards), DIM), np.float32)
        for shard, values in enumerate(self.shards):
            table[shard::NUM_SHARDS] = values.numpy()
        return table


class LanguageModel(tf.Module):
    """Predicts a word from the `CONTEXT` words before it."""

    def __init__(self, vocabulary_size: int, ops: LookupOps, seed: int) -> None:
        super().__init__(name="language_model")
        shape = [vocabulary_size, DIM]
        read = tf.random.stateless_normal(shape, seed=[seed, 0], stddev=0.1)
        predict = tf.random.stateless_normal(shape, seed=[seed, 1], stddev=0.1)
        self.read = ShardedTable(read, ops, "read")
        self.predict = ShardedTable(predict, ops, "predict")
        self.position = tf.Variable(tf.fill([CONTEXT, DIM], 1.0 / CONTEXT), name="position")
        # Keras' Adam would take wrong steps on the built-in op's gradients (see `repeated_rows`).
        # This one sums the gradients of a repeated row before it uses them.
        self._optimizer = tf.compat.v1.train.AdamOptimizer(LEARNING_RATE)

    @tf.function
    def train_step(self, contexts: tf.Tensor, targets: tf.Tensor, sampled: tf.Tensor) -> tf.Tensor:
        """Takes one step of Adam and returns the loss before it.

        Args:
          contexts: int32 `[batch, CONTEXT]`.
          targets: int32 `[batch]`, the words that follow.
          sampled: int32 `[samples]`, words drawn by their frequency. Drawn so, the correction that
            sampled softmax makes to each score is the frequency term of the score itself, and what
            remains are the dot products.
        """
        with tf.GradientTape() as tape:
            predicted = tf.reduce_sum(self.read.lookup(contexts) * self.position, axis=1)
            vectors = self.predict.lookup(tf.concat([targets, sampled], axis=0))
            batch = targets.shape[0]
            of_target = tf.reduce_sum(predicted * vectors[:batch], axis=1, keepdims=True)
            of_sampled = tf.matmul(predicted, vectors[batch:], transpose_b=True)
            is_target = targets[:, tf.newaxis] == sampled[tf.newaxis, :]
            of_sampled = tf.where(is_target, -1e9, of_sampled)
            scores = tf.concat([of_target, of_sampled], axis=1)
            loss = tf.reduce_mean(tf.reduce_logsumexp(scores, axis=1) - of_target[:, 0])
        variables = self.trainable_variables
        gradients = tape.gradient(loss, variables)
        self._optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    def log_probabilities(self, contexts: np.ndarray, unigram: np.ndarray) -> np.ndarray:
        """Returns the log-probability of every word after each context, `[batch, words]`."""
        read, predict = self.read.dense(), self.predict.dense()
        predicted = (read[contexts] * self.position.numpy()).sum(axis=1)
        scores = predicted @ predict.T + np.log(unigram)
        return scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)


def perplexity(log_probabilities: np.ndarray, targets: np.ndarray) -> float:
    """Returns how many equally likely words the model is torn between, on average."""
    return float(np.exp(-np.mean(np.take_along_axis(log_probabilities, targets[:, None], axis=1))))


# ------------------------------------------------------------------------- 1. train the model twice


@dataclass
class Run:
    """One training run: the model, and what it did at each step."""

    model: LanguageModel
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def step(self, batch: Sequence[tf.Tensor]) -> None:
        """Trains on one batch and notes the loss and the time."""
        start = time.perf_counter()
        loss = float(self.model.train_step(*batch))
        self.seconds.append(time.perf_counter() - start)
        self.losses.append(loss)


def train(console: Console, steps: int, seed: int) -> list[str]:
    """Trains with the built-in ops and with ours; returns what went wrong."""
    corpus = load_corpus()
    size = len(corpus.vocabulary)
    console.print(
        f"Text: {len(corpus.targets) + len(corpus.held_out_targets):,} words of Python's language "
        f"reference, {size:,} different (pydoc_data.topics).\n"
        f"Model: tables of {DIM} numbers a word, split over {NUM_SHARDS} shards; "
        f"{BATCH_SIZE * (CONTEXT + 1) + NUM_SAMPLED:,} lookups a step.",
        highlight=False,
    )
    built_in = Run(LanguageModel(size, BUILT_IN, seed))
    ours = Run(LanguageModel(size, OURS, seed))
    rng = np.random.default_rng(seed)
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[a]:.4f} built-in, {task.fields[b]:.4f} ours"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=steps, a=float("nan"), b=float("nan"))
        for step in range(steps):
            picked = rng.integers(len(corpus.targets), size=BATCH_SIZE)
            sampled = rng.choice(size, NUM_SAMPLED, p=corpus.unigram)
            batch = (
                tf.constant(corpus.contexts[picked]),
                tf.constant(corpus.targets[picked]),
                tf.constant(sampled, tf.int32),
            )
            # The two runs go step by step, in turn, so that both meet the same noise.
            for run in (built_in, ours) if step % 2 else (ours, built_in):
                run.step(batch)
            progress.update(task, advance=1, a=built_in.losses[-1], b=ours.losses[-1])

    table = Table(title="1. One model, trained twice from the same seed", title_justify="left")
    for heading in ("step", "loss, built-in", "loss, ours", "difference"):
        table.add_column(heading, justify="right")
    for step in np.unique(np.linspace(0, steps - 1, 9).astype(int)):
        a, b = built_in.losses[step], ours.losses[step]
        table.add_row(str(step + 1), f"{a:.6f}", f"{b:.6f}", f"{b - a:+.1e}")
    console.print(table)

    def held_out(run: Run) -> float:
        guesses = run.model.log_probabilities(corpus.held_out_contexts, corpus.unigram)
        return perplexity(guesses, corpus.held_out_targets)

    def median_ms(run: Run) -> float:
        return 1e3 * statistics.median(run.seconds[WARM_UP_STEPS:])

    timed = zip(built_in.seconds[WARM_UP_STEPS:], ours.seconds[WARM_UP_STEPS:], strict=True)
    speed_up = statistics.median(a / b for a, b in timed)
    table = Table()
    for heading in ("", "built-in", "ours"):
        table.add_column(heading, justify="right" if heading else "left")
    perplexities = held_out(built_in), held_out(ours)
    table.add_row("perplexity on held-out text", *(f"{value:.2f}" for value in perplexities))
    table.add_row(
        "time a step, median", f"{median_ms(built_in):.1f} ms", f"{median_ms(ours):.1f} ms"
    )
    table.add_row("speed-up of the whole step, median", "", f"{speed_up:.2f} x")
    console.print(table)
    by_frequency = np.broadcast_to(np.log(corpus.unigram), (len(corpus.held_out_targets), size))
    console.print(
        f"Before training (words guessed by frequency alone) the perplexity is "
        f"{perplexity(by_frequency, corpus.held_out_targets):.2f}.\n",
        highlight=False,
    )
    failures = []
    gap = max(
        abs(a - b) / max(abs(a), 1.0) for a, b in zip(built_in.losses, ours.losses, strict=True)
    )
    if not gap <= LOSS_TOLERANCE:  # Also true when a loss is not a number.
        failures.append(f"the losses are {gap:.1e} apart; float rounding explains {LOSS_TOLERANCE}")
    if not ours.losses[-1] < ours.losses[0]:
        failures.append(f"the loss did not fall: {ours.losses[0]} to {ours.losses[-1]}")
    return failures


# ------------------------------------------------------------ 2. repeated rows and Keras optimizers


def repeated_rows(console: Console) -> list[str]:
    """Looks one row up twice and takes one step with each optimizer; returns what went wrong."""

    def value_after_step(optimizer: type[keras.Optimizer], ops: LookupOps | None) -> float:
        table = tf.Variable([[1.0], [1.0]])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((ops or BUILT_IN).gather_nd(table, [[0], [0]]))
        gradient = tape.gradient(loss, table)
        if ops is None:
            gradient = tf.convert_to_tensor(gradient)
        optimizer(learning_rate=1.0).apply([gradient], [table])
        return float(table[0, 0])

    failures = []
    table = Table(
        title="2. A row of value 1, looked up twice, after one step in Keras",
        title_justify="left",
    )
    for heading in ("optimizer", "dense gradient (right)", "tf.gather_nd", "ours"):
        table.add_column(heading, justify="left" if heading == "optimizer" else "right")
    for name in ("SGD", "Adam", "Adagrad", "RMSprop", "Ftrl"):
        optimizer = getattr(keras.optimizers, name)
        right, theirs, mine = (value_after_step(optimizer, ops) for ops in (None, BUILT_IN, OURS))
        wrong = not np.isclose(theirs, right, atol=1e-5)
        shown = f"[red]{theirs:.3f}  wrong[/red]" if wrong else f"{theirs:.3f}"
        # `+ 0` shows a rounded -0.000 as 0.000.
        table.add_row(name, f"{round(right, 3) + 0:.3f}", shown, f"{round(mine, 3) + 0:.3f}")
        if not np.isclose(mine, right, atol=1e-5):
            failures.append(f"{name} moved a repeated row to {mine}, not to {right}")
    console.print(table)
    console.print(
        "The gradient of the built-in op lists the row twice, and all of these but SGD then add up "
        "the squares of the parts instead of squaring their sum. Ours lists it once, summed.\n",
        highlight=False,
    )
    return failures


# ------------------------------------------------------------------------------ 3. one op at a time


@dataclass(frozen=True)
class OpCase:
    """One op and the built-in way to do the same work."""

    op: str
    work: str
    built_in: Callable[[], Any]
    ours: Callable[[], Any]
    # How far sums may be apart, relative to the greatest; 0 for ops that only move values.
    tolerance: float = 0.0


def op_cases(seed: int) -> list[OpCase]:
    """Draws the inputs and returns what is to be compared."""
    rng = np.random.default_rng(seed)

    def floats(*shape: int) -> tf.Tensor:
        return tf.constant(rng.standard_normal(shape, np.float32))

    def integers(high: int, *shape: int) -> tf.Tensor:
        return tf.constant(rng.integers(high, size=shape, dtype=np.int32))

    raw, mine = tf.raw_ops, tf_stitch_gather.raw_ops
    num_rows, depth = 65_536, 64
    places = [tf.constant(part) for part in np.split(rng.permutation(num_rows).astype(np.int32), 4)]
    parts = [floats(num_rows // 4, depth) for _ in places]
    rows = floats(num_rows, depth)
    row_ids = integers(num_rows, num_rows, 1)
    grid, cells = floats(1000, 1000), integers(1000, 200_000, 2)
    batches, batch_ids = floats(64, 1024, 32), integers(1024, 64, 512, 1)
    few_ids = integers(4096, num_rows, 1)
    scalar_ids, scalars = integers(90_000, 100_000, 1), floats(100_000)

    def merge_by_hand() -> tuple[tf.Tensor, tf.Tensor]:
        unique, segment = tf.unique(few_ids[:, 0])
        return unique, tf.math.unsorted_segment_sum(rows, segment, tf.size(unique))

    return [
        OpCase(
            "MyDynamicStitch",
            "4 x 16,384 rows of 64",
            lambda: raw.DynamicStitch(indices=places, data=parts),
            lambda: mine.MyDynamicStitch(indices=places, data=parts),
        ),
        OpCase(
            "MyDynamicStitchGrad",
            "the same, backward",
            lambda: [tf.gather(rows, part) for part in places],
            lambda: mine.MyDynamicStitchGrad(indices=places, grad=rows),
        ),
        OpCase(
            "MyGatherNd",
            "65,536 rows of 64",
            lambda: raw.GatherNd(params=rows, indices=row_ids),
            lambda: mine.MyGatherNd(params=rows, indices=row_ids),
        ),
        OpCase(
            "MyGatherNd",
            "200,000 cells of a matrix",
            lambda: raw.GatherNd(params=grid, indices=cells),
            lambda: mine.MyGatherNd(params=grid, indices=cells),
        ),
        OpCase(
            "MyGatherNd",
            "batch_dims=1: 64 x 512 rows of 32",
            lambda: tf.gather_nd(batches, batch_ids, batch_dims=1),
            lambda: mine.MyGatherNd(params=batches, indices=batch_ids, batch_dims=1),
        ),
        OpCase(
            "MyGatherNdSparseGrad",
            "65,536 rows of 64 merged to 4,096",
            merge_by_hand,
            lambda: mine.MyGatherNdSparseGrad(indices=few_ids, grad=rows, num_rows=4096),
            SUM_TOLERANCE,
        ),
        OpCase(
            "MyScatterNd",
            "65,536 rows of 64 into 4,096",
            lambda: raw.ScatterNd(indices=few_ids, updates=rows, shape=[4096, depth]),
            lambda: mine.MyScatterNd(indices=few_ids, updates=rows, shape=[4096, depth]),
            SUM_TOLERANCE,
        ),
        OpCase(
            "MyScatterNd",
            "100,000 numbers into 90,000",
            lambda: raw.ScatterNd(indices=scalar_ids, updates=scalars, shape=[90_000]),
            lambda: mine.MyScatterNd(indices=scalar_ids, updates=scalars, shape=[90_000]),
            SUM_TOLERANCE,
        ),
    ]


def as_arrays(result: Any) -> list[np.ndarray]:
    """Returns an op's outputs in NumPy; those of a sparse gradient in the order of its rows."""
    outputs = [t.numpy() for t in result] if isinstance(result, list | tuple) else [result.numpy()]
    if isinstance(result, tuple):
        order = np.argsort(outputs[0])
        return [output[order] for output in outputs]
    return outputs


def agree(case: OpCase) -> bool:
    """Runs both sides once and compares all outputs: exactly, but for the rounding of sums."""
    theirs, mine = as_arrays(case.built_in()), as_arrays(case.ours())
    return len(theirs) == len(mine) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=0, atol=case.tolerance * np.abs(a).max())
        for a, b in zip(theirs, mine, strict=True)
    )


def seconds_of(work: Callable[[], Any]) -> float:
    """Returns the time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def op_table(console: Console, rounds: int, seed: int) -> list[str]:
    """Compares each op with the built-in, then times both in turn; returns what went wrong."""
    failures = []
    table = Table(title=f"3. Each op, median of {rounds} runs in turn", title_justify="left")
    for heading in ("op", "work", "built-in", "ours", "speed-up"):
        table.add_column(heading, justify="left" if heading in ("op", "work") else "right")
    for case in op_cases(seed):
        if not agree(case):
            failures.append(f"{case.op} ({case.work}) does not give the built-in op's result")
            continue
        times: dict[str, list[float]] = {"built-in": [], "ours": []}
        for turn in range(rounds + 1):
            sides = [("built-in", case.built_in), ("ours", case.ours)]
            for name, work in sides if turn % 2 else reversed(sides):
                times[name].append(seconds_of(work))
        theirs, mine = times["built-in"][1:], times["ours"][1:]
        table.add_row(
            case.op,
            case.work,
            f"{1e3 * statistics.median(theirs):.2f} ms",
            f"{1e3 * statistics.median(mine):.2f} ms",
            f"{statistics.median(a / b for a, b in zip(theirs, mine, strict=True)):.2f} x",
        )
    console.print(table)
    console.print(
        "Where there is no built-in op, what stands for it: for MyDynamicStitchGrad, the tf.gather "
        "per list that is TensorFlow's gradient; for MyGatherNdSparseGrad, tf.unique and "
        "tf.math.unsorted_segment_sum.\n",
        highlight=False,
    )
    return failures


# --------------------------------------------------------------------------------------------- main


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads and checks the options."""
    parser = argparse.ArgumentParser(
        description="Trains a small language model with the built-in ops and with tf_stitch_gather."
    )
    parser.add_argument("--steps", type=int, default=120, help="training steps (default: 120)")
    parser.add_argument("--rounds", type=int, default=15, help="timed runs an op (default: 15)")
    parser.add_argument("--seed", type=int, default=0, help="seed of every draw (default: 0)")
    options = parser.parse_args(arguments)
    if options.steps < 2 * WARM_UP_STEPS:
        parser.error(f"--steps must be at least {2 * WARM_UP_STEPS}, got {options.steps}")
    if options.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {options.rounds}")
    if options.seed < 0:
        parser.error(f"--seed must not be negative, got {options.seed}")
    return options


def conclude(console: Console, failures: Sequence[str], start: float) -> int:
    """Prints which checks failed, and the seconds since `start`; returns the exit status."""
    for failure in failures:
        console.print(f"[bold red]FAILED[/bold red]: {failure}", highlight=False)
    verdict = f"{len(failures)} of the checks failed" if failures else "Every check passed"
    console.print(f"{verdict}, in {time.perf_counter() - start:.0f} s.", highlight=False)
    return 1 if failures else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the three parts; returns the exit status."""
    options = parse_arguments(arguments)
    console = Console()
    tf.config.set_visible_devices([], "GPU")
    start = time.perf_counter()
    console.print(
        f"tf_stitch_gather {tf_stitch_gather.__version__} on TensorFlow {tf.__version__}, "
        f"{os.cpu_count()} cores\n",
        highlight=False,
    )
    failures = train(console, options.steps, options.seed)
    failures += repeated_rows(console)
    failures += op_table(console, options.rounds, options.seed)
    return conclude(console, failures, start)


if __name__ == "__main__":
    sys.exit(main())
