"""The lines of the page about R run, where R and reticulate are installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from causal_arrow import load_example

PAGE = Path(__file__).parents[1] / "docs" / "guides" / "r.md"
RSCRIPT = shutil.which("Rscript")


def test_the_lines_of_the_page_run_in_r(tmp_path: Path) -> None:
    if RSCRIPT is None or subprocess.run([RSCRIPT, "-e", "library(reticulate)"], capture_output=True).returncode:
        pytest.skip("there is no R with reticulate")
    load_example("hospital").to_csv(tmp_path / "hospital.csv", index=False)
    (code,) = re.findall(r"^```r\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "RETICULATE_PYTHON": sys.executable, "PYTHONPATH": paths}
    ordered = "\nseen <- arrow$discover(patients, ordered = dict(ward = list('medical', 'surgical', 'geriatric')))\n"
    levels = sorted(set(load_example("hospital")["ward"]))
    ordered = ordered.replace("'medical', 'surgical', 'geriatric'", ", ".join(f"'{level}'" for level in levels))
    ordered += "print(seen$table$columns[[3]]$kind)\n"
    (tmp_path / "page.R").write_text(code + ordered)
    run = subprocess.run([RSCRIPT, "page.R"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "800 observations of 7 variables" in run.stdout
    assert "stay changes by" in run.stdout
    assert re.search(r"^1 .* 0\.\d+$", run.stdout, re.MULTILINE)
    assert '[1] "ordered"' in run.stdout
    assert (tmp_path / "graph.svg").stat().st_size > 1000
