"""What is not needed is not imported: the program starts quickly, and works without the extras."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import boundwatch as bw
from boundwatch.cli import main

HEAVY = {"torch", "matplotlib", "pyarrow", "ray", "gymnasium", "joblib", "pandas", "scipy.stats"}


def loaded_modules(code, folder):
    done = subprocess.run(
        [sys.executable, "-c", code + "\nimport sys; print('MODULES', *sys.modules)"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split("MODULES")[1].split())


def test_import_of_the_package(tmp_path):
    assert "numpy" not in loaded_modules("import boundwatch", tmp_path)
    modules = loaded_modules("import boundwatch as bw; bw.Certificate, bw.HypothesisTest", tmp_path)
    assert "boundwatch.certificates.certificate" in modules
    assert not modules & (HEAVY | {"boundwatch.cli", "boundwatch.training"})


COMMANDS = """
import sys
from boundwatch.cli import main
LINES = "check certificate.json worse.csv|certify costs.csv -o new.json|show certificate.json|--help"
for line in LINES.split("|"):
    sys.argv = ["boundwatch", *line.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code
"""


def test_commands(folder):
    modules = loaded_modules(COMMANDS, folder)
    assert "boundwatch.cli.judging" in modules
    assert not modules & HEAVY


def test_the_installed_script():
    script = Path(sys.executable).parent / "boundwatch"
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"boundwatch {bw.__version__}\n"


def test_the_test_would_notice(folder):
    modules = loaded_modules("import matplotlib", folder)
    assert modules & HEAVY == {"matplotlib"}


@pytest.mark.parametrize(
    ("trouble", "code", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGINT)", 130, "boundwatch: interrupted"),
        ("raise MemoryError", 1, "boundwatch: there is not enough memory to start; free some, or use"),
        ("raise ImportError('libx.so: failed to map segment from shared object')", 1, "boundwatch: there is"),
    ],
)
def test_what_ends_the_program_while_it_starts_is_one_line(tmp_path, trouble, code, said):
    program = f"""
import os, signal, sys
class Trouble:
    def find_spec(name, *_):
        if name == "boundwatch.detectors":
            {trouble}
sys.meta_path.insert(0, Trouble)
from boundwatch.__main__ import main
main()
"""
    command = [sys.executable, "-c", program, "show"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


def test_ctrl_c_between_the_imports_and_the_command(capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        main(interrupted)
    assert ended.value.code == 130
    assert capsys.readouterr().err == "boundwatch: interrupted\n"
