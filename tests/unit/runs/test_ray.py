import sys

import pytest

from headscope.errors import InputError, MissingExtraError
from headscope.runs import Ray
from headscope.runs.ray import _recipe


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"headscope\[ray\]"):
        Ray().crew("builtin:gpt", [], 1)


def test_a_model_that_only_this_process_has_cannot_be_sent(bert):
    with pytest.raises(InputError, match="give its name or folder, or a function"):
        _recipe(bert)
    assert _recipe("builtin:gpt") == "builtin:gpt"
