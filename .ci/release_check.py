"""Is this checkout fit to be released? `make release-check` asks everything that can be asked before publishing.

    versions     _version.py, CHANGELOG.md and CITATION.cff say the same; --final also wants a release, not "unreleased"
    held-out     the frozen suite was run with this version and the bundled weights; without --final it is only said
    packages     the wheel and the source distribution build, and a package host will show README
    contents     the wheel has the weights, nothing that belongs to the repository alone, and a size as expected
    install      the wheel installs into an empty environment, through constraints.txt, and the demo runs from it
    documents    the site builds with no warning

It needs the Python of `make docs`, and installs into a temporary folder alone. PIP_OPTIONS are pip's, as for make.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LARGEST_WHEEL = 16_000_000
"""Bytes. A network has 4.6 MB, everything else less than 2 MB together."""
BELONGS_INSIDE = (
    "causal_arrow/py.typed",
    "causal_arrow/network/weights/arrow-base/model.safetensors",
    "causal_arrow/network/weights/arrow-strict/model.safetensors",
    "causal_arrow/examples/data/hospital.csv",
    "causal_arrow/benchmarks/data/ecoli70.json",
    "causal_arrow/pretraining/configs/base.toml",
    "causal_arrow/web/static/index.html",
)
HELD_OUT_DATASETS = 100
"""Of each row: whoever stops earlier may have stopped because the results were good."""
STAYS_OUTSIDE = re.compile(r"(^|/)(tests?|docs|records|runs|\.ci|\.github)(/|$)|\.jsonl|\.pyc$|(^|/)test_")


class NotFit(Exception):
    """Why this checkout must not be released, in a sentence."""


# Versions


def disagreements(root: Path, final: bool = False) -> list[str]:
    """What the files of a checkout say differently about its version; nothing if they agree."""
    version = version_of(root)
    title = _only(root / "CHANGELOG.md", r"^## (.+)$", first=True)
    cited = _only(root / "CITATION.cff", r"^version: (.+)$")
    dates = re.findall(r"^date-released: (\S+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    base, _, development = version.partition(".dev")
    found = []
    if cited != version:
        found.append(f"CITATION.cff has version {cited}, _version.py {version}.")
    if development:
        if final:
            found.append(f"{version} is a development version.")
        if title != f"{base} (unreleased)":
            found.append(f'CHANGELOG.md starts with "{title}": expected "{base} (unreleased)".')
        if dates:
            found.append(f"CITATION.cff has a date for {version}, which is not released.")
    elif len(dates) != 1 or title != f"{base} ({dates[0]})":
        shown = dates[0] if dates else "YYYY-MM-DD"
        found.append(
            f'CHANGELOG.md starts with "{title}": expected "{base} ({shown})", the date-released of CITATION.cff.'
        )
    return found


def version_of(root: Path) -> str:
    """The version of a checkout."""
    return _only(root / "src" / "causal_arrow" / "_version.py", r'^__version__ = "(.+)"$')


def _only(path: Path, pattern: str, first: bool = False) -> str:
    matches = re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    if not matches or (len(matches) > 1 and not first):
        raise NotFit(f"{path.name} has {len(matches)} lines like {pattern}: expected one.")
    return str(matches[0]).strip('"')


# The frozen suite


def lacks_held_out(root: Path) -> str:
    """What is lacking of the frozen suite, run with this version and the bundled weights; nothing if it is whole.

    A dataset on which Arrow failed counts as run: that is a result too.
    """
    from causal_arrow.benchmarks.collected import read_records
    from causal_arrow.benchmarks.methods.protocol import file_checksum
    from causal_arrow.benchmarks.suites import SUITES

    version = version_of(root)
    checksum = file_checksum(root / "src" / "causal_arrow" / "network" / "weights" / "arrow-base" / "model.safetensors")
    path = root / "docs" / "evidence" / "records" / "held-out.jsonl.gz"
    run = Counter(
        record.row
        for record in (read_records(path) if path.exists() else [])
        if (record.suite, record.method, record.versions.get("causal-arrow")) == ("held-out", "arrow", version)
        and record.settings.get("weights_checksum") == checksum
        and "scale" not in record.settings
    )
    rows = [row.name for row in SUITES["held-out"].rows()]
    lacking = [row for row in rows if run[row] < HELD_OUT_DATASETS]
    if not lacking:
        return ""
    # Whoever sees its results before everything is decided has no frozen suite any more.
    first = "set the version of the release, " if ".dev" in version else ""
    return (
        f"The suite held-out has not been run with causal-arrow {version} and the bundled weights of arrow-base "
        f"(checksum {checksum}) on {HELD_OUT_DATASETS} datasets in {len(lacking)} of its {len(rows)} rows: {first}run "
        f"`causal-arrow benchmark held-out --methods arrow --datasets {HELD_OUT_DATASETS} --output held-out-records`, "
        "then `python docs/make_pages.py --add held-out-records held-out`."
    )


# Packages


def complaints(names: Sequence[str], size: int) -> list[str]:
    """What is wrong with a wheel of these files and this many bytes."""
    found = [f"The wheel lacks {name}." for name in BELONGS_INSIDE if name not in names]
    found += [
        f"The wheel has {name}, which belongs to the repository alone." for name in names if STAYS_OUTSIDE.search(name)
    ]
    if size > LARGEST_WHEEL:
        found.append(f"The wheel has {size / 1e6:.1f} MB: expected at most {LARGEST_WHEEL / 1e6:.0f}.")
    return found


@dataclass(frozen=True)
class Check:
    """One run, with its temporary folder."""

    folder: Path
    final: bool
    pip_options: tuple[str, ...]

    def versions(self) -> str:
        if found := disagreements(ROOT, self.final):
            raise NotFit(" ".join(found))
        return version_of(ROOT)

    def held_out(self) -> str:
        lacking = lacks_held_out(ROOT)
        if lacking and self.final:
            raise NotFit(lacking)
        return f"Needed for --final. {lacking}" if lacking else f"run with {version_of(ROOT)}"

    def packages(self) -> str:
        tools = self._environment("tools")
        run(tools, "-m", "pip", "install", *self.pip_options, "build", "twine")
        run(tools, "-m", "build", "--outdir", str(self.folder / "dist"), str(ROOT), cwd=self.folder)
        built = sorted((self.folder / "dist").iterdir())
        run(tools, "-m", "twine", "check", "--strict", *map(str, built))
        return ", ".join(f"{path.name} {path.stat().st_size / 1e6:.1f} MB" for path in built)

    def contents(self) -> str:
        with zipfile.ZipFile(self._wheel) as wheel:
            names = wheel.namelist()
            metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
            described = wheel.read(metadata).decode("utf-8")
        found = complaints(names, self._wheel.stat().st_size)
        if (ROOT / "README.md").read_text(encoding="utf-8").strip() not in described:
            found.append("The wheel does not carry README.md as its description.")
        if found:
            raise NotFit(" ".join(found))
        return f"{len(names)} files"

    def install(self) -> str:
        python = self._environment("empty")
        constraints = ("--constraint", str(ROOT / "constraints.txt"))
        run(python, "-m", "pip", "install", *constraints, *self.pip_options, f"{self._wheel}[files]")
        away = self.folder / "away"  # from the checkout, whose sources must not be found
        away.mkdir()
        shutil.copy(ROOT / "examples" / "demo.py", away)
        where = run(python, "-c", "import causal_arrow; print(causal_arrow.__file__)", cwd=away).strip()
        if not Path(where).is_relative_to(python.parents[1]):
            raise NotFit(f"The package was imported from {where}, not from the wheel.")
        version = run(python, "-m", "causal_arrow", "--version", cwd=away).strip()
        if version != f"causal-arrow {self.versions()}":
            raise NotFit(f"The installed program says that it is {version}.")
        start = time.monotonic()
        said = run(python, "demo.py", cwd=away)
        pictures = sorted(path.name for path in (away / "demo").glob("*.png"))
        if "The truth, -1.80" not in said or "hospital.png" not in pictures:
            raise NotFit("The demo ended without its result or its pictures.")
        return f"{version}; the demo took {time.monotonic() - start:.0f} s and drew {len(pictures)} pictures"

    def documents(self) -> str:
        run(Path(sys.executable), "-m", "mkdocs", "build", "--strict", "--site-dir", str(self.folder / "site"))
        pages = len(list((self.folder / "site").rglob("*.html")))
        return f"{pages} pages"

    @property
    def _wheel(self) -> Path:
        return next((self.folder / "dist").glob("*.whl"))

    def _environment(self, name: str) -> Path:
        """The Python of a new, empty environment."""
        folder = self.folder / name
        venv.create(folder, with_pip=True)
        return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


STEPS: dict[str, Callable[[Check], str]] = {
    "versions": Check.versions,
    "held-out": Check.held_out,
    "packages": Check.packages,
    "contents": Check.contents,
    "install": Check.install,
    "documents": Check.documents,
}


def run(python: Path, *arguments: str, cwd: Path = ROOT) -> str:
    """What a Python prints; NotFit with the end of what it said if it fails."""
    quiet = {"PIP_QUIET": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "NO_MKDOCS_2_WARNING": "1", "MPLBACKEND": "agg"}
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    if python == Path(sys.executable) and "PYTHONPATH" in os.environ:  # of this checkout, where it is not installed
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    done = subprocess.run(
        [str(python), *arguments], cwd=cwd, env={**environment, **quiet}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise NotFit(f"{shlex.join(['python', *arguments])} failed:\n{last}")
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"some of {', '.join(STEPS)}; all by default")
    parser.add_argument("--final", action="store_true", help="refuse a development version, or one without held-out")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.steps if name not in STEPS]:
        parser.error(f"there is no step {unknown[0]}: expected some of {', '.join(STEPS)}")
    chosen = [name for name in STEPS if name in (options.steps or STEPS)]
    with tempfile.TemporaryDirectory() as folder:
        check = Check(Path(folder), options.final, tuple(shlex.split(os.environ.get("PIP_OPTIONS", ""))))
        for name in chosen:
            start = time.monotonic()
            try:
                told = STEPS[name](check)
            except NotFit as reason:
                print(f"{name}: NOT FIT. {reason}", flush=True)
                return 1
            print(f"{name}: {told} ({time.monotonic() - start:.0f} s)", flush=True)
    print("Fit to be released." if options.final else "Fit, as far as this can tell.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
