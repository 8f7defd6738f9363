"""Additions of others: a framework from a package, an operation from a folder."""

import pytest

from support.projects import Project, measuring
from support.tables import tabled

_SIGMOID = measuring(
    "sigmoid, gemm, sizes=(100_000,)", "from fwbench.workloads import gemm, sigmoid"
)


def test_framework_from_another_package(project: Project) -> None:
    """One file and one entry point: grid, verification, waiting, both directions, records."""
    project.install_pool()
    project.write("test_it.py", _SIGMOID)
    result, records = project.measure("--fw-direction=forward,backward", fw="pool")
    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines(
        [
            "fwbench: pool; each framework in a process of its own",
            "skipped 2 cases: fwbench has no pool implementation of gemm",
        ]
    )
    for direction in ("forward", "backward"):
        facts = records[f"sigmoid-pool-cpu-eager-{direction}-float32-100000"]["extra_info"][
            "fwbench"
        ]
        assert facts["framework"] == "pool"
        assert facts["framework_version"] == "1.0"
        assert facts["dispatch_s"] < facts["completion_s"], "calls return before they are done"
        assert facts["max_relative_error"] <= facts["tolerance"]
    assert "returned in less than half the time that the work took" in str(result.stdout)


def test_framework_that_computes_wrongly(project: Project) -> None:
    """Verification holds for the frameworks of others: a result or a view that is wrong fails."""
    project.install_pool()
    project.install(
        "hasty",
        "hasty_framework:Hasty",
        """
        import numpy as np
        from pool_framework import Pool, _inline

        class Hasty(Pool):
            name = "hasty"
            operations = {**Pool.operations, "tanh": lambda np: lambda x: x}

            def creator(self, device, dtype):
                return lambda source: _inline(np.asarray, source)
        """,
    )
    created = "from fwbench.workloads import from_numpy, tanh"
    project.write("test_it.py", measuring("from_numpy, tanh, sizes=(8,)", created))
    result = project.run("--junitxml=junit.xml", "--fw-dtype=float64", fw="hasty")
    result.assert_outcomes(failed=2)
    outcomes = project.outcomes()
    place = "hasty-cpu-eager-forward-float64-8"
    assert "NotACopy" in outcomes[f"test_it[from_numpy-{place}]"].text
    assert "WrongResult" in outcomes[f"test_it[tanh-{place}]"].text


#: One operation, in NumPy and in a framework that cannot be used.
_WITH_NUMPY = measuring(
    'sigmoid, frameworks=("numpy", "{other}"), sizes=(8,)', "from fwbench.workloads import sigmoid"
)


@tabled
def test_a_wrong_declaration_is_one_sentence(project: Project, source: str, message: str) -> None:
    """It names the package, before anything runs; the framework is absent, and others go on.

    Requested by name, it refuses the session.
    """
    project.install("mars", "planets:Mars", source)
    project.write("test_it.py", _WITH_NUMPY.format(other="mars"))
    result = project.run(fw=None)
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines([f"  mars: absent: {message}; *", "test_it.py *"])
    refused = project.run(fw="mars")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert message in str(refused.stderr)


def test_two_packages_of_one_name(project: Project) -> None:
    """The name is refused, and both packages are named; other frameworks go on."""
    project.install_pool()
    project.install("pool", "other_module:Pool", "", package="other-package")
    project.forget_manifests()  # as an installer would, who changes site-packages
    project.write("test_it.py", _WITH_NUMPY.format(other="pool"))
    result = project.run(fw=None)
    result.assert_outcomes(passed=1, skipped=1)
    (line,) = (line for line in result.outlines if line.startswith("  pool: absent: "))
    assert "two packages name a framework 'pool'" in line
    assert "pool_framework" in line
    assert "other-package" in line
    refused = project.run(fw="pool")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert "two packages name a framework 'pool'" in str(refused.stderr)
    assert "Traceback" not in str(refused.stderr)


