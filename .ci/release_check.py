"""Check whether this checkout is fit to be released: `make release-check`.

    versions     both _version.py, CHANGELOG.md and CITATION.cff agree; --final also wants a release, not "unreleased"
    held-out     the frozen suite was run with this version and the bundled weights; a warning without --final
    packages     the wheels and source distributions of both packages build, twice with the same bytes, and an index
                 will show README
    contents     each wheel has what belongs to it, nothing that belongs to the repository alone, and a size as expected
    install      causal-arrow installs into an empty environment of 600 MB at most, without torch and pyarrow, and the
                 demo runs from it, with each `--python` that this machine has
    lab          causal-arrow-lab installs beside it and draws a table
    documents    the site builds without a warning

It needs the Python of `make docs`, and installs into a temporary folder only. PIP_OPTIONS are pip's, as for make.
`--dist FOLDER` keeps the packages that were built.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT, LAB = "src/causal_arrow/_version.py", "lab/src/causal_arrow_lab/_version.py"
WHEELS = {"causal_arrow": 14_000_000, "causal_arrow_lab": 3_000_000}
"""Largest size of each wheel in bytes. A network has 4.6 MB."""
BELONGS_INSIDE = (
    "causal_arrow/py.typed",
    "causal_arrow/network/weights/arrow-base/model.safetensors",
    "causal_arrow/network/weights/arrow-strict/model.safetensors",
    "causal_arrow/examples/data/hospital.csv",
    "causal_arrow/examples/data/sachs-pooled.tsv.gz",
    "causal_arrow/web/static/index.html",
    "causal_arrow_lab/py.typed",
    "causal_arrow_lab/benchmarks/data/ecoli70.json",
    "causal_arrow_lab/pretraining/configs/base.toml",
)
INSTALLED_MB = 600
"""Largest size of an environment with causal-arrow in it."""
HELD_OUT_DATASETS = 100
"""Per row: whoever stops earlier may have stopped because the results were good."""
STAYS_OUTSIDE = re.compile(r"(^|/)(tests?|docs|records|runs|\.ci|\.github)(/|$)|\.jsonl|\.pyc$|(^|/)test_")


class NotFit(Exception):
    """Why this checkout must not be released, in a sentence."""


# Versions


def disagreements(root: Path, final: bool = False) -> list[str]:
    """Contradictions about the version between the files of a checkout."""
    version = version_of(root)
    of_lab = version_of(root, LAB)
    title = _only(root / "CHANGELOG.md", r"^## (.+)$", first=True)
    cited = _only(root / "CITATION.cff", r"^version: (.+)$")
    dates = re.findall(r"^date-released: (\S+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    base, _, development = version.partition(".dev")
    found = []
    if of_lab != version:
        found.append(f"{LAB} has version {of_lab}, {PRODUCT} {version}.")
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


def version_of(root: Path, file: str = PRODUCT) -> str:
    """The version of a checkout."""
    return _only(root / file, r'^__version__ = "(.+)"$')


def _only(path: Path, pattern: str, first: bool = False) -> str:
    matches = re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    if not matches or (len(matches) > 1 and not first):
        raise NotFit(f"{path.name} has {len(matches)} lines like {pattern}: expected one.")
    return str(matches[0]).strip('"')


# The frozen suite


def lacks_held_out(root: Path) -> str:
    """A sentence about missing records of the frozen suite for this version and the bundled weights, or "".

    A dataset on which Arrow failed counts as run: that is a result too.
    """
    from causal_arrow_lab.benchmarks.methods.protocol import file_checksum
    from causal_arrow_lab.benchmarks.records import read_records
    from causal_arrow_lab.benchmarks.suites import SUITES

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
        f"`causal-arrow-lab benchmark held-out --methods arrow --datasets {HELD_OUT_DATASETS} "
        "--output held-out-records`, then `python docs/tools/make_pages.py --add held-out-records held-out`."
    )


# Packages


def complaints(package: str, names: Sequence[str], size: int) -> list[str]:
    """Problems of a wheel of a package with these files and this many bytes."""
    inside = [name for name in BELONGS_INSIDE if name.startswith(f"{package}/")]
    found = [f"The wheel lacks {name}." for name in inside if name not in names]
    found += [f"The wheel has {name}, which does not belong there." for name in names if _is_stray(package, name)]
    if size > WHEELS[package]:
        found.append(f"The wheel has {size / 1e6:.1f} MB: expected at most {WHEELS[package] / 1e6:.0f}.")
    return found


def _runs(interpreter: str) -> bool:
    """Whether there is such an interpreter: a name on the path may stand for one that is not installed."""
    if shutil.which(interpreter) is None:
        return False
    return subprocess.run([interpreter, "-c", ""], capture_output=True, check=False).returncode == 0


def _is_stray(package: str, name: str) -> bool:
    """Whether a file belongs to the repository alone, or to another package."""
    top = name.partition("/")[0]
    return bool(STAYS_OUTSIDE.search(name)) or not (top == package or top.endswith(".dist-info"))


def make_reproducible(path: Path, epoch: int) -> None:
    """Pack a source distribution again with its files sorted, one time and no owner; setuptools keeps the build's."""
    with tarfile.open(path) as archive:
        members = {member.name: (member, archive.extractfile(member)) for member in archive.getmembers()}
        content = {name: file.read() if file else b"" for name, (_, file) in members.items()}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(members):
            member = members[name][0]
            member.mtime, member.pax_headers = epoch, {}
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            archive.addfile(member, io.BytesIO(content[name]))
    path.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch))


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


