"""Trains a small language model and searches its best sentences, with the built-in ops and ours.

Run it with `make models`. It exits with 1 if the two searches do not find the same sentences, or
if a score is not what the model gives to the sentence.

The model is a recurrent one (GRU) over words, trained on the prose of the language reference that
`help()` shows, which ships with Python's standard library as `pydoc_data.topics`. Nothing is
downloaded.

Beam search keeps, for each prompt of a batch, the `width` best beginnings of a sentence. In each
step it goes on with every word of the vocabulary and keeps the best again, so that the states of
the model have to follow: each beam takes over the state of the beam it comes from. This is
`gather_nd(states, parents, batch_dims=1)`, and so is the way back from the last words to the first.
"""

from __future__ import annotations

import argparse
import pydoc_data.topics
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

# First, as it sets what TensorFlow reads.
from demo import BUILT_IN, OURS, LookupOps, conclude, tokenize

# isort: split
import keras
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
import tf_stitch_gather as sg
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

DIM = 96
UNITS = 160
WINDOW = 16
BATCH_SIZE = 32
LEARNING_RATE = 0.01

NUM_PROMPTS = 64
PROMPT = 3
LENGTH = 12
WIDTHS = (1, 2, 4, 8)
# Of the score of a sentence of n words, n ** this is taken out, so that long ones can win too.
LENGTH_PENALTY = 0.7
IMPOSSIBLE = -1e9

# What quoted code becomes while the text is read; it is no word of the text.
CODE = "quotedcode"

# The search adds the model's logarithms in another order than the check does.
SCORE_TOLERANCE = 1e-3


# ----------------------------------------------------------------------------------------- the text


@dataclass(frozen=True)
class Corpus:
    """Text as word ids. Word 0 stands for every word that occurs once, and for quoted code."""

    vocabulary: list[str]
    train: np.ndarray
    held_out: np.ndarray

    @property
    def end(self) -> int:
        """The word that ends a sentence."""
        return self.vocabulary.index(".")

    def text(self, ids: Sequence[int]) -> str:
        return " ".join(self.vocabulary[i] for i in ids)

    def prompts(self) -> np.ndarray:
        """The first words of held-out sentences, without rare words, [NUM_PROMPTS, PROMPT]."""
        windows = np.lib.stride_tricks.sliding_window_view(self.held_out, PROMPT + 1)
        begins = (windows[:, 0] == self.end) & (windows[:, 1:] != self.end).all(axis=1)
        begins &= (windows != 0).all(axis=1)
        return np.unique(windows[begins, 1:], axis=0)[:NUM_PROMPTS]


def prose(text: str) -> list[str]:
    """The paragraphs that are sentences, each once: no headings, grammar or examples of code."""
    text = re.sub(r'"[^"\n]*[^"\n\w][^"\n]*"', CODE, text)
    paragraphs = [paragraph.strip() for paragraph in re.split(r"\n\s*\n", text)]
    is_prose = re.compile(r"(?!.*(::=|>>>|\n {8}))[A-Z].*\.", re.DOTALL)
    return list(dict.fromkeys(filter(is_prose.fullmatch, paragraphs)))


def load_corpus() -> Corpus:
    """Reads the text and holds out every tenth paragraph."""
    topics = pydoc_data.topics.topics
    paragraphs = prose("\n\n".join(topics[name] for name in sorted(topics)))
    held_out = [word for text in paragraphs[::10] for word in tokenize(text)]
    del paragraphs[::10]
    train = [word for text in paragraphs for word in tokenize(text)]
    counts = Counter(word for word in train if word != CODE)
    vocabulary = ["<rare>"] + [word for word, count in counts.most_common() if count > 1]
    known = {word: i for i, word in enumerate(vocabulary)}
    ids = [np.array([known.get(word, 0) for word in part], np.int32) for part in (train, held_out)]
    return Corpus(vocabulary, *ids)


# ---------------------------------------------------------------------------------------- the model


