"""``scripts/install``: what it installs, shows, and tells uv of pip's settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "pip_settings.py"


def _exports(configured: str, **variables: str) -> dict[str, str]:
    """The variables that a shell has after it has evaluated what the script prints."""
    command = f'eval "$({sys.executable} {SCRIPT})" && export uv_options && env'
    inherited = {"PATH": os.environ["PATH"], **variables}
    done = subprocess.run(
        ["sh", "-c", command],
        input=configured,
        env=inherited,
        capture_output=True,
        text=True,
        check=True,
    )
    after = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    return {
        name: value
        for name, value in after.items()
        if name.startswith(("UV_", "SSL_", "ALL_", "uv_")) and variables.get(name, "") != value
    }


@pytest.mark.parametrize(
    ("configured", "exported"),
    [
        ("", {}),
        ("global.disable-pip-version-check='1'\nfreeze.exclude='torch'\n", {}),
        ("global.index-url='https://i/simple'", {"UV_DEFAULT_INDEX": "https://i/simple"}),
        (
            "global.extra-index-url='\\nfile:///a\\nfile:///b'",
            {"UV_INDEX": "file:///a file:///b", "UV_INDEX_STRATEGY": "unsafe-best-match"},
        ),
        ("global.find-links='/a /b'", {"UV_FIND_LINKS": "/a,/b"}),
        (
            "install.find-links='/install'\n:env:.find-links='/env'\nglobal.find-links='/global'",
            {"UV_FIND_LINKS": "/env"},
        ),
        (":env:.cert='/it is/ca.crt'", {"SSL_CERT_FILE": "/it is/ca.crt"}),
        (
            "global.index-url='https://u:p$HOME`id`@i/'",
            {"UV_DEFAULT_INDEX": "https://u:p$HOME`id`@i/"},
        ),
        ("global.no-index='True'", {"uv_options": "--no-index"}),
        ("global.no-index='true'\n:env:.no-index='0'", {}),
    ],
    ids=[
        *("none", "others", "index", "indexes", "folders", "sections", "blank", "shell"),
        *("no index", "an index after all"),
    ],
)
def test_settings_of_pip_hold_for_uv(configured: str, exported: dict[str, str]) -> None:
    assert _exports(configured) == exported


def test_settings_of_uv_win() -> None:
    assert _exports("global.find-links='/pip'", UV_FIND_LINKS="/uv") == {}


# The script, with programs that note what they are asked to install


#: Stands in for Python, and for pip within: creates an environment of itself, and of uv.
_PYTHON = f"""\
#!/bin/sh
case "$*" in
    "-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python && touch .venv/bin/activate ;;
    *"config list") echo "$PIP_SETTINGS" ;;
    "-m pip"*)
        for word; do :; done
        case $word in $REFUSED) exit 1 ;; esac
        echo "pip $*" >>calls
        echo "Downloading https://index/$word-1.0-py3-none-any.whl (20.5 MB)"
        [ "$word" != uv ] || cp programs/uv .venv/bin/uv
        ;;
    *) exec {sys.executable} "$@" ;;
esac
"""

#: Stands in for uv; that of the user may be broken.
_UV = """\
#!/bin/sh
case "$0 $*" in
    *"/programs/uv --version") exit "${BROKEN_UV:-0}" ;;
    *" --dry-run "*) echo "uv $*" >>calls; exit 1 ;;
esac
echo "uv $*" >>calls
echo "Downloading torch (190.3MiB)"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that the script reads of a checkout, and in ``programs`` those that it starts."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "extras").mkdir()
    for name in ("pyproject.toml", "constraints.txt", "extras/pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    programs = {
        "python3": _PYTHON,
        "python3.12": "#!/bin/sh\necho 3 12 1 /elsewhere\n",
        "uv": _UV,
        "uname": '#!/bin/sh\necho "${SYSTEM:-Linux}"\n',
        "nvidia-smi": '#!/bin/sh\nexit "${NVIDIA_SMI:-1}"\n',
    }
    (tmp_path / "programs").mkdir()
    for name, text in programs.items():
        program = tmp_path / "programs" / name
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
    return tmp_path


