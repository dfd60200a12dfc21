"""kill -9 in a loop: one store, many lives, and an outside record of what was acknowledged."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from journal.folder import JournalName, list_files
from journal.reader import read_folder
from tests.crash.history import History, Step
from tests.crash.model import read_folder_view
from tests.crash.workload import TYPES
from tests.crash.writer import body_of

WRITERS = ["writer", pytest.param("exec_writer", marks=pytest.mark.slow)]
# Kills of each I/O type.
ROUNDS = {"writer": 250, "exec_writer": 250}
ROUND_S = 60


class Killer:
    """Reads what a writer says, kills it at a random moment, and keeps the history of all lives."""

    def __init__(self, writer, folder, kind, rng, complaints):
        self.writer = Path(__file__).with_name(f"{writer}.py")
        self.folder = folder
        self.kind = kind
        self.rng = rng
        self.history = History()
        self.kills = 0
        self.acks = 0
        self.copied = 0
        self.complaints = complaints

    def round(self, number):
        """One life."""
        writer = subprocess.Popen(
            [sys.executable, str(self.writer), str(self.folder), self.kind, str(number)],
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            start_new_session=True,
        )
        with writer.stdout:
            try:
                self.follow(writer)
            finally:
                kill(writer)
                writer.wait(ROUND_S)
            # What it said before it died counts too, but for a line that was cut.
            for line in writer.stdout.read().split(b"\n")[:-1]:
                self.take(line.decode().split())
        if writer.returncode != -signal.SIGKILL:
            self.complaints.seek(0)
            pytest.fail(self.complaints.read().decode()[-2000:])
        self.kills += 1

    def follow(self, writer):
        if self.rng.random() < 0.15:
            # In the middle of the start, wherever that is.
            time.sleep(self.rng.random() * 0.15)
            return
        acks = self.rng.randrange(1, 240)
        for line in writer.stdout:
            self.take(line.decode().split())
            if line.startswith(b"ACK"):
                acks -= 1
                if acks == 0:
                    return

    def take(self, words):
        if words[0] == "TRY":
            added = dict(word[1:].split(":") for word in words[2:] if word[0] == "+")
            self.history.step(
                {int(record): body_of(record, int(size)) for record, size in added.items()},
                [int(word[1:]) for word in words[2:] if word[0] == "-"],
            )
        elif words[0] == "ACK":
            self.history.steps[-1].state = "acked"
            self.acks += 1

    def check(self):
        """What is there now is what the history says; unknown outcomes are known from now on."""
        view, damages = read_folder_view(self.folder)
        live = {record: body for record, is_update, _, body in view[0] if not is_update}
        # A prepared transaction that was not committed before the kill is rolled back by the
        # writer's next life, so it is as if never tried.
        self.history.check(live)
        assert [str(damage) for damage in damages if not damage.torn] == []
        self.copied += any(
            record.compact_count
            for view in read_folder(list_files(self.folder, JournalName()))
            for record in view
        )
        known = {record for step in self.history.steps for record in step.added}
        self.history.steps = [Step({record: body}, (), "acked") for record, body in live.items()]
        self.history.steps += [Step({dead: b""}, (), "refused") for dead in known - set(live)]
        return live


def kill(writer):
    """The whole group, at once."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(writer.pid, signal.SIGKILL)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("writer", WRITERS)
def test_a_killed_writer_loses_nothing_acknowledged(tmp_path, writer, kind, effort, figures):
    folder = tmp_path / "journal"
    rounds = effort(ROUNDS[writer], least=4)

    with (tmp_path / "complaints").open("w+b") as complaints:
        killer = Killer(writer, folder, kind, random.Random(kind), complaints)
        for number in range(rounds):
            killer.round(number)
            if folder.exists():
                killer.check()

    assert killer.acks > rounds
    # Or no round would say anything about compaction.
    assert killer.copied
    figures(
        f"kill -9, {writer}",
        kills=killer.kills,
        acknowledgements=killer.acks,
        folders_that_had_been_compacted=killer.copied,
    )
