"""Keras 3 layers of the ops, and an optimizer that gives another each row of a gradient once.

Importing this module, and not the package alone, imports Keras.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tf_stitch_gather import _api, raw_ops

_NEEDED = "tf_stitch_gather.keras needs Keras 3 on TensorFlow"
_MEND = "set KERAS_BACKEND=tensorflow before Keras is imported, and have keras>=3 installed"

try:
    import keras

    # Keras has no public way to read a variable without the cast of mixed precision.
    from keras.src.backend import AutocastScope
except ImportError as error:
    raise ImportError(f"{_NEEDED}, and Keras does not import: {error}. {_MEND}") from error

if int(keras.__version__.split(".")[0]) < 3 or keras.backend.backend() != "tensorflow":
    raise ImportError(
        f"{_NEEDED}, and this is Keras {keras.__version__} on {keras.backend.backend()}: {_MEND}"
    )

__all__ = ["DynamicStitch", "GatherNd", "ScatterNd", "UniqueRows"]

_PACKAGE = "tf_stitch_gather"


class _OpLayer(keras.layers.Layer):  # type: ignore[misc]
    """A layer without weights around one of the functions.

    Shapes and types of symbolic outputs come from the shape functions of the ops.
    """

    def __init__(self, *, autocast: bool = True, **kwargs: Any) -> None:
        super().__init__(autocast=autocast, **kwargs)
        self.supports_jit = False

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **({} if self.autocast else {"autocast": False})}

    def _unknown_rank(self) -> str:
        """What is missing where the rank of the output does not follow from the shapes."""
        raise NotImplementedError

    def _output_spec(self, **inputs: Any) -> keras.KerasTensor:
        """The shape and type of the output for the inputs by name, some of them symbolic."""

        def in_graph(value: Any) -> Any:
            if isinstance(value, keras.KerasTensor):
                return tf.compat.v1.placeholder(value.dtype, value.shape)
            if tf.is_tensor(value) and value.dtype.is_integer:
                # Shape functions see the values of a constant, but not of a captured tensor.
                static = tf.get_static_value(value)
                return value if static is None else tf.constant(static, value.dtype)
            return value

        try:
            with tf.__internal__.FuncGraph("output_spec").as_default():
                output = self.call(**keras.tree.map_structure(in_graph, inputs))
            if output.shape.rank is None:
                raise ValueError(self._unknown_rank())
        except (ValueError, tf.errors.InvalidArgumentError) as error:
            # What follows in the text is a node that the user has not made.
            reason = str(error).partition(" for '{{node")[0]
            given = ", ".join(f"{name} of shape {_shapes(v)}" for name, v in inputs.items())
            raise ValueError(f"{type(self).__name__}, given {given}: {reason}") from None
        return keras.KerasTensor(output.shape, output.dtype)


def _shapes(value: Any) -> Any:
    """The shape of an input or, of a list, the shapes, to be shown."""
    return [_shapes(v) for v in value] if isinstance(value, list) else tuple(value.shape)


def _input(argument: str, value: Any, indices: bool = False) -> Any:
    """One argument of a layer as a tensor, symbolic or not; indices are integers."""
    if isinstance(value, keras.KerasTensor):
        if value.sparse or value.ragged:
            kind = "sparse" if value.sparse else "ragged"
            raise ValueError(f"{argument} must be dense, got the {kind} input {value.name!r}")
        dtype = tf.as_dtype(value.dtype)
    else:
        if not tf.is_tensor(value):
            value = _api._converted(value)
        dtype = tf.as_dtype(value.dtype)
    if indices and not dtype.is_integer:
        raise TypeError(
            f"{argument} must be of an integer type, got {dtype.name}: "
            "give the input dtype='int32', or cast it"
        )
    return value


def _inputs(argument: str, values: Any, indices: bool = False) -> list[Any]:
    values = _api.as_list(values, argument)
    return [_input(f"{argument}[{i}]", value, indices) for i, value in enumerate(values)]


def _refuse_variables(symbolic: bool, **arguments: Any) -> None:
    """Keras tracks no variable that reaches a functional model as an argument: it would not train.

    Raises:
      ValueError: if one of the arguments is a variable while others are symbolic.
    """
    for argument, value in arguments.items():
        for part in value if isinstance(value, list | tuple) else [value]:
            if symbolic and isinstance(part, keras.Variable | tf.Variable):
                raise ValueError(
                    f"{argument} is a variable, which a functional model would not train: make it "
                    "a weight of a layer of yours, and call the function in that layer"
                )


def _count(argument: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < 0:
        raise ValueError(f"{argument} must be an integer of at least 0, got {value!r}")
    return int(value)


@keras.saving.register_keras_serializable(_PACKAGE)
class GatherNd(_OpLayer):
    """Gathers slices of `params` at `indices`, as `tf_stitch_gather.gather_nd`.

    >>> import keras
    >>> import tf_stitch_gather as sg
    >>> tokens = keras.Input((7, 16))
    >>> places = keras.Input((3, 1), dtype="int32")
    >>> picked = sg.keras.GatherNd(batch_dims=1)(tokens, places)
    >>> picked.shape
    (None, 3, 16)

    Under a policy of mixed precision, `params` of a float type are cast as the inputs of any layer.
    Indices are integers and are never cast.

    Args:
      batch_dims: An `int`, the number of leading dimensions that `params` and `indices` share; 1 to
        look up in each example of a batch.
      bad_indices_policy: `""`, `"DEFAULT"`, `"ERROR"` or `"IGNORE"`, as in `gather_nd`.
      **kwargs: The arguments of `keras.layers.Layer`.

    Call arguments:
      params: A tensor of any type.
      indices: A tensor of an integer type and of shape `[..., depth]`.

    Output:
      A tensor of shape `indices.shape[:-1] + params.shape[batch_dims + depth:]`.
    """

    def __init__(self, batch_dims: int = 0, bad_indices_policy: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.batch_dims = _api._as_batch_dims(batch_dims)
        self.bad_indices_policy = bad_indices_policy

    def __call__(self, params: Any, indices: Any, **kwargs: Any) -> Any:
        symbolic = _api.is_symbolic(params, indices)
        _refuse_variables(symbolic, params=params, indices=indices)
        params, indices = _input("params", params), _input("indices", indices, indices=True)
        if symbolic:
            self.compute_output_spec(params, indices)  # An error from here Keras adds nothing to.
        return super().__call__(params, indices, **kwargs)

    def call(self, params: Any, indices: Any) -> tf.Tensor:
        return _api.gather_nd(
            params,
            indices,
            batch_dims=self.batch_dims,
            bad_indices_policy=self.bad_indices_policy,
        )

    def compute_output_shape(self, params_shape: Any, indices_shape: Any) -> Any:
        params, indices = (
            keras.KerasTensor(params_shape, "float32"),
            keras.KerasTensor(indices_shape, "int32"),
        )
        return tuple(self.compute_output_spec(params, indices).shape)

    def compute_output_spec(self, params: Any, indices: Any) -> keras.KerasTensor:
        return self._output_spec(params=params, indices=indices)

    def _unknown_rank(self) -> str:
        return "the last dimension of indices must be known, and is None"

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "batch_dims": self.batch_dims,
            "bad_indices_policy": self.bad_indices_policy,
        }


@keras.saving.register_keras_serializable(_PACKAGE)
class DynamicStitch(_OpLayer):
    """Puts the rows of several tensors into one, as `tf_stitch_gather.dynamic_stitch`.

    >>> import keras
    >>> import tf_stitch_gather as sg
    >>> indices = [keras.Input((), dtype="int32"), keras.Input((), dtype="int32")]
    >>> data = [keras.Input((8,)), keras.Input((8,))]
    >>> sg.keras.DynamicStitch()(indices, data).shape
    (None, 8)

    Under a policy of mixed precision, `data` of a float type are cast as the inputs of any layer.
    Indices are integers and are never cast.

    Args:
      size: An `int`, the number of rows of the output; by default `max(indices) + 1`.
      **kwargs: The arguments of `keras.layers.Layer`.

    Call arguments:
      indices: A list of tensors of integer types.
      data: A list of as many tensors of one type, with `data[m].shape == indices[m].shape + slice`.
      size: An integer scalar tensor, in place of the argument of the same name above (optional).

    Output:
      A tensor of shape `[size] + slice`.
    """

    def __init__(self, size: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.size = None if size is None else _count("size", size)

    def __call__(self, indices: Any, data: Any, size: Any = None, **kwargs: Any) -> Any:
        indices, data = _api.as_list(indices, "indices"), _api.as_list(data, "data")
        symbolic = _api.is_symbolic(*indices, *data, size)
        _refuse_variables(symbolic, indices=indices, data=data)
        if size is not None:
            kwargs["size"] = size = _input("size", size, indices=True)
        indices, data = _inputs("indices", indices, indices=True), _inputs("data", data)
        if symbolic:
            self.compute_output_spec(indices, data, size)
        return super().__call__(indices, data, **kwargs)

    def call(self, indices: Any, data: Any, size: Any = None) -> tf.Tensor:
        return _api.dynamic_stitch(indices, data, size=self.size if size is None else size)

    def compute_output_shape(self, indices_shape: Any, data_shape: Any) -> Any:
        indices = [keras.KerasTensor(shape, "int32") for shape in indices_shape]
        data = [keras.KerasTensor(shape, "float32") for shape in data_shape]
        return tuple(self.compute_output_spec(indices, data).shape)

    def compute_output_spec(self, indices: Any, data: Any, size: Any = None) -> keras.KerasTensor:
        given = {} if size is None else {"size": size}
        return self._output_spec(indices=indices, data=data, **given)

    def _unknown_rank(self) -> str:
        return "the rank of data must be known"

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "size": self.size}


@keras.saving.register_keras_serializable(_PACKAGE)
class ScatterNd(_OpLayer):
    """Adds `updates` at `indices` to a tensor of zeros, as `tf_stitch_gather.scatter_nd`.

    >>> import keras
    >>> import tf_stitch_gather as sg
    >>> places = keras.Input((5, 1), dtype="int32")
    >>> updates = keras.Input((5, 3))
    >>> sg.keras.ScatterNd(shape=(10, 3), batch_dims=1)(places, updates).shape
    (None, 10, 3)

    Under a policy of mixed precision, `updates` of a float type are cast as the inputs of any
    layer. Indices are integers and are never cast.

    Args:
      shape: A sequence of `int`, the shape of the output after the batch dimensions. Give it here
        or in the call.
      batch_dims: An `int`, the number of leading dimensions that `indices` and `updates` share and
        the output keeps; 1 to scatter in each example of a batch.
      bad_indices_policy: `""`, `"DEFAULT"`, `"ERROR"` or `"IGNORE"`, as in `scatter_nd`.
      **kwargs: The arguments of `keras.layers.Layer`.

    Call arguments:
      indices: A tensor of an integer type and of shape `[..., depth]`.
      updates: A tensor of shape `indices.shape[:-1] + shape[depth:]`.
      shape: An integer tensor of rank 1, in place of the argument of the same name above
        (optional).

    Output:
      A tensor of shape `updates.shape[:batch_dims] + shape`.
    """

    def __init__(
        self,
        shape: Sequence[int] | None = None,
        batch_dims: int = 0,
        bad_indices_policy: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if shape is not None and not isinstance(shape, list | tuple | tf.TensorShape):
            raise TypeError(f"shape must be a list or tuple of integers, got {shape!r}")
        self.shape = None if shape is None else tuple(_count("shape", size) for size in shape)
        self.batch_dims = _api._as_batch_dims(batch_dims)
        self.bad_indices_policy = bad_indices_policy

    def __call__(self, indices: Any, updates: Any, shape: Any = None, **kwargs: Any) -> Any:
        if (shape is None) == (self.shape is None):
            given = "neither" if shape is None else "both"
            raise ValueError(f"shape must be given to the layer or to the call, and {given} has it")
        symbolic = _api.is_symbolic(indices, updates, shape)
        _refuse_variables(symbolic, indices=indices, updates=updates)
        if shape is not None:
            kwargs["shape"] = shape = _input("shape", shape, indices=True)
        indices, updates = _input("indices", indices, indices=True), _input("updates", updates)
        if symbolic:
            self.compute_output_spec(indices, updates, shape)
        return super().__call__(indices, updates, **kwargs)

    def call(self, indices: Any, updates: Any, shape: Any = None) -> tf.Tensor:
        shape = self.shape if shape is None else shape
        if self.batch_dims == 0:
            return _api.scatter_nd(
                indices, updates, shape, bad_indices_policy=self.bad_indices_policy
            )
        indices = _api._as_indices(indices, "indices")
        batch = tf.shape(updates, indices.dtype)[: self.batch_dims]
        known = updates.shape[: self.batch_dims]
        if known.is_fully_defined():
            batch = tf.constant(known.as_list(), indices.dtype)
        return raw_ops.MyScatterNd(
            indices=indices,
            updates=updates,
            shape=tf.concat([batch, tf.cast(shape, indices.dtype)], axis=0),
            bad_indices_policy=self.bad_indices_policy,
            batch_dims=self.batch_dims,
        )

    def compute_output_shape(self, indices_shape: Any, updates_shape: Any) -> Any:
        indices, updates = (
            keras.KerasTensor(indices_shape, "int32"),
            keras.KerasTensor(updates_shape, "float32"),
        )
        return tuple(self.compute_output_spec(indices, updates).shape)

    def compute_output_spec(
        self, indices: Any, updates: Any, shape: Any = None
    ) -> keras.KerasTensor:
        given = {} if shape is None else {"shape": shape}
        return self._output_spec(indices=indices, updates=updates, **given)

    def _unknown_rank(self) -> str:
        return "the number of dimensions in shape must be known"

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "shape": None if self.shape is None else list(self.shape),
            "batch_dims": self.batch_dims,
            "bad_indices_policy": self.bad_indices_policy,
        }


@keras.saving.register_keras_serializable(_PACKAGE)
class UniqueRows(keras.optimizers.Optimizer):  # type: ignore[misc]
    """Gives the optimizer that it wraps sparse gradients that list each row once.

    A variable that is looked up in two places, or by `keras.layers.Embedding`, has a gradient that
    may list a row more than once. Adam, Adagrad, RMSprop and Ftrl of Keras then take a wrong step.
    This adds up the values of a repeated row first, in a fixed order.

    >>> import keras
    >>> import tensorflow as tf
    >>> import tf_stitch_gather as sg
    >>> table = tf.Variable([[1.0], [1.0]])
    >>> optimizer = sg.keras.UniqueRows(keras.optimizers.Adagrad(learning_rate=1.0))
    >>> with tf.GradientTape() as tape:
    ...     loss = tf.reduce_sum(sg.gather_nd(table, [[0]]) + sg.gather_nd(table, [[0]]))
    >>> gradient = tape.gradient(loss, table)
    >>> gradient.indices.numpy().tolist()
    [0, 0]
    >>> optimizer.apply([gradient], [table])
    >>> bool(abs(table[0, 0] - (1.0 - 2.0 / (0.1 + 4.0) ** 0.5)) < 1e-5)
    True

    Args:
      inner_optimizer: A `keras.optimizers.Optimizer`. Its learning rate, clipping and so on hold.
      name: A name (optional).
    """

    def __init__(
        self, inner_optimizer: keras.optimizers.Optimizer, name: str | None = None
    ) -> None:
        if not isinstance(inner_optimizer, keras.optimizers.Optimizer):
            raise TypeError(f"inner_optimizer must be a Keras optimizer, got {inner_optimizer!r}")
        super().__init__(learning_rate=0.0, name=name)
        self.inner_optimizer = inner_optimizer

    def build(self, variables: Iterable[Any]) -> None:
        variables = list(variables)
        self.inner_optimizer.build(variables)
        super().build(variables)

    @property
    def variables(self) -> list[Any]:
        return [*self._variables, *self.inner_optimizer.variables]

    def apply(self, grads: Iterable[Any], trainable_variables: Iterable[Any] | None = None) -> None:
        if trainable_variables is not None:
            trainable_variables = list(trainable_variables)
            if not self.built:
                self.build(trainable_variables)
        variables = trainable_variables or self._trainable_variables
        grads = [_unique_rows(*pair) for pair in zip(grads, variables, strict=True)]
        self.inner_optimizer.apply(grads, trainable_variables)

    @property
    def learning_rate(self) -> Any:
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self.inner_optimizer.learning_rate = value

    @property
    def iterations(self) -> Any:
        return self.inner_optimizer.iterations

    def scale_loss(self, loss: Any) -> Any:
        return self.inner_optimizer.scale_loss(loss)

    def finalize_variable_values(self, var_list: Any) -> None:
        self.inner_optimizer.finalize_variable_values(var_list)

    def get_config(self) -> dict[str, Any]:
        inner = keras.saving.serialize_keras_object(self.inner_optimizer)
        return {"name": self.name, "inner_optimizer": inner}

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> UniqueRows:
        inner = keras.saving.deserialize_keras_object(
            config["inner_optimizer"], custom_objects=custom_objects
        )
        return cls(inner, name=config["name"])


def _unique_rows(grad: Any, variable: Any) -> Any:
    """A gradient of `variable` whose rows are unique and ascending, where it is sparse."""
    if not isinstance(grad, tf.IndexedSlices):
        return grad
    shape = tf.constant(variable.shape.as_list(), tf.int64)
    rows, values = raw_ops.MyGatherNdSparseGrad(
        indices=_api._as_indices(grad.indices, "indices")[:, tf.newaxis],
        grad=grad.values,
        num_rows=shape[0],
    )
    return tf.IndexedSlices(values, rows, shape)


def gather_from_variable(
    variable: keras.Variable, gather: Callable[[tf.Variable | tf.Tensor], tf.Tensor]
) -> tf.Tensor:
    """Rows of a Keras variable in the type that mixed precision gives them.

    They are cast after they are gathered: the same values, without a cast of the whole table, and
    with a sparse gradient.
    """
    with AutocastScope(None):
        value = variable.value
    return variable._maybe_autocast(gather(value))
