import doctest
import importlib
import pkgutil

import pytest

import broker

MODULES = [item.name for item in pkgutil.walk_packages(broker.__path__, "broker.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    result = doctest.testmod(importlib.import_module(name))

    assert result.failed == 0