class LanguageModel:
    """Predicts a word from those before it: whole windows to train, a word at a time to search."""

    def __init__(self, vocabulary_size: int, seed: int) -> None:
        keras.utils.set_random_seed(seed)
        self.embed = keras.layers.Embedding(vocabulary_size, DIM)
        self.recur = keras.layers.GRU(UNITS, return_sequences=True)
        self.predict = keras.layers.Dense(vocabulary_size)
        self.windows = keras.Sequential(
            [keras.Input((None,), dtype="int32"), self.embed, self.recur, self.predict]
        )
        # A word that comes twice in a batch has its gradient added up before Adam squares it.
        self.windows.compile(
            sg.keras.UniqueRows(keras.optimizers.Adam(LEARNING_RATE)),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )

    def train(self, ids: np.ndarray, steps: int, seed: int, console: Console) -> None:
        """Trains on windows drawn at random."""
        rng = np.random.default_rng(seed)
        begins = rng.integers(len(ids) - WINDOW, size=steps * BATCH_SIZE)
        windows = np.lib.stride_tricks.sliding_window_view(ids, WINDOW + 1)[begins]
        columns = (
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]:.3f}"),
        )
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("", total=steps, loss=float("nan"))

            def advance(_: int, logs: dict[str, float]) -> None:
                progress.update(task, advance=1, loss=logs["loss"])

            self.windows.fit(
                windows[:, :-1],
                windows[:, 1:],
                batch_size=BATCH_SIZE,
                shuffle=False,
                verbose=0,
                callbacks=[keras.callbacks.LambdaCallback(on_train_batch_end=advance)],
            )

    def perplexity(self, ids: np.ndarray) -> float:
        """How many equally likely words the model is torn between, on average."""
        windows = np.lib.stride_tricks.sliding_window_view(ids, WINDOW + 1)[::WINDOW]
        return float(np.exp(self.windows.evaluate(windows[:, :-1], windows[:, 1:], verbose=0)))

    def start(self, prompts: tf.Tensor) -> tf.Tensor:
        """The state after the prompts, [prompts, UNITS]."""
        return self.recur(self.embed(prompts))[:, -1]

    def step(self, words: tf.Tensor, states: tf.Tensor) -> tf.Tensor:
        """The states `[prompts, width, UNITS]` after one word more, `[prompts, width]`."""
        flat = tf.reshape(states, [-1, UNITS])
        _, (after,) = self.recur.cell(self.embed(tf.reshape(words, [-1])), [flat])
        return tf.reshape(after, tf.shape(states))

    def log_probabilities(self, states: tf.Tensor) -> tf.Tensor:
        """Of each word as the next one; of the rare ones, none."""
        scores = self.predict(states)
        rare = tf.one_hot(0, scores.shape[-1], on_value=IMPOSSIBLE, off_value=0.0)
        return tf.nn.log_softmax(scores + rare)


# --------------------------------------------------------------------------------------- the search


class Beams(NamedTuple):
    """What a search found, best first, and how it came there."""

    sentences: tf.Tensor  # [prompts, width, LENGTH]; after its end, a sentence holds ends
    scores: tf.Tensor  # [prompts, width], log-probabilities
    words: tf.Tensor  # [LENGTH, prompts, width], the words that were kept in each step
    parents: tf.Tensor  # [LENGTH, prompts, width], the beams of the step before they went on from


class BeamSearch:
    """Searches with one library's `gather_nd`."""

    def __init__(self, model: LanguageModel, ops: LookupOps, width: int, end: int) -> None:
        self.model, self.ops, self.width, self.end = model, ops, width, end

    def _of(self, values: tf.Tensor, beams: tf.Tensor) -> tf.Tensor:
        """For each prompt, the values of these of its beams."""
        return self.ops.gather_nd(values, beams[..., tf.newaxis], batch_dims=1)

    def _next(self, last: tf.Tensor, states: tf.Tensor) -> tf.Tensor:
        """The log-probabilities of the next word, which is not the last one again."""
        log_probabilities = self.model.log_probabilities(states)
        size = log_probabilities.shape[-1]
        return log_probabilities + tf.one_hot(last, size, on_value=IMPOSSIBLE, off_value=0.0)

    @tf.function
    def __call__(self, prompts: tf.Tensor) -> Beams:
        states = self.model.start(prompts)
        log_probabilities = self._next(prompts[:, -1], states)
        size = log_probabilities.shape[-1]
        scores, words = tf.math.top_k(log_probabilities, self.width)
        states = tf.repeat(states[:, tf.newaxis], self.width, axis=1)
        finished = words == self.end
        only_end = tf.one_hot(self.end, size, on_value=0.0, off_value=IMPOSSIBLE)
        all_words = tf.TensorArray(tf.int32, LENGTH).write(0, words)
        all_parents = tf.TensorArray(tf.int32, LENGTH).write(0, tf.zeros_like(words))
        for step in tf.range(1, LENGTH):
            states = self.model.step(words, states)
            of_next = tf.where(finished[..., tf.newaxis], only_end, self._next(words, states))
            totals = scores[..., tf.newaxis] + of_next
            scores, places = tf.math.top_k(
                tf.reshape(totals, [prompts.shape[0], self.width * size]), self.width
            )
            parents, words = places // size, places % size
            states = self._of(states, parents)
            finished = self._of(finished, parents) | (words == self.end)
            all_words = all_words.write(step, words)
            all_parents = all_parents.write(step, parents)
        words, parents = all_words.stack(), all_parents.stack()
        return Beams(self._sentences(words, parents), scores, words, parents)

    def _sentences(self, words: tf.Tensor, parents: tf.Tensor) -> tf.Tensor:
        """Follows each beam back from its last word to its first."""
        beams = tf.zeros_like(parents[0]) + tf.range(self.width)
        backwards = []
        for step in reversed(range(LENGTH)):
            backwards.append(self._of(words[step], beams))
            beams = self._of(parents[step], beams)
        return tf.stack(backwards[::-1], axis=-1)