def test_what_is_out_of_date_is_noted_and_the_rest_is_measured(project: Project) -> None:
    """A path that leads nowhere is a gap with its version; a stale gap is one sentence."""
    project.install(
        "mars",
        "planets:Mars",
        """
        from fwbench import Gap
        from fwbench.frameworks.numpy.framework import NumPy

        class Mars(NumPy):
            name = "mars"
            version = "2.2"
            operations = {"sigmoid": lambda np: lambda x: 1 / (1 + np.exp(-x)), "gemm": "mat.mul"}
            gaps = (Gap("mars has no float8", dtype="float8"),)
        """,
        package="planets-for-fwbench",
    )
    project.write("test_it.py", _SIGMOID)
    result = project.run(fw="mars")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "  package planets-for-fwbench: mars 2.2 has no mat.mul; skipped: gemm",
            (
                "  package planets-for-fwbench: the gap 'mars has no float8' of mars is stale: "
                "mars has no dtype 'float8'*; remove or correct it"
            ),
            "test_it.py *",
            "skipped 1 case: mars 2.2 has no mat.mul",
        ]
    )


def test_an_operation_in_a_second_file_is_found_at_once(project: Project) -> None:
    project.write("packages/planets/__init__.py", "")
    project.write("packages/planets/table.py", 'OPERATIONS = {"gemm": "matmul"}')
    project.write("packages/planets/one/__init__.py", "")
    project.install(
        "mars",
        "planets.one.adapter:Mars",
        """
        from fwbench.frameworks.numpy.framework import NumPy
        from planets.table import OPERATIONS

        class Mars(NumPy):
            name = "mars"
            operations = OPERATIONS
        """,
        package="planets",
    )
    project.write("test_it.py", _SIGMOID.replace("sigmoid", "tanh").replace("100_000", "8"))
    project.run(fw="mars").assert_outcomes(passed=1, skipped=1)
    project.write("packages/planets/table.py", 'OPERATIONS = {"gemm": "matmul", "tanh": "tanh"}')
    project.run(fw="mars").assert_outcomes(passed=2)


#: In a folder of the user's: an operation, what it must be, and how two frameworks compute it.
_SWISH = """
import numpy as np
import pytest

from fwbench import Cost, Operation, Sizes

swish = Operation(
    name="swish",
    inputs=lambda size, rng: (rng.standard_normal(size),),
    reference=lambda x: x / (1 + np.exp(-x)),
    sizes=Sizes(quick=(64, 32), full=(1024,)),
    cost=lambda size: Cost(flops=5.0 * size, elements=2.0 * size),
)

@swish.implement("pool")
@swish.implement("numpy")
def _(np):
    return lambda x: x / (1 + np.exp(-x))

@pytest.mark.fwbench(swish)
def test_swish(case):
    case.measure()
"""


def test_operation_from_another_folder(project: Project) -> None:
    """A few lines in any folder: grid, isolation, verification, both directions, records."""
    project.install_pool()
    project.write("mine/test_swish.py", _SWISH)
    result, records = project.measure("mine", "--fw-direction=forward,backward", fw="numpy,pool")
    result.assert_outcomes(passed=6, skipped=2)
    result.stdout.fnmatch_lines(["skipped 2 cases: numpy offers no gradients"])
    assert {*records} == {
        f"swish-{place}-float32-{size}"
        for place in (
            "numpy-cpu-eager-forward",
            "pool-cpu-eager-forward",
            "pool-cpu-eager-backward",
        )
        for size in (64, 32)
    }
    for name, entry in records.items():
        facts = entry["extra_info"]["fwbench"]
        forward = "forward" in name
        assert facts["flops"] == (5.0 * facts["size"] if forward else None)
        assert facts["bytes"] == (8.0 * facts["size"] if forward else None)
        assert 0 <= facts["max_relative_error"] <= facts["tolerance"]


@tabled
def test_operation_that_cannot_work(project: Project, argument: str, message: str) -> None:
    """A declaration that cannot work is an error where it stands, in the user's file."""
    name = argument.partition("=")[0]
    arguments = {"name": "name='swish'", "sizes": "sizes=(4,)", name: argument}
    project.write(
        "test_it.py",
        f"""
        from fwbench import Operation
        Operation(inputs=None, reference=None, {", ".join(arguments.values())})
        """,
    )
    result = project.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["test_it.py:3: in <module>", f"*DeclarationError*{message}*"])
