"""Classes that are made up: what their members hand in is what is stored."""

import ast

import pytest

from autograder.grading.classroom import sample_class
from tests.autograder.small_class import stored

# Right answers that use their own name, and their exercises.
OWN_NAME = {
    "pools_in_a_loop": ("16_encoders_and_vision", "attention_pooling"),
    "PositionAfterPosition": ("09_transformer_blocks", "FeedForward"),
}


@pytest.mark.parametrize("name", OWN_NAME)
def test_an_answer_that_uses_its_own_name_has_that_of_its_exercise(name):
    slug, exercise = OWN_NAME[name]
    tree = ast.parse(sample_class.cell_of(stored(slug, exercise, name)))
    used = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    assert exercise in used
    assert name not in used


def test_a_notebook_that_is_changed_changes_no_other():
    slug = "00_getting_started"
    sample_class.handed_in(slug).cells[0].source = "mine"
    assert sample_class.handed_in(slug).cells[0].source != "mine"
    assert sample_class.blank(slug).cells[0].source != "mine"