def lengths(sentences: np.ndarray, end: int) -> np.ndarray:
    """The words of each sentence, its end included."""
    ends = sentences == end
    return np.where(ends.any(axis=-1), ends.argmax(axis=-1) + 1, LENGTH)


def best_beams(beams: Beams, end: int) -> np.ndarray:
    """The beam of each prompt with the best score for its length."""
    penalty = lengths(beams.sentences.numpy(), end) ** LENGTH_PENALTY
    return np.argmax(beams.scores.numpy() / penalty, axis=1)


def worst_score_gap(model: LanguageModel, prompts: np.ndarray, beams: Beams, end: int) -> float:
    """How far a score is, at worst, from what the model gives the sentence when it reads it."""
    sentences = beams.sentences.numpy()
    width = sentences.shape[1]
    texts = np.concatenate([np.repeat(prompts[:, None], width, axis=1), sentences], axis=-1)
    texts = texts.reshape(-1, texts.shape[-1])
    states = model.recur(model.embed(texts[:, :-1]))[:, PROMPT - 1 :]
    of_words = np.take_along_axis(
        model.log_probabilities(states).numpy(), texts[:, PROMPT:, None], axis=-1
    )[..., 0]
    read = np.arange(LENGTH) < lengths(sentences, end).reshape(-1, 1)
    return float(np.abs((of_words * read).sum(axis=1) - beams.scores.numpy().ravel()).max())


# -------------------------------------------------------------------------------------- the results


@dataclass
class Outcome:
    """One width: the sentences, found by both libraries, and the time each took."""

    width: int
    beams: Beams
    built_in: list[float]
    ours: list[float]

    def best_score(self) -> float:
        return float(np.mean(self.beams.scores[:, 0]))


def compare(
    model: LanguageModel, prompts: np.ndarray, width: int, rounds: int, end: int
) -> tuple[Outcome, list[str]]:
    """Searches with both libraries in turn; returns the sentences, the times and what was wrong."""
    searches = [BeamSearch(model, ops, width, end) for ops in (BUILT_IN, OURS)]
    batch = tf.constant(prompts)
    theirs, mine = (search(batch) for search in searches)
    times: list[list[float]] = [[], []]
    for turn in range(rounds):
        for side in (0, 1) if turn % 2 else (1, 0):
            start = time.perf_counter()
            searches[side](batch).scores.numpy()
            times[side].append(time.perf_counter() - start)
    failures = [
        f"{name} of width {width} differ"
        for name, a, b in zip(Beams._fields, theirs, mine, strict=True)
        if not np.array_equal(a, b)
    ]
    gap = worst_score_gap(model, prompts, mine, end)
    if not gap <= SCORE_TOLERANCE:
        failures.append(f"a score of width {width} is {gap:.1e} from what the model gives it")
    return Outcome(width, mine, *times), failures


