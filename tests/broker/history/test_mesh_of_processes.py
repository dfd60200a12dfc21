"""A mesh of brokers, each a process on a machine of its own, under random clients and faults.

Nodes are killed, stopped, paused, paused and then killed, cut off from each other both ways and one
way, and from everything, and stopped while others are cut off. `pipeline audit` of their folders
and histories has to say the same as the checker, which looks at no order here: each queue has many
consumers, and what they give back goes to the back. Length: `effort` of 15 minutes. QUIVER_SEED
tries something else.
"""

import asyncio
import json
import os
import random
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: quiver-mq[spark] brings it")

from pipeline.finding_rules import DUPLICATED, LOST
from tests.broker.history.mesh import MeshService, MeshWorld, Nodes
from tests.interop.our_broker import ROOT
from tests.machines import Machines, missing

SEED = int(os.environ.get("QUIVER_SEED", "4"))
FULL_S, LEAST_S = 900, 20
SHOWN = 30


@pytest.fixture
def service(tmp_path, request):
    if (what := missing()) is not None:
        pytest.skip(what)
    with Machines(request.param) as machines:
        nodes = Nodes(tmp_path, machines)
        yield MeshService(nodes, MeshWorld(random.Random(SEED)))
        nodes.ensure_ended()


def audited(service, folder):
    """What `pipeline audit` finds of the messages' ways, after the brokers have ended."""
    folders = []
    for number, one in enumerate(service.nodes.all):
        # By its name, a node is told from the others.
        link = folder / f"audited{number}"
        link.symlink_to(one.folder)
        folders.append(str(link))
    histories = [word for one in folders for word in ("--retention", one)]
    command = [sys.executable, "-m", "pipeline.cli.main", "audit", *folders, *histories, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    found = map(json.loads, done.stdout.splitlines())
    return [one for one in found if one["finding"] in (LOST, DUPLICATED)]


@pytest.mark.slow
@pytest.mark.parametrize("service", [3, pytest.param(5, marks=pytest.mark.soak)], indirect=True)
def test_a_mesh_loses_doubles_and_strands_nothing(service, effort, figures, tmp_path):
    print(f"seed {SEED}")
    found = asyncio.run(service.run(effort(FULL_S, least=LEAST_S)))

    world = service.world
    title = f"mesh of {len(service.nodes.all)} on machines of their own"
    figures(title, **world.counts, **service.faults)
    print(world.refused_for)
    shown = "\n".join(found[:SHOWN])
    assert not found, f"seed {SEED}; {len(found)} in all\n{shown}"
    assert world.counts["deliveries"]
    assert service.nodes.faults() == []
    assert audited(service, tmp_path) == []
