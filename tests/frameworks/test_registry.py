"""Frameworks are found through entry points, whoever's they are, and said to be unusable."""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from fwbench import errors
from fwbench.errors import DeclarationError, FrameworkBroken, FrameworkMissing, FwbenchError
from fwbench.frameworks import registry
from fwbench.terms.names import GROUP
from support.tables import tabled

#: A framework's file, as another package has it.
FILE = """
from fwbench.frameworks.numpy.framework import NumPy

class Mars(NumPy):
    name = "mars"
    requested = None

    def set_threads(self, threads):
        self.requested = threads

    def threads(self):
        return self.requested
"""


class Site:
    """A folder of installed packages, on the path of this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(
        self,
        package: str,
        file: str = FILE,
        *,
        name: str = "mars",
        value: str | None = None,
        extra: str | None = None,
    ) -> None:
        """Install a package that names a framework.

        Args:
            package: its name; its module is named alike.
            value: what the entry point names; default: the class Mars of the module.
        """
        (self.folder / f"{package}.py").write_text(dedent(file), encoding="utf-8")
        about = self.folder / f"{package}-1.0.dist-info"
        about.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        metadata += f"Provides-Extra: {extra}\n" if extra else ""
        (about / "METADATA").write_text(metadata, encoding="utf-8")
        points = f"[{GROUP}]\n{name} = {value or f'{package}:Mars'}\n"
        (about / "entry_points.txt").write_text(points, encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A folder of packages; what was found and imported is forgotten before and after."""
    monkeypatch.syspath_prepend(tmp_path)
    before = {*sys.modules}
    registry._claims.cache_clear()
    registry.load.cache_clear()
    yield Site(tmp_path)
    for module in {*sys.modules} - before:
        del sys.modules[module]
    registry._claims.cache_clear()
    registry.load.cache_clear()


@pytest.mark.usefixtures("site")
def test_fwbenchs_own_frameworks_are_found_like_anyones() -> None:
    """The frameworks that fwbench comes with are entry points of its own package."""
    result = registry.registered()
    assert {*result} >= {"mxnet", "numpy", "tensorflow", "torch"}
    assert result["numpy"].module == "fwbench.frameworks.numpy.framework"


def test_another_packages_framework_is_found_and_loaded(site: Site) -> None:
    """A framework of another package is known by name, imported when loaded, and set up."""
    site.install("planets")
    assert registry.registered()["mars"].value == "planets:Mars"
    assert "planets" not in sys.modules
    framework = registry.load("mars", 3)
    assert framework.name == "mars"
    assert framework.threads() == 3


def test_a_framework_is_loaded_once(site: Site) -> None:
    """All cases of a process share one framework."""
    site.install("planets")
    assert registry.load("mars", 3) is registry.load("mars", 3)


def test_two_packages_that_claim_one_name(site: Site) -> None:
    """A name is one framework's: two packages that claim it are both named, with what to do."""
    site.install("planets")
    site.install("moons")
    with pytest.raises(FrameworkBroken, match="two packages name a framework 'mars'") as caught:
        registry.load("mars", 1)
    assert "planets (planets:Mars)" in caught.value.reason
    assert "moons (moons:Mars)" in caught.value.reason
    assert caught.value.remedy == "uninstall one of them"
    assert registry.load("numpy", 1).name == "numpy", "other frameworks go on"


def test_one_package_found_twice(site: Site) -> None:
    """The same entry point in two places of the path, as in editable installs, is one framework."""
    site.install("planets")
    site.install("planets2", value="planets:Mars")
    assert registry.registered()["mars"].module == "planets"


@tabled
def test_a_missing_module(site: Site, extra: str | None, remedy: str) -> None:
    site.install("planets", "import rovers\n", extra=extra)
    with pytest.raises(FrameworkMissing) as caught:
        registry.load("mars", 1)
    assert caught.value.reason == "not installed (No module named 'rovers')"
    assert caught.value.remedy == remedy


