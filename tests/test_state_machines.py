"""A life of a table under random calls, as hypothesis draws and shrinks it, beside a NumPy array.

Each rule makes a batch of calls, so that 20,000 calls a run stay a matter of seconds.
"""

from __future__ import annotations

import numpy as np
import support
import tensorflow as tf
import tf_stitch_gather as tsg
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

raw = tsg.raw_ops
BATCH = 30
LEAST_CALLS = 20_000

seeds = st.integers(0, 2**32 - 1)
index_types = st.sampled_from(["int16", "int32", "int64", "uint8", "uint64"])


class Table(RuleBasedStateMachine):
    """A table of whole numbers in float64, whose sums are exact in any order."""

    calls = 0

    @initialize(rows=st.integers(1, 9), width=st.integers(0, 5), seed=seeds)
    def start(self, rows: int, width: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.model = rng.integers(-9, 9, (rows, width)).astype(np.float64)
        self.variable = tf.Variable(self.model, shape=tf.TensorShape(None))

    def same(self, got: tf.Tensor, want: np.ndarray) -> None:
        type(self).calls += 1
        array = got.numpy()
        assert array.shape == want.shape and array.tobytes() == want.tobytes(), (array, want)

    @rule(seed=seeds, index_type=index_types)
    def look_up(self, seed: int, index_type: str) -> None:
        rng = np.random.default_rng(seed)
        params = self.variable if seed % 2 else tf.constant(self.model)
        for _ in range(BATCH):
            outer = tuple(rng.integers(0, 4, rng.integers(0, 3)))
            rows = rng.integers(0, len(self.model), outer)
            indices = rows[..., None].astype(index_type)
            self.same(tsg.gather_nd(params, indices), self.model[rows])

    @rule(seed=seeds)
    def look_up_elements(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        if self.model.shape[1] == 0:
            return
        for _ in range(BATCH):
            count = rng.integers(0, 6)
            rows, columns = (rng.integers(0, n, count) for n in self.model.shape)
            indices = np.stack([rows, columns], -1)
            self.same(tsg.gather_nd(self.variable, indices), self.model[rows, columns])
            # The same by rows, with the row as a batch dimension.
            picked = tsg.gather_nd(self.model[rows], columns[:, None, None], batch_dims=1)
            self.same(picked, self.model[rows, columns][:, None])

    @rule(seed=seeds)
    def look_up_rows_that_are_not_there(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        count = len(self.model)
        for _ in range(BATCH):
            rows = rng.integers(-2, count + 2, rng.integers(1, 5))
            bad = (rows < 0) | (rows >= count)
            want = np.where(bad[:, None], 0.0, self.model[np.where(bad, 0, rows)])
            got = tsg.gather_nd(self.variable, rows[:, None], bad_indices_policy="IGNORE")
            self.same(got, want)
            if bad.any():
                first = int(np.argmax(bad))
                message = f"indices[{first}] = [{rows[first]}] does not index"
                with support.fails(message, kinds=tf.errors.InvalidArgumentError):
                    tsg.gather_nd(self.variable, rows[:, None])
                type(self).calls += 1

    @rule(seed=seeds, index_type=index_types)
    def add(self, seed: int, index_type: str) -> None:
        rng = np.random.default_rng(seed)
        total = np.zeros_like(self.model)
        for _ in range(BATCH):
            rows = rng.integers(0, len(self.model), rng.integers(0, 7))
            updates = rng.integers(-3, 4, (rows.size, self.model.shape[1])).astype(np.float64)
            want = np.zeros_like(self.model)
            np.add.at(want, rows, updates)
            self.same(
                tsg.scatter_nd(rows[:, None].astype(index_type), updates, self.model.shape), want
            )
            total += want
        self.model = self.model + total
        self.variable.assign_add(total)

    @rule(seed=seeds)
    def take_a_gradient(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(BATCH):
            rows = rng.integers(0, len(self.model), rng.integers(0, 7))
            weights = rng.integers(-3, 4, (rows.size, self.model.shape[1])).astype(np.float64)
            unique = np.unique(rows)
            sums = np.zeros_like(self.model)
            np.add.at(sums, rows, weights)
            got_rows, got = raw.MyGatherNdSparseGrad(
                indices=rows[:, None], grad=weights, num_rows=len(self.model)
            )
            self.same(got_rows, unique)
            self.same(got, sums[unique])

    @rule(seed=seeds, parts=st.integers(1, 4))
    def take_apart_and_stitch(self, seed: int, parts: int) -> None:
        rng = np.random.default_rng(seed)
        count = len(self.model)
        for _ in range(BATCH):
            order = rng.permutation(count)
            pieces = np.split(order, np.sort(rng.integers(0, count + 1, parts - 1)))
            merged = tsg.dynamic_stitch(pieces, [self.model[piece] for piece in pieces])
            self.same(merged, self.model)
            grads = raw.MyDynamicStitchGrad(indices=pieces, grad=merged)
            for piece, grad in zip(pieces, grads, strict=True):
                self.same(grad, self.model[piece])

    @rule(seed=seeds, more=st.integers(0, 3))
    def overwrite(self, seed: int, more: int) -> None:
        rng = np.random.default_rng(seed)
        rows = len(self.model) + more
        for _ in range(BATCH):
            places = [rng.integers(0, rows, rng.integers(0, 6)) for _ in range(3)]
            data = [
                rng.integers(0, 99, (p.size, self.model.shape[1])).astype(np.float64)
                for p in places
            ]
            want = np.zeros((rows, self.model.shape[1]))
            for place, piece in zip(places, data, strict=True):
                for row, values in zip(place, piece, strict=True):
                    want[row] = values
            self.same(tsg.dynamic_stitch(places, data, size=rows), want)
        self.model = want
        self.variable.assign(want)

    @invariant()
    def the_table_is_what_it_should_be(self) -> None:
        if hasattr(self, "variable"):
            self.same(self.variable.value(), self.model)


def test_a_table_and_its_model_agree():
    Table.calls = 0
    limits = settings(max_examples=30, stateful_step_count=25, deadline=None)
    run_state_machine_as_test(Table, settings=limits)
    assert Table.calls >= LEAST_CALLS, Table.calls
