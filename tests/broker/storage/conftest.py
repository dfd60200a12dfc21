import pytest

from tests.broker.storage.scenarios import JOURNALS, SCENARIOS, Scenario


@pytest.fixture(scope="session", params=SCENARIOS)
def scenario(request):
    return Scenario(request.param)


@pytest.fixture(scope="session", params=sorted(JOURNALS))
def journal(request):
    return request.param


@pytest.fixture(scope="session")
def bodies():
    """The shortest body that Artemis wrote of each user type, adds and updates apart."""
    found = {}
    for name in SCENARIOS:
        for journal in JOURNALS:
            for record in Scenario(name).records(journal):
                key = (record.user_type, record.is_update)
                if record.body is not None and record.user_type is not None:
                    found[key] = min(found.get(key, record.body), record.body, key=len)
    return found