def _install(checkout: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    inherited = {"PATH": f"{checkout / 'programs'}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        [checkout / "scripts" / "install"],
        env={**inherited, "PIP_SETTINGS": "", "REFUSED": "nothing", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def _calls(checkout: Path) -> list[str]:
    return (checkout / "calls").read_text(encoding="utf-8").splitlines()


_NO_GPU = pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="this machine has a GPU")


@pytest.mark.parametrize(("settings", "given"), [("", False), ("global.no-index='yes'", True)])
def test_no_index_holds_whatever_uv_installs(checkout: Path, settings: str, given: bool) -> None:
    done = _install(checkout, EXTRAS="torch", PIP_SETTINGS=settings)
    assert done.returncode == 0, done.stderr
    assert {" --no-index " in call for call in _calls(checkout)} == {given}


@pytest.mark.parametrize(
    ("machine", "extra"),
    [
        pytest.param({}, "all-cpu", marks=_NO_GPU),
        ({"NVIDIA_SMI": "0"}, "all"),
        ({"SYSTEM": "Darwin"}, "all"),
    ],
    ids=["without a GPU", "with a GPU", "macOS"],
)
def test_builds_follow_the_machine(checkout: Path, machine: dict[str, str], extra: str) -> None:
    done = _install(checkout, EXTRAS="dev,all", **machine)
    assert done.returncode == 0, done.stderr
    *_, last = _calls(checkout)
    assert last.endswith(f" --editable .[dev,{extra}] --editable ./extras")
    assert ("--torch-backend cpu" in last) == (extra == "all-cpu")


@_NO_GPU
def test_large_downloads_are_shown(checkout: Path) -> None:
    requested = {"EXTRAS": "torch", "INSTALLER": "pip"}
    done = _install(checkout, **requested, BROKEN_UV="1", REFUSED="torch==*+cpu")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "Creating .venv",
        "Installing fwbench[torch]; large downloads:",
        "  uv-1.0-py3-none-any.whl: 20.5 MB",
        "  torch: 190.3MiB",
        "  extras-1.0-py3-none-any.whl: 20.5 MB",
    ]


def test_what_cannot_be_installed(checkout: Path) -> None:
    requested = {"EXTRAS": "dev", "INSTALLER": "pip"}
    done = _install(checkout, **requested, REFUSED=".*")
    assert done.returncode == 1
    assert "pip cannot install .[dev]; the whole output is in .venv/fwbench-log" in done.stderr
    repeated = _install(checkout, **requested)
    assert repeated.stdout.startswith("Installing fwbench[dev]")
    assert _install(checkout, **requested).stdout == ""


# What is there


def test_what_is_missing_is_added(checkout: Path) -> None:
    """Another target adds its extras, and neither it nor an active environment removes anything."""
    assert "Creating .venv\n" in _install(checkout, EXTRAS="torch").stdout
    own = checkout / ".venv" / "of the user"
    own.write_text("", encoding="utf-8")
    added = _install(checkout, EXTRAS="dev")
    assert added.stdout.startswith("Installing fwbench[torch,dev]; large downloads:\n")
    assert _calls(checkout)[-1].endswith(" --editable .[torch,dev] --editable ./extras")
    for more in ({"EXTRAS": "torch"}, {"EXTRAS": "dev,torch", "PYTHON": ".venv/bin/python"}):
        done = _install(checkout, **more)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (checkout / "constraints.txt").write_text("uv==1\ntorch==3\n", encoding="utf-8")
    assert "fwbench[torch,dev]" in _install(checkout, EXTRAS="dev").stdout
    assert own.exists()


def test_an_interrupted_creation_is_repeated(checkout: Path) -> None:
    _install(checkout, EXTRAS="dev")
    (checkout / ".venv" / "bin" / "activate").unlink()
    assert "Creating .venv\n" in _install(checkout, EXTRAS="dev").stdout


def test_an_environment_that_does_not_fit_stays(checkout: Path) -> None:
    _install(checkout, EXTRAS="dev")
    moved = checkout / "moved"
    shutil.copytree(checkout, moved, ignore=lambda *_: ["moved"])
    cases = {
        "built on another Python than python3.12": (checkout, {"PYTHON": "python3.12"}),
        f"was created in {checkout}": (moved, {}),
    }
    for reason, (place, variables) in cases.items():
        done = _install(place, EXTRAS="torch", **variables)
        assert (done.returncode, done.stdout) == (1, "")
        assert reason in done.stderr
        assert "remove it: rm -rf .venv" in done.stderr
        assert (place / ".venv" / "bin" / "activate").exists()
    (checkout / ".venv" / "fwbench-origin").unlink()
    done = _install(checkout, EXTRAS="dev")
    assert done.returncode == 1
    assert "mv .venv .venv-mine" in done.stderr


@_NO_GPU
def test_builds_stay_when_a_gpu_appears(checkout: Path) -> None:
    _install(checkout, EXTRAS="tensorflow,torch")
    done = _install(checkout, EXTRAS="tensorflow,dev", NVIDIA_SMI="0")
    assert "keeps its builds of frameworks (cpu)" in done.stderr
    assert _calls(checkout)[-1].endswith(" .[tensorflow-cpu,torch,dev] --editable ./extras")


@pytest.mark.parametrize(
    ("target", "developing"), [("bench", False), ("venv", False), ("test", True)]
)
def test_a_measurement_installs_what_measures(
    checkout: Path, target: str, developing: bool
) -> None:
    shutil.copy(ROOT / "Makefile", checkout)
    (checkout / "scripts" / "install").write_text("#!/bin/sh\necho $EXTRAS\n", encoding="utf-8")
    # By the call of make that runs these tests.
    given = ("EXTRAS", "PYTHON", "MAKEFLAGS", "MAKELEVEL")
    done = subprocess.run(
        ["make", target, "BIN=none"],
        cwd=checkout,
        env={name: value for name, value in os.environ.items() if name not in given},
        capture_output=True,
        text=True,
        check=False,
    )
    extras = done.stdout.splitlines()[0].split(",")
    assert {"tensorflow", "mxnet", "torch", "since"} <= {*extras}
    assert ("dev" in extras) == developing
