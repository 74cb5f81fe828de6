"""Write the bundled networks in Hugging Face's layout: `python docs/tools/hub.py FOLDER`.

Each network gets a folder with its configuration, its weights as safetensors, the license, and a model card, README.md,
which is docs/model/card.md below the metadata that Hugging Face reads. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from causal_arrow import __version__
from causal_arrow.network import bundled_models
from causal_arrow_lab.programs import run_program

ROOT = Path(__file__).parents[2]
METADATA = """---
license: mit
library_name: causal-arrow
tags:
- causal-discovery
- causality
- tabular
- safetensors
- arxiv:2605.07204
---

"""
USE = """
## Use this copy

```sh
pip install "causal-arrow=={version}"
```

```python
from causal_arrow import Arrow, load_example

arrow = Arrow(model="{name}").fit(load_example("hospital"))
```

The package holds the same weights. `Arrow(model=FOLDER)` reads a downloaded copy.
"""


def card(name: str) -> str:
    """The model card of a network. Links into the documents become plain words, because the documents are elsewhere."""
    text = (ROOT / "docs" / "model" / "card.md").read_text(encoding="utf-8")
    text = re.sub(r"<!--.*?-->\n*", "", text, flags=re.DOTALL)
    text = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]+\)", r"\1", text)
    title, rest = text.split("\n", 1)
    return f"{METADATA}{title}: {name}\n{rest.rstrip()}\n{USE.format(name=name, version=__version__)}"


def run(options: argparse.Namespace) -> None:
    """Write the folder of each network."""
    for name, source in bundled_models().items():
        folder: Path = options.folder / name
        shutil.copytree(source, folder, dirs_exist_ok=True)
        shutil.copy(ROOT / "LICENSE", folder)
        (folder / "README.md").write_text(card(name), encoding="utf-8")
        print(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("folder", type=Path, help="where to write a folder for each network")
    return run_program(parser, run, arguments)


if __name__ == "__main__":
    sys.exit(main())