def draw(
    corpus: Corpus, prompts: np.ndarray, chosen: int, outcomes: list[Outcome], path: Path
) -> None:
    """Draws the beams of one prompt as a tree, and how wide a search finds how much."""
    widest = outcomes[-1]
    words, parents = (t.numpy()[:, chosen] for t in (widest.beams.words, widest.beams.parents))
    beam = int(best_beams(widest.beams, corpus.end)[chosen])
    steps = int(lengths(widest.beams.sentences.numpy()[chosen, beam], corpus.end))
    winner = [beam]
    for step in reversed(range(1, LENGTH)):
        winner.append(int(parents[step, winner[-1]]))
    winner.reverse()

    figure, (tree, scores) = plt.subplots(
        1, 2, figsize=(12, 4), width_ratios=[4, 1], layout="constrained"
    )
    for step in range(steps):
        for rank in range(widest.width):
            if step and words[step - 1, parents[step, rank]] == corpus.end:
                continue  # The sentence had ended before.
            mine = winner[step] == rank
            if step:
                tree.plot(
                    [step - 0.62, step - 0.38],
                    [parents[step, rank], rank],
                    color="tab:blue" if mine else "lightgrey",
                    linewidth=2 if mine else 1,
                )
            tree.text(
                step,
                rank,
                corpus.vocabulary[words[step, rank]],
                ha="center",
                va="center",
                fontsize=8,
                color="tab:blue" if mine else "dimgrey",
                weight="bold" if mine else "normal",
            )
    tree.set(
        title=f"the {widest.width} best beginnings after each word: "
        f"\N{LEFT DOUBLE QUOTATION MARK}{corpus.text(prompts[chosen])} \N{HORIZONTAL ELLIPSIS}"
        "\N{RIGHT DOUBLE QUOTATION MARK}",
        xlabel="step",
        ylabel="beam, best first",
        xlim=(-0.6, steps - 0.4),
        ylim=(widest.width - 0.5, -0.5),
        xticks=range(steps),
        xticklabels=range(1, steps + 1),
        yticks=[],
    )
    scores.plot([o.width for o in outcomes], [o.best_score() for o in outcomes], "o-")
    scores.set_xscale("log", base=2)
    scores.set(
        title=f"mean log-probability of\nthe best, {len(prompts)} prompts",
        xlabel="width",
        xticks=[o.width for o in outcomes],
        xticklabels=[o.width for o in outcomes],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def report(console: Console, corpus: Corpus, prompts: np.ndarray, outcomes: list[Outcome]) -> int:
    """Prints the widths and some sentences; returns the prompt whose search gained the most."""
    table = Table(title=f"Search of {len(prompts)} prompts at once", title_justify="left")
    for heading in ("width", "log-probability of the best", "built-in", "ours", "speed-up"):
        table.add_column(heading, justify="right")
    for outcome in outcomes:
        pairs = zip(outcome.built_in, outcome.ours, strict=True)
        table.add_row(
            str(outcome.width),
            f"{outcome.best_score():.3f}",
            f"{1e3 * statistics.median(outcome.built_in):.1f} ms",
            f"{1e3 * statistics.median(outcome.ours):.1f} ms",
            f"{statistics.median(a / b for a, b in pairs):.2f} x",
        )
    console.print(table)

    greedy, widest = outcomes[0].beams, outcomes[-1].beams
    best = best_beams(widest, corpus.end)
    rows = np.arange(len(prompts))
    gain = widest.scores.numpy()[rows, best] - greedy.scores.numpy()[:, 0]
    # Of sentences no shorter than the greedy one, so that a gain is not one of brevity.
    words = lengths(widest.sentences.numpy()[rows, best], corpus.end)
    long = words >= np.maximum(lengths(greedy.sentences.numpy()[:, 0], corpus.end), LENGTH // 2)
    order = np.argsort(np.where(long, -gain, np.inf))
    table = Table(title="What a wider search finds", title_justify="left")
    for heading in ("prompt", "width 1", f"width {outcomes[-1].width}"):
        table.add_column(heading)
    for prompt in order[:5]:
        found = (greedy.sentences[prompt, 0], widest.sentences[prompt, best[prompt]])
        table.add_row(
            corpus.text(prompts[prompt]),
            *(corpus.text(ids[: lengths(ids.numpy(), corpus.end)].numpy()) for ids in found),
        )
    console.print(table)
    return int(order[0])


def main(arguments: Sequence[str] | None = None) -> int:
    """Trains, searches, compares and draws; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=300, help="training steps (default: 300)")
    parser.add_argument(
        "--widths", type=int, nargs="+", default=WIDTHS, help="ascending (default: 1 2 4 8)"
    )
    parser.add_argument("--rounds", type=int, default=9, help="timed searches (default: 9)")
    parser.add_argument("--seed", type=int, default=0, help="seed of every draw (default: 0)")
    parser.add_argument(
        "--picture", type=Path, default=Path("build/models/beam_search.png"), metavar="PATH"
    )
    options = parser.parse_args(arguments)
    for name in ("steps", "rounds"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    widths = options.widths
    if sorted(set(widths)) != list(widths) or widths[0] < 1:
        parser.error(f"--widths must be at least 1 and ascend, got {widths}")
    console = Console()
    tf.config.set_visible_devices([], "GPU")
    start = time.perf_counter()
    corpus = load_corpus()
    console.print(
        f"{len(corpus.train):,} words to train on, {len(corpus.vocabulary):,} different.",
        highlight=False,
    )
    model = LanguageModel(len(corpus.vocabulary), options.seed)
    model.train(corpus.train, options.steps, options.seed, console)
    console.print(
        f"Perplexity on held-out text: {model.perplexity(corpus.held_out):.1f}\n", highlight=False
    )
    prompts = corpus.prompts()
    outcomes, failures = [], []
    for width in widths:
        outcome, wrong = compare(model, prompts, width, options.rounds, corpus.end)
        outcomes.append(outcome)
        failures += wrong
    chosen = report(console, corpus, prompts, outcomes)
    if outcomes[-1].best_score() < outcomes[0].best_score():
        failures.append("the widest search found less than the greedy one")
    draw(corpus, prompts, chosen, outcomes, options.picture)
    console.print(f"Picture: {options.picture}", highlight=False)
    return conclude(console, failures, start)


if __name__ == "__main__":
    sys.exit(main())
