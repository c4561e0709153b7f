"""The two models in examples/, with short settings, in one process of their own."""

from __future__ import annotations

import textwrap
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
import support

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

RUN = """
    import sys

    sys.path.insert(0, sys.argv[1])
    import beam_search
    import mixture_of_experts
    import tensorflow as tf
    from rich.console import Console

    mixture_of_experts.NUM_EXPERTS = 3  # Fewer to build.
    print("== experts")
    experts = ["--epochs", "8", "--picture", sys.argv[2] + "/experts.png"]
    print("status", mixture_of_experts.main(experts))
    print("== beams")
    beams = ["--steps", "12", "--rounds", "1", "--widths", "1", "3"]
    print("status", beam_search.main([*beams, "--picture", sys.argv[2] + "/beams.png"]))


    def wrong(params, indices, batch_dims=0):
        return tf.gather_nd(params, tf.reverse(indices, [batch_dims]), batch_dims=batch_dims)


    tf.config.run_functions_eagerly(True)
    mixture_of_experts.OURS = beam_search.OURS = beam_search.LookupOps(
        "ours", wrong, tf.dynamic_stitch
    )
    print("== wrong experts")
    runs = mixture_of_experts.train(mixture_of_experts.load_data(0), 2, 0)
    print(mixture_of_experts.report(Console(), *runs))
    print("== wrong beams")
    corpus = beam_search.load_corpus()
    model = beam_search.LanguageModel(len(corpus.vocabulary), 0)
    print(beam_search.compare(model, corpus.prompts(), 3, 1, corpus.end)[1])
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> tuple[dict[str, str], Path]:
    """What each run printed, by its name, and the folder of the pictures."""
    folder = tmp_path_factory.mktemp("models")
    printed = support.run_python(textwrap.dedent(RUN), str(EXAMPLES), str(folder))
    parts = printed.split("== ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}, folder


@pytest.mark.parametrize("name", ["experts", "beams"])
class TestModel:
    def test_finds_the_same_with_either_library(self, name, outputs):
        printed = outputs[0][name]
        assert "Every check passed" in printed
        assert printed.endswith("status 0\n")

    def test_finds_out_a_wrong_op(self, name, outputs):
        failure = {"experts": "the losses are", "beams": "sentences of width 3 differ"}[name]
        assert failure in outputs[0][f"wrong {name}"]

    def test_draws_a_picture(self, name, outputs):
        picture = matplotlib.image.imread(outputs[1] / f"{name}.png")
        assert picture.shape[0] > 200 and picture.shape[1] > 400
        assert np.std(picture[..., :3]) > 0.05
