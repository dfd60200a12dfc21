"""`pipeline package`: pack the modules that workers of a cluster import into one archive."""

from __future__ import annotations

from pathlib import Path

import click

from journal.commands.output import example
from pipeline.package import package as write_package

__all__ = ["package"]


@click.command(epilog=example("pipeline package --to quiver.tar.gz --without pyarrow"))
@click.option(
    "--to",
    "target",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="a .tar.gz",
)
@click.option("--without", metavar="NAME", multiple=True, help="a package that the workers have")
@click.option("--overwrite", is_flag=True, help="replace FILE if it is there")
def package(target: Path, without: tuple[str, ...], *, overwrite: bool) -> None:
    """Write an archive of this Quiver for a cluster's workers.

    It has what its sources import, too. They need the same kind of machine and the same version of
    Python; PySpark comes with Spark.
    """
    names = write_package(target, without=without, overwrite=overwrite)
    click.echo(f"{target}: {', '.join(names)}", err=True)
    click.echo(
        f"spark-submit --archives {target}#quiver"
        " --conf spark.executorEnv.PYTHONPATH=./quiver YOUR_JOB.py"
    )
