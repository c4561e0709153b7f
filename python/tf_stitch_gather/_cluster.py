"""Finds the tasks of a cluster that have not loaded the op library."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

# TensorFlow has no public way to ask which task of a cluster this process is.
from tensorflow.python.eager import context

from tf_stitch_gather import raw_ops

# The contexts whose tasks have been looked at.
_checked: weakref.WeakSet[Any] = weakref.WeakSet()


def check_cluster(target: str | None = None) -> list[str]:
    """Raises an error that names each task of the cluster without the op library.

    Every process that runs these ops has to load them, a worker and a parameter server too. Without
    this call TensorFlow reports the first op that is missing, when a step reaches it.

    >>> import tf_stitch_gather as sg
    >>> sg.check_cluster()  # Without a cluster, this process alone.
    ['/job:localhost/task:0']

    A task that cannot be reached is left out.

    Args:
      target: The target of a `tf.compat.v1.Session`, such as `"grpc://localhost:2222"`; by default
        the tasks that this process is connected to: by a `tf.distribute` strategy or by
        `tf.config.experimental_connect_to_cluster`.

    Returns:
      A list of `str`, the tasks that have loaded them.

    Raises:
      tf.errors.NotFoundError: if a task has not loaded the ops.
    """
    if target is None:
        with tf.init_scope():
            devices = [device.name for device in tf.config.list_logical_devices("CPU")]
            return _check(devices, _probe)
    with tf.Graph().as_default(), tf.compat.v1.Session(target) as session:
        devices = [device.name for device in session.list_devices()]
    return _check(devices, lambda device: _probe_in_session(target, device))


def check_once(devices: Iterable[str]) -> None:
    """`check_cluster`, the first time that one of `devices` is of another task than this."""
    server = context.get_server_def()
    if server is None or not tf.compat.v1.executing_eagerly_outside_functions():
        return
    current = context.context()
    if current in _checked:
        return
    here = (server.job_name, server.task_index)
    specs = [tf.DeviceSpec.from_string(device) for device in devices]
    if any(spec.job not in (None, "localhost") and (spec.job, spec.task) != here for spec in specs):
        check_cluster()
        _checked.add(current)


def _check(devices: Iterable[str], probe: Callable[[str], None]) -> list[str]:
    found, missing = [], []
    for device in devices:
        spec = tf.DeviceSpec.from_string(device)
        if spec.device_type != "CPU" or spec.device_index != 0:
            continue
        # Without a cluster, devices have names without a task.
        task = f"/job:{spec.job or 'localhost'}/task:{spec.task or 0}"
        try:
            probe(device)
            found.append(task)
        except tf.errors.NotFoundError:
            missing.append(task)
        except (tf.errors.UnavailableError, tf.errors.AbortedError):
            continue  # Down, or restarted and not connected yet.
    if missing:
        raise tf.errors.NotFoundError(
            None,
            None,
            f"{', '.join(missing)} {'has' if len(missing) == 1 else 'have'} not loaded the ops of "
            "tf_stitch_gather: start each with a program that imports tf_stitch_gather before "
            "its tf.distribute.Server",
        )
    return found


def _probe(device: str) -> None:
    with tf.device(device):
        raw_ops.MyGatherNd(params=[0], indices=[[0]])


def _probe_in_session(target: str, device: str) -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session(target) as session:
        # Fed, because a constant would be folded where the session is.
        indices = v1.placeholder(tf.int32, [1, 1])
        with tf.device(device):
            row = raw_ops.MyGatherNd(params=[0], indices=indices)
        session.run(row, {indices: [[0]]})