def test_the_extra_is_the_frameworks_own(site: Site) -> None:
    site.install("planets", "import rovers\n", name="venus", extra="mars")
    with pytest.raises(FrameworkMissing) as caught:
        registry.load("venus", 1)
    assert "[mars]" not in caught.value.remedy


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("import json.nothing", None),
        ("from json import nothing", "ImportError: cannot import name 'nothing'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise OSError('libcuda.so: cannot open')", "OSError: libcuda.so: cannot open"),
        ("import", "SyntaxError: "),
        ("Venus = 1", "AttributeError: "),
        (
            "from fwbench.frameworks.contract import Framework\nclass Mars(Framework): pass",
            "TypeError: Can't instantiate abstract class Mars",
        ),
        (FILE + "    def __init__(self): raise RuntimeError('no licence')", "no licence"),
        (FILE.replace("self.requested = threads", "raise ValueError('no pool')"), "no pool"),
    ],
)
def test_a_broken_framework(site: Site, file: str, message: str | None) -> None:
    """Whatever goes wrong while a framework is imported and started is said with its kind."""
    site.install("planets", file)
    if message is None:
        with pytest.raises(FrameworkMissing, match=r"json\.nothing"):
            registry.load("mars", 1)
        return
    with pytest.raises(FrameworkBroken) as caught:
        registry.load("mars", 1)
    assert message in caught.value.reason
    assert caught.value.remedy == "try it alone: python -c 'import planets'"
    assert caught.value.__cause__ is not None


@tabled
def test_an_entry_point_that_gives_no_framework(site: Site, file: str, given: str) -> None:
    """One sentence names the package, the entry point and what it gave."""
    site.install("planets", file)
    with pytest.raises(FrameworkBroken) as caught:
        registry.load("mars", 1)
    assert caught.value.reason == (
        f"package planets: the entry point 'mars' (planets:Mars) gives {given}, which is not a "
        "fwbench.Framework"
    )
    assert "derived from fwbench.Framework" in caught.value.remedy


@tabled
def test_a_wrong_declaration_is_refused(site: Site, declared: str, said: str) -> None:
    """The framework cannot be used, and one sentence names the package, the name, the near miss."""
    site.install("planets", f"{FILE}\n    {declared}\n")
    with pytest.raises(FrameworkBroken) as caught:
        registry.load("mars", 1)
    assert caught.value.reason == f"package planets: {said}"
    assert "@operation.implement('mars')" in caught.value.remedy
    assert isinstance(caught.value.__cause__, DeclarationError)


def test_notices_name_the_package(site: Site) -> None:
    """The package that installed a framework is known by its name, not by its module's."""
    site.install("planets", f"{FILE}\n    operations = {{'tanh': 'tan_h'}}\n")
    manifest = registry.load("mars", 1).manifest("a CPU")
    (notice,) = manifest.notices
    assert notice.startswith("package planets: mars ")
    assert manifest.operations == ()


@pytest.mark.parametrize("kind", ["FrameworkMissing", "FrameworkBroken"])
def test_a_framework_may_say_itself_why_it_cannot_be_used(site: Site, kind: str) -> None:
    error = f"raise errors.{kind}('too old', 'upgrade it')"
    site.install("planets", f"from fwbench import errors\n{error}\n")
    with pytest.raises(getattr(errors, kind)) as caught:
        registry.load("mars", 1)
    assert (caught.value.reason, caught.value.remedy) == ("too old", "upgrade it")


def test_another_number_of_threads_is_refused(site: Site) -> None:
    """A framework that does not take the threads it is given would win or lose by that alone."""
    site.install("planets", FILE.replace("return self.requested", "return 7"))
    with pytest.raises(FrameworkBroken, match=r"computes with 7 threads, asked for 2; .*--fw-thr"):
        registry.load("mars", 2)


def test_a_number_of_threads_that_cannot_be_told_is_accepted(site: Site) -> None:
    """A framework that cannot say how many threads it takes is used all the same."""
    site.install("planets", FILE.replace("return self.requested", "return None"))
    assert registry.load("mars", 2).threads() is None


def test_a_framework_of_another_name_than_its_entry_points(site: Site) -> None:
    """Cases are named after the framework and found by the entry point: both must be one name."""
    site.install("planets", name="jupiter")
    with pytest.raises(FwbenchError, match="jupiter") as caught:
        registry.load("jupiter", 1)
    assert "mars" in str(caught.value)
