"""The harness is right: it sees in the golden folders what expected.json says."""

import json

import pytest

from tests.interop.artemis import ArtemisError
from tests.interop.conftest import HERE
from tests.unpack import unpack as extract

GOLDEN = HERE.parent / "golden"
SCENARIOS = sorted(path.parent.name for path in GOLDEN.glob("*/journal.tar.gz"))
# What a script cannot say: bytes that were written by hand between two of its steps.
BY_HAND = "# wrote by hand"
WARNING_SIZE_MAX = 400


def expected(scenario):
    return json.loads((GOLDEN / scenario / "expected.json").read_text())


def is_scripted(scenario):
    """Whether the script alone makes the folder, and its records can be listed."""
    script = (GOLDEN / scenario / "ops.txt").read_text()
    return BY_HAND not in script and "files" in expected(scenario)["raw"]


def settings(config):
    """How expected.json loads a folder: with its sizes, through NIO without a buffer."""
    return {**config, "type": "NIO", "buffer_timeout_ns": 0}


def unpack(scenario, folder):
    return extract(GOLDEN / scenario / "journal.tar.gz", folder) / "journal"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_raw_view_is_expected(artemis, tmp_path, scenario):
    golden = expected(scenario)
    folder = unpack(scenario, tmp_path)
    if "order_files_error" in golden["raw"]:
        with pytest.raises(ArtemisError) as caught:
            artemis.call("raw", folder, **settings(golden["config"]))
        assert same_error(caught.value, golden["raw"]["order_files_error"])
        return

    files = artemis.call("raw", folder, **settings(golden["config"]))

    assert files == golden["raw"]["files"]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_load_view_is_expected(artemis, tmp_path, scenario):
    golden = expected(scenario)
    folder = unpack(scenario, tmp_path)
    if "load_error" in golden["load"]:
        with pytest.raises(ArtemisError) as caught:
            artemis.call("load", folder, **settings(golden["config"]))
        assert same_error(caught.value, golden["load"]["load_error"])
        return

    view = artemis.call("load", folder, **settings(golden["config"]))

    for part in ("number_of_records", "max_id", "committed", "prepared", "failed_transactions"):
        assert view[part] == golden["load"][part], part
    warnings = [shortened(line) for line in artemis.warnings]
    assert sorted(warnings) == sorted(golden["load"]["log_warnings"])
    state = dict(golden["load"]["state_after_load"])
    del state["next_file_id_counter"]
    assert view["state_after_load"] == state


@pytest.mark.parametrize("scenario", list(filter(is_scripted, SCENARIOS)))
def test_script_writes_the_same_records(artemis, tmp_path, scenario):
    golden = expected(scenario)
    script = (GOLDEN / scenario / "ops.txt").read_text()
    folder = tmp_path / "journal"
    replaceable = [line.split()[1] for line in script.splitlines() if line[:11] == "replaceable"]
    steps = "\n".join(line for line in script.splitlines() if line[:11] != "replaceable")

    config = {**settings(golden["config"]), "replaceable": ",".join(replaceable)}
    artemis.run(folder, steps, **config)

    files = artemis.call("raw", folder, **settings(golden["config"]))
    ours = [without_places(record) for file in files for record in file["records"]]
    theirs = [
        without_places(record) for file in golden["raw"]["files"] for record in file["records"]
    ]
    assert ours == theirs


def without_places(record):
    """A record apart from where it stands: the folder's own I/O type may have aligned it."""
    return {name: value for name, value in record.items() if name not in ("offset", "file")}


def shortened(warning):
    """As expected.json keeps a long line."""
    return warning if len(warning) <= WARNING_SIZE_MAX else warning[:WARNING_SIZE_MAX] + "..."


def same_error(error, text):
    """Same exception; Artemis's own words may differ from release to release."""
    return str(error).split(":")[:2] == text.split(":")[:2]
