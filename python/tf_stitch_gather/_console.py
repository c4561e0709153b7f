"""What the command prints: tables and progress, by rich where it is installed, else plain."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence

HAS_RICH = importlib.util.find_spec("rich") is not None


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table; columns beyond the first two are right-aligned."""
    if HAS_RICH and sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        formatted = Table()
        for column, title in enumerate(titles):
            formatted.add_column(title, justify="left" if column < 2 else "right", overflow="fold")
        for row in rows:
            formatted.add_row(*row)
        Console().print(formatted)
        return
    lines = [list(titles), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    for line in lines:
        cells = [
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


@contextlib.contextmanager
def progress(title: str) -> Iterator[Callable[[int, int, str], None]]:
    """Shows how far long work has come, on the terminal only.

    The function that it gives takes how many steps are done, of how many, and what is next.
    """
    if not sys.stderr.isatty():
        yield lambda done, total, step: None
    elif HAS_RICH:
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(title)
            yield lambda done, total, step: bar.update(
                task, completed=done, total=total, description=step
            )
    else:

        def show(done: int, total: int, step: str) -> None:
            print(f"\r\x1b[K{title}: {step} ({done}/{total})", end="", file=sys.stderr, flush=True)

        try:
            yield show
        finally:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
