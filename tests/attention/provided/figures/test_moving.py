"""The moving figures as pages; what their scripts compute is tested in tests/browser."""

import json
import re

import pytest

from attention.provided.figures import moving

TEN = [path.stem for path in moving.SCRIPTS.glob("*.js") if path.stem != "shared"]
LARGEST = 25_000  # bytes: notebooks carry them


@pytest.mark.parametrize("name", TEN)
def test_a_figure_is_small_and_whole(name):
    page = getattr(moving, name)().data
    assert len(page.encode()) < LARGEST
    assert page.count("<script") == page.count("</script>") == 2
    assert page.index("needs scripts") < page.index("<script")
    data = re.search(r'json">(.*?)</script>', page, re.DOTALL)[1]
    recorded = moving._recorded().get(name)
    if recorded is not None:
        assert json.loads(data) == recorded
    assert re.findall(r"https?://(?!www\.w3\.org/)|\bfetch\(|\bimport\b|\.src\b|url\(", page) == []


def test_pairs_can_be_ones_own_and_cannot_end_the_script():
    page = moving.n_grams(("</script><b>", "a b")).data
    assert page.count("</script>") == 2
    data = json.loads(re.search(r'json">(.*?)</script>', page, re.DOTALL)[1])
    assert data == [{"name": "</script><b>", "hypothesis": "</script><b>", "reference": "a b"}]
