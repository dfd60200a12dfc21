import pytest

from jdbcstore.live import LiveIds


def test_ids_come_and_go():
    live = LiveIds()

    assert live.put(5)
    assert not live.put(5)
    assert live.put(-(2**63))
    assert 5 in live
    assert len(live) == 2
    assert live.take(5)
    assert not live.take(5)
    assert live.max_id == 5


@pytest.mark.parametrize(("wrong", "error"), [("2", TypeError), (2**63, OverflowError)])
def test_what_is_no_64_bit_number_is_refused(wrong, error):
    with pytest.raises(error):
        LiveIds().put(wrong)
