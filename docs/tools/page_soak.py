"""Open sessions on the page one after the other and watch its memory: it must not grow once all caches are full.

    python docs/tools/page_soak.py --sessions 1000

Each session uploads a table, waits for its graph, changes what is known, and is deleted or left behind in turn. The
program ends with status 1 if memory grew by more than MAX_GROWTH between the first third of the run and its end.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tests"))

from causal_arrow.discovery.settings import Settings
from causal_arrow.web.page import Page
from web_server import linear_table, serving  # type: ignore[import-not-found]

MAX_GROWTH = 20e6
ROWS_OF_OUTPUT = 10


def memory() -> int:
    """The resident bytes of this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def main() -> int:
    """Run the sessions and print the memory after each tenth of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sessions", type=int, default=1000)
    count = parser.parse_args().sessions
    sizes = []
    with serving(Page(Settings())) as client:
        for index in range(count):
            table = linear_table(40 + index % 20, 3 + index % 3, seed=index)
            session = client.answered(table)["session"]
            client.argue(session, knowledge={"roots": [str(table.columns[0])]})
            if index % 2:
                client.send("DELETE", f"/api/sessions/{session}")
            sizes.append(memory())
            if (index + 1) % max(1, count // ROWS_OF_OUTPUT) == 0:
                print(f"{index + 1:>6} sessions  {sizes[-1] / 1e6:7.1f} MB", flush=True)
    growth = sizes[-1] - max(sizes[: max(1, count // 3)])
    print(f"Growth after the first third: {growth / 1e6:.1f} MB (at most {MAX_GROWTH / 1e6:.0f} MB).")
    return int(growth > MAX_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
