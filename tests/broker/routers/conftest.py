"""Checks of targets wait as long as a loaded machine needs."""

import pytest

from broker.routers import targets


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(targets, "_ANSWER_S", 60.0)
