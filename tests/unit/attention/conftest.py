"""Both ways to the figures of a pattern, at any length."""

import pytest

from headscope.attention import summaries


@pytest.fixture(params=["tensors", "compiled"])
def either_way(request, monkeypatch):
    """Tensor operations or compiled code, whatever the length."""
    monkeypatch.setattr(summaries, "FUSED_FROM", 0 if request.param == "compiled" else 2**62)
