"""Build the wheel and the sdist, and try the wheel as a new user would: ``python tools/check_dist.py DIST``.

The wheel goes into an empty environment with the core dependencies only. The README's commands run from
there, in a folder that holds nothing but the example data.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LARGEST = 1_000_000  # bytes of the wheel
BLOCK = re.compile(r"^```console\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
OURS = re.compile(r"boundwatch(-[\d.]+\w*\.dist-info)?/")


def main(folder: Path) -> None:
    """Build into a folder, which is emptied first, and check what was built."""
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT))
    wheel = next(folder.glob("*.whl"))
    check_contents(wheel)
    with tempfile.TemporaryDirectory() as name:
        try_wheel(wheel.resolve(), Path(name))
        list_parts(Path(name), folder / f"{wheel.name.split('-py3')[0]}.cdx.json")
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes; installed alone, the README's commands run")


def check_contents(wheel: Path) -> None:
    """Refuse a wheel that is large, or holds more than the package."""
    if wheel.stat().st_size >= LARGEST:
        sys.exit(f"{wheel.name} has {wheel.stat().st_size:,} bytes; keep it below {LARGEST:,}")
    with zipfile.ZipFile(wheel) as archive:
        strangers = [name for name in archive.namelist() if not OURS.match(name)]
    if strangers:
        sys.exit(f"{wheel.name} holds {strangers[0]}, which is not part of the package")


def try_wheel(wheel: Path, folder: Path) -> None:
    """Install the wheel into an empty environment and run the README there."""
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    programs = environment / ("Scripts" if os.name == "nt" else "bin")
    run(
        str(programs / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "-c",
        str(ROOT / "constraints.txt"),
        str(wheel),
    )
    work = folder / "work"
    shutil.copytree(ROOT / "examples" / "data", work / "examples" / "data")
    shutil.copy(ROOT / "README.md", work)
    run(str(programs / "python"), "-m", "doctest", "README.md", cwd=work)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    commands = [line[2:] for line in "\n".join(blocks).splitlines() if line.startswith("$ ")]
    if not commands:
        sys.exit("README.md shows no command; nothing was tried")
    for command in commands:
        run("bash", "-euo", "pipefail", "-c", command, cwd=work, path=path)


def list_parts(folder: Path, bill: Path) -> None:
    """Write the software bill of materials: what pip installed with the wheel, and under which licenses."""
    settings = ("--short-PURLs", "--output-reproducible", "--pyproject", str(ROOT / "pyproject.toml"))
    run(
        sys.executable,
        "-m",
        "cyclonedx_py",
        "environment",
        *settings,
        "-o",
        str(bill),
        str(folder / "environment"),
    )
    content = json.loads(bill.read_text(encoding="utf-8"))
    if not {"numpy", "scipy", "msgspec"} <= {part["name"] for part in content["components"]}:
        sys.exit(f"{bill.name} lacks something that boundwatch needs")
    for part in content["components"]:
        part.pop("externalReferences", None)  # where this machine had it from
    bill.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def run(*command: str, cwd: Path | None = None, path: str = os.environ["PATH"]) -> None:
    """Run a command with nothing of this checkout in its way; end with its exit code if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PATH": path}
    done = subprocess.run(command, cwd=cwd, env=environment, check=False)
    if done.returncode:
        sys.exit(f"exit {done.returncode}: {' '.join(command)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
