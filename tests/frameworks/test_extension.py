"""What others add: a framework from a package of theirs, an operation from a folder of theirs."""

import pytest

from support.projects import Project

_SIGMOID = """
import pytest
from fwbench.workloads import gemm, sigmoid

@pytest.mark.fwbench(sigmoid, gemm, sizes=(100_000,))
def test_it(case):
    case.measure()
"""


def test_framework_from_another_package(project: Project) -> None:
    """One file and one entry point: grid, verification, waiting, both directions, records."""
    project.install_pool()
    project.write("test_it.py", _SIGMOID)
    result, records = project.measure("--fw-direction=forward,backward", fw="pool")
    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines(
        [
            "  pool 1.0: cpu (*); threads: unknown",
            "skipped 2 cases: gemm is not written for pool",
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
        from support.pool_framework import Pool, _inline

        class Hasty(Pool):
            name = "hasty"
            operations = {**Pool.operations, "tanh": lambda np: lambda x: x}

            def creator(self, device, dtype):
                return lambda source: _inline(np.asarray, source)
        """,
    )
    project.write(
        "test_it.py",
        """
        import pytest
        from fwbench.workloads import from_numpy, tanh

        @pytest.mark.fwbench(from_numpy, tanh, sizes=(8,))
        def test_it(case):
            case.measure()
        """,
    )
    result = project.run("--junitxml=junit.xml", "--fw-dtype=float64", fw="hasty")
    result.assert_outcomes(failed=2)
    outcomes = project.outcomes()
    place = "hasty-cpu-eager-forward-float64-8"
    assert "NotACopy" in outcomes[f"test_it[from_numpy-{place}]"].text
    assert "WrongResult" in outcomes[f"test_it[tanh-{place}]"].text


def test_two_packages_of_one_name(project: Project) -> None:
    """Two packages that name a framework alike are refused, and both are named."""
    project.install_pool()
    project.install("pool", "other_module:Pool", "", package="other-package")
    project.write("test_it.py", _SIGMOID)
    result = project.run(fw="numpy")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    message = str(result.stderr)
    assert "two packages name a framework 'pool'" in message
    assert "pool_framework" in message
    assert "other-package" in message
    assert "Traceback" not in message


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


_REFUSED = {
    "name": ("name='two words'", "letters, digits and underscores"),
    "no sizes": ("sizes=()", "at least one"),
    "negative size": ("sizes=(4, -1)", "positive whole numbers"),
}


@pytest.mark.parametrize(("argument", "said"), _REFUSED.values(), ids=_REFUSED)
def test_operation_that_cannot_work(project: Project, argument: str, said: str) -> None:
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
    result.stdout.fnmatch_lines(["test_it.py:3: in <module>", f"*DeclarationError*{said}*"])
