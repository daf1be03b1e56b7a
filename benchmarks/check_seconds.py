"""How long ``irtool check`` takes beside reading the dump, in fresh processes.

    python benchmarks/check_seconds.py DUMP [--devices 64] [--runs 5]

CPU seconds, so that other work on the machine counts little. *Reading* makes the model of a dump;
*checking* is all between the model and the answer: the context is found, entries of the table of
operators are read, strategies are judged, slices and communications predicted. Each run is a
process of its own, set up as the command line sets it up; before the first one that counts, another
has left compiled modules. Told are the seconds of every run and the median of checking / reading.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import process_time

ROOT = Path(__file__).resolve().parents[1]


def measure(path: str, devices: int) -> dict[str, float]:
    """Seconds of reading a dump and of checking it, in this process."""
    from irtool.cli.configuration import read_configuration
    from irtool.cli.context import ContextArguments, parallel_of
    from irtool.cli.inputs.begin import context_of
    from irtool.cli.inputs.dumps import read_statements
    from irtool.cli.main import collect_rarely
    from irtool.cluster.context.weigh import weighed
    from irtool.ir.run import InputFile
    from irtool.sharding.check import check

    collect_rarely()
    file, asked = InputFile(path), ContextArguments({"device_num": devices})
    start = process_time()
    dump = read_statements(file)
    read = process_time()
    context = context_of(file, dump, asked, read_configuration(None))
    weighed(context, check(dump, parallel_of(context, path)))
    return {"reading": read - start, "checking": process_time() - read}


def main() -> int:
    """Measure, and say so."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("dump")
    parser.add_argument("--devices", type=int, default=64)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.dump, options.devices)))
        return 0
    command = [sys.executable, __file__, options.dump, "--devices", str(options.devices), "--here"]
    with tempfile.TemporaryDirectory() as compiled:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        runs = [
            json.loads(
                subprocess.run(command, env=environment, capture_output=True, check=True).stdout
            )
            for _ in range(options.runs + 1)
        ][1:]
    for run in runs:
        reading, checking = run["reading"], run["checking"]
        print(f"reading {reading:.3f} s   checking {checking:.3f} s   {checking / reading:.2f}")
    print(f"median of {len(runs)}: {median(run['checking'] / run['reading'] for run in runs):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
