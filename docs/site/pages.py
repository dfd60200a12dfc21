"""The pages that are made from the code, by their place in the site.

`python -m docs.site.pages FOLDER` writes them as Markdown, for readers without MkDocs.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from docs.site.commands import COMMAND_LINES, command_line
from docs.site.configuration import broker_xml, url_parameters
from docs.site.management import metrics, notifications, operations
from docs.site.python import PYTHON_PAGES, python_page

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["PAGES"]

PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "reference/broker-xml.md": broker_xml,
    "reference/url-parameters.md": url_parameters,
    "reference/operations.md": operations,
    "reference/notifications.md": notifications,
    "reference/metrics.md": metrics,
    **{f"reference/{name}-command.md": partial(command_line, name) for name in COMMAND_LINES},
    **{f"reference/{name}.md": partial(python_page, name) for name in PYTHON_PAGES},
}


def main(folder: str) -> None:
    """Write all of them below a folder."""
    for uri, text in PAGES.items():
        path = Path(folder, uri)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text())


if __name__ == "__main__":
    main(*sys.argv[1:])
