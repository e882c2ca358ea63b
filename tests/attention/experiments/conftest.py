"""No figure stays open."""

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")
