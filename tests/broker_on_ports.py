"""The command `broker` with other default ports, so that pages can be typed as they stand.

    python -m tests.broker_on_ports PORT HTTP_PORT ARGUMENTS...

A page says `broker create shop`, and `broker producer` with the default URL. Two tests that do so
at a time need ports of their own.
"""

import sys

import click

from broker.cli.exit_status import run
from broker.cli.main import broker
from journal.commands.groups import LazyGroup

PORT, HTTP_PORT = 61616, 8161


def with_defaults(command, defaults):
    """The same command, with defaults replaced: old to new."""
    for parameter in command.params:
        if isinstance(parameter.default, str | int) and parameter.default in defaults:
            parameter.default = defaults[parameter.default]
    return command


def main(port, http_port, *arguments):
    defaults = {
        PORT: int(port),
        HTTP_PORT: int(http_port),
        f"tcp://localhost:{PORT}": f"tcp://localhost:{port}",
    }
    for cls in (LazyGroup, click.Group):
        found = cls.get_command

        def get_command(self, context, name, found=found):
            command = found(self, context, name)
            return command and with_defaults(command, defaults)

        cls.get_command = get_command
    sys.argv = ["broker", *arguments]
    sys.exit(run(broker, "broker"))


if __name__ == "__main__":
    main(*sys.argv[1:])
