import pytest

from broker.rare_lines import KEPT_MAX, SILENT_S, RareLines


@pytest.fixture
def clock():
    return [100.0]


@pytest.fixture
def lines(clock):
    return RareLines(lambda: clock[0])


def test_each_thing_is_told_at_most_once_a_minute(lines, clock, caplog):
    for thing in "aab":
        lines.warn(thing, "about %s", thing)
    clock[0] += SILENT_S - 1
    lines.warn("a", "about %s", "a")
    assert caplog.messages == ["about a", "about b"]

    clock[0] += 1
    lines.warn("a", "about %s again", "a")
    assert caplog.messages[2:] == ["about a again"]


def test_names_that_clients_make_up_do_not_stay_in_memory(lines, caplog):
    for number in range(3 * KEPT_MAX):
        lines.warn(number, "about %d", number)

    assert len(caplog.messages) == 3 * KEPT_MAX
    assert len(lines._told_s) <= KEPT_MAX
