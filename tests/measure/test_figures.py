"""Numbers as people read them."""

from __future__ import annotations

import pytest

from core.figures import figure


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (8348345, "8,348,345"),
        (8348345.25, "8,348,345"),
        (100.0, "100"),
        (812.4, "812.4"),
        (12345.678, "12345.7"),
        (0.00025, "0.00025"),
        (-2.5, "-2.5"),
        (0.0, "0"),
        (3e20, "3e+20"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
    ],
)
def test_a_score_is_told_without_powers_of_ten(value: float, told: str) -> None:
    assert figure(value) == told
