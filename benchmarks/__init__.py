"""Benchmarks of the ops against TensorFlow's own: `make bench`, or `python -m benchmarks.run`."""