@dataclass(frozen=True)
class Check:
    """One run, with its temporary folder."""

    folder: Path
    final: bool
    pip_options: tuple[str, ...]
    dist: Path | None = None  # where the packages are kept
    pythons: tuple[str, ...] = ()  # to install with; this one if none of them is there

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
        # Both builds take the time of the last commit for every file.
        epoch = int(_git("log", "-1", "--format=%ct"))
        for folder in ("dist", "again"):
            for source in (ROOT, ROOT / "lab"):
                command = ("-m", "build", "--outdir", str(self.folder / folder), str(source))
                run(tools, *command, cwd=self.folder, SOURCE_DATE_EPOCH=str(epoch))
            for path in (self.folder / folder).glob("*.tar.gz"):
                make_reproducible(path, epoch)
        built = sorted((self.folder / "dist").iterdir())
        if differing := [path.name for path in built if checksum(path) != checksum(self.folder / "again" / path.name)]:
            raise NotFit(f"A second build gave other bytes: {', '.join(differing)}.")
        run(tools, "-m", "twine", "check", "--strict", *map(str, built))
        if self.dist is not None:
            shutil.copytree(self.folder / "dist", self.dist, dirs_exist_ok=True)
        return "; ".join(
            f"{path.name} {path.stat().st_size / 1e6:.1f} MB, sha256 {checksum(path)[:12]}" for path in built
        )

    def contents(self) -> str:
        found, counts = [], []
        for package, readme in (("causal_arrow", ROOT / "README.md"), ("causal_arrow_lab", ROOT / "lab" / "README.md")):
            path = self._wheel(package)
            with zipfile.ZipFile(path) as wheel:
                names = wheel.namelist()
                metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
                described = wheel.read(metadata).decode("utf-8")
            found += complaints(package, names, path.stat().st_size)
            if readme.read_text(encoding="utf-8").strip() not in described:
                found.append(f"The wheel of {package} does not carry {readme.relative_to(ROOT)} as its description.")
            counts.append(f"{package} {len(names)} files")
        if found:
            raise NotFit(" ".join(found))
        return ", ".join(counts)

    def install(self) -> str:
        there = [python for python in self.pythons if _runs(python)] or [sys.executable]
        return "; ".join(self._installed_by(python, f"empty-{index}") for index, python in enumerate(there))

    def _installed_by(self, interpreter: str, name: str) -> str:
        """Install the wheel with an interpreter and run the demo; the result in words."""
        python = self._installed(name, str(self._wheel("causal_arrow")), interpreter=interpreter)
        away = self._away(python, "causal_arrow", name)
        shutil.copy(ROOT / "examples" / "demo.py", away)
        for unwanted in ("torch", "pyarrow"):
            find = f"import importlib.util; print(importlib.util.find_spec({unwanted!r}))"
            if run(python, "-c", find).strip() != "None":
                raise NotFit(f"causal-arrow brings {unwanted}.")
        size = sum(path.lstat().st_size for path in python.parents[1].rglob("*")) / 1e6
        if size > INSTALLED_MB:
            raise NotFit(f"The environment has {size:.0f} MB: expected at most {INSTALLED_MB}.")
        start = time.monotonic()
        said = run(python, "demo.py", cwd=away)
        pictures = sorted(path.name for path in (away / "demo").glob("*.png"))
        if "The truth, -1.80" not in said or "hospital.png" not in pictures:
            raise NotFit("The demo ended without its result or its pictures.")
        version = run(python, "-c", "import platform; print(platform.python_version())").strip()
        took = f"the demo took {time.monotonic() - start:.0f} s and drew {len(pictures)} pictures"
        return f"Python {version}: {size:.0f} MB, {took}"

    def lab(self) -> str:
        python = self._installed("lab", str(self._wheel("causal_arrow")), str(self._wheel("causal_arrow_lab")))
        away = self._away(python, "causal_arrow_lab", "lab")
        run(python, "-m", "causal_arrow_lab", "simulate", "--output", "made", cwd=away)
        return ", ".join(sorted(path.name for path in (away / "made").iterdir()))

    def _installed(self, name: str, *wheels: str, interpreter: str = sys.executable) -> Path:
        """The Python of a new environment with these wheels."""
        python = self._environment(name, interpreter)
        constraints = ("--constraint", str(ROOT / "constraints.txt"))
        run(python, "-m", "pip", "install", *constraints, *self.pip_options, *wheels)
        return python

    def _away(self, python: Path, package: str, name: str) -> Path:
        """A folder away from the checkout, in which the installed package is found and says its version."""
        away = self.folder / f"away-{name}"
        away.mkdir()
        where = run(python, "-c", f"import {package}; print({package}.__file__)", cwd=away).strip()
        if not Path(where).is_relative_to(python.parents[1]):
            raise NotFit(f"The package was imported from {where}, not from the wheel.")
        said = run(python, "-m", package, "--version", cwd=away).strip()
        if said != f"{package.replace('_', '-')} {self.versions()}":
            raise NotFit(f"The installed program says that it is {said}.")
        return away

    def documents(self) -> str:
        run(Path(sys.executable), "-m", "mkdocs", "build", "--strict", "--site-dir", str(self.folder / "site"))
        pages = len(list((self.folder / "site").rglob("*.html")))
        return f"{pages} pages"

    def _wheel(self, package: str) -> Path:
        return next((self.folder / "dist").glob(f"{package}-*.whl"))

    def _environment(self, name: str, interpreter: str = sys.executable) -> Path:
        """The Python of a new, empty environment."""
        folder = self.folder / name
        subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
        return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


