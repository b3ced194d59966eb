"""Settings that hold for every test, what is trained once for all of them, and the program to run."""

import atexit
import contextlib
import gc
import io
import os
import shutil
import site
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from hypothesis import settings

# Two workers with two threads each would fight for two cores; read by OpenMP, MKL and OpenBLAS at import.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# Hundreds of processes import the package; each would compile it anew where bytecode is not kept.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

CHROMIUM = Path("/usr/bin/chromium")

# A disk may take a tenth of a second to confirm a write, and tests write thousands of files; memory takes
# none. What they show is that files outlive processes, not machines.
MEMORY = Path("/dev/shm")  # noqa: S108  (pytest makes a private folder in it)
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 2**31:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# Nothing of the user's is read or written: neither spools, whose episodes would be delivered to a server of
# a test, nor settings. All workers of xdist share the home of the process that starts them.
if "PYTEST_XDIST_WORKER" not in os.environ:
    HOME = tempfile.mkdtemp(prefix="boundwatch-home-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
    atexit.register(shutil.rmtree, HOME, ignore_errors=True)
    os.environ.setdefault("PYTHONUSERBASE", site.getuserbase())  # where packages may be
    os.environ["HOME"] = HOME
    for variable in [name for name in os.environ if name.startswith(("XDG_", "BOUNDWATCH_"))]:
        if variable not in ("XDG_RUNTIME_DIR", "BOUNDWATCH_SCREENSHOTS", "BOUNDWATCH_MLFLOW"):
            del os.environ[variable]

# The same examples in every run; without a deadline, because the machines are shared.
settings.register_profile("boundwatch", derandomize=True, deadline=None)
settings.load_profile("boundwatch")


def pytest_collection_finish():
    """Keep the collector from walking, again and again, what was imported for thousands of tests."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Kill what a failed test has started and not ended; shared helpers carry no test's name."""
    report = yield
    if report.failed and call.when == "call":
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                test = process.environ().get("PYTEST_CURRENT_TEST", "")
                if test == f"{item.nodeid} (call)" and "multiprocessing" not in "".join(process.cmdline()):
                    process.kill()
    return report


def made_once(factory: pytest.TempPathFactory, name: str) -> tuple[Path, Path]:
    """Return a folder that all workers of xdist share, and a file to lock while making it."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    return root / name, root / f"{name}.lock"


@pytest.fixture(scope="session")
def trained_drone(tmp_path_factory):
    """Return the folder of a small training of the drone. Copy what a test changes."""
    from filelock import FileLock

    from boundwatch.tasks.navigation.train import train
    from doctored.tiny import RECIPE

    folder, lock = made_once(tmp_path_factory, "trained-drone")
    with FileLock(lock):
        train(RECIPE, folder)  # only loads it where another worker was first
    return folder


@pytest.fixture(scope="session")
def trained_arm(tmp_path_factory):
    """Return the folder of a small training of the arm. Copy what a test changes."""
    from filelock import FileLock

    from boundwatch.tasks.grasping.train import train
    from doctored.tiny import GRASPING

    folder, lock = made_once(tmp_path_factory, "trained-arm")
    with FileLock(lock):
        train(GRASPING.recipe, folder)
    return folder


@pytest.fixture(scope="session")
def with_policies(trained_drone, trained_arm):
    """Return a function that puts both policies into a reproduction's folder, where it finds them made."""
    from reproduction.artifacts import key

    from doctored.tiny import GRASPING, POLICY

    def put(output: Path) -> Path:
        for artifact, trained in ((POLICY, trained_drone), (GRASPING, trained_arm)):
            shutil.copytree(trained, output / "cache" / f"unfinished-{key(artifact)}")
        return output

    return put


@pytest.fixture(scope="module")
def browser():
    """Return Debian's Chromium, by Playwright."""
    if not CHROMIUM.exists():
        pytest.skip(f"no {CHROMIUM}")
    from playwright.sync_api import sync_playwright

    switches = ["no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking"]
    switches += ["disable-component-update", "disable-sync", "host-resolver-rules=MAP *.test 127.0.0.1"]
    with sync_playwright() as playwright:
        arguments = [f"--{switch}" for switch in switches]
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """Return the source of axe-core, from npm."""
    if shutil.which("npm") is None:
        pytest.skip("no npm to fetch axe-core with")
    folder = tmp_path_factory.mktemp("axe")
    subprocess.run(["npm", "pack", "--silent", "axe-core@4"], cwd=folder, check=True, capture_output=True)
    with tarfile.open(next(folder.glob("axe-core-*.tgz"))) as archive:
        return archive.extractfile("package/axe.min.js").read().decode()


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that runs ``boundwatch`` in this process, in an empty folder, as the shell would."""
    from boundwatch.cli import main

    monkeypatch.chdir(tmp_path)

    def run_program(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["boundwatch", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Result(ended.value.code or 0, captured.out, captured.err)

    return run_program
