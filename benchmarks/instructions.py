"""Counts the instructions of the core loops and holds them against a recorded budget.

`make instructions` runs each case of `tf_ops/tests/core_loops.cc` under callgrind. The counts do
not depend on what else the machine does, so that this, unlike a timing, can fail a build. A budget
holds for g++ at the flags of the Makefile; `--update` records the counts of now.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

BUDGETS = Path(__file__).with_name("instructions.json")

# What another version of the compiler or of the C library may take more.
SLACK = 0.15


def list_cases(program: str) -> dict[str, int]:
    """The cases of `program`, each with its number of rows."""
    listing = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    lines = (line.split(" ", 1) for line in listing.splitlines())
    return {name: int(rows) for rows, name in lines}


def count_instructions(program: str, case: str) -> int:
    """The instructions of the loop of `case`."""
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command = [*valgrind, "--toggle-collect=CountedLoop", program, case]
    run = subprocess.run(command, capture_output=True, text=True)
    counted = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or counted is None:
        raise SystemExit(f"error: {program} {case!r} failed under valgrind:\n{run.stderr}")
    return int(counted.group(1))


def main(arguments: list[str] | None = None) -> int:
    """Prints a line for each case; 1 when one is beyond its budget."""
    parser = argparse.ArgumentParser(prog="instructions", description=__doc__)
    parser.add_argument("program", help="the built core_loops")
    parser.add_argument("--update", action="store_true", help="record the counts as the budgets")
    options = parser.parse_args(arguments)
    if shutil.which("valgrind") is None:
        print("error: no valgrind: install it (Debian, Ubuntu: apt-get install valgrind)")
        return 2
    counts = {
        case: round(count_instructions(options.program, case) / rows, 2)
        for case, rows in list_cases(options.program).items()
    }
    if options.update:
        BUDGETS.write_text(json.dumps(counts, indent=2) + "\n")
    budgets = json.loads(BUDGETS.read_text())
    if budgets.keys() != counts.keys():
        differing = ", ".join(sorted(budgets.keys() ^ counts.keys()))
        print(f"error: {BUDGETS.name} and the program have other cases: {differing}. Use --update.")
        return 2
    print("Instructions a row: counted, and the budget")
    beyond = [case for case in counts if counts[case] > budgets[case] * (1 + SLACK)]
    for case, count in counts.items():
        verdict = "  BEYOND" if case in beyond else ""
        print(f"{count:10.2f} {budgets[case]:10.2f}  {case}{verdict}")
    if beyond:
        print(f"error: {len(beyond)} of {len(counts)} loops take over {SLACK:.0%} more than before")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