STEPS: dict[str, Callable[[Check], str]] = {
    "versions": Check.versions,
    "held-out": Check.held_out,
    "packages": Check.packages,
    "contents": Check.contents,
    "install": Check.install,
    "lab": Check.lab,
    "documents": Check.documents,
}


def run(python: Path, *arguments: str, cwd: Path = ROOT, **variables: str) -> str:
    """What a Python prints; NotFit with the end of what it said if it fails."""
    quiet = {"PIP_QUIET": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "NO_MKDOCS_2_WARNING": "1", "MPLBACKEND": "agg"}
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    if python == Path(sys.executable) and "PYTHONPATH" in os.environ:  # of this checkout, where it is not installed
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    done = subprocess.run(
        [str(python), *arguments],
        cwd=cwd,
        env={**environment, **quiet, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise NotFit(f"{shlex.join(['python', *arguments])} failed:\n{last}")
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"some of {', '.join(STEPS)}; all by default")
    parser.add_argument("--final", action="store_true", help="refuse a development version, or one without held-out")
    parser.add_argument("--dist", type=Path, help="keep the packages in this folder")
    parser.add_argument("--python", action="append", default=[], help="an interpreter to install with; may be repeated")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.steps if name not in STEPS]:
        parser.error(f"there is no step {unknown[0]}: expected some of {', '.join(STEPS)}")
    chosen = [name for name in STEPS if name in (options.steps or STEPS)]
    with tempfile.TemporaryDirectory() as folder:
        pip_options = tuple(shlex.split(os.environ.get("PIP_OPTIONS", "")))
        check = Check(Path(folder), options.final, pip_options, options.dist, tuple(options.python))
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
