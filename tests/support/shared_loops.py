"""Training loops of two replicas, compared with those of one worker."""

import numpy as np
import pytest

from support.projects import Project, measuring

_LOOPS = measuring("lenet, mlp", "from fwbench.workloads import lenet, mlp")

_STEPS = 3

#: Of generated data, so that nothing has to be found; batches of eight examples.
_OPTIONS = (
    *(
        "--fw-size=8",
        f"--fw-train=steps={_STEPS}",
        "--fw-train=epochs=2",
        "--fw-train=warmup-epochs=1",
    ),
    *("--fw-replicas=1,2", "--fw-device=cpu", "--fw-threads=1"),
)


def assert_alike(project: Project, fw: str, *requested: str) -> None:
    """Two replicas have one worker's losses in every epoch, and what they learned is alike."""
    project.write("test_it.py", _LOOPS)
    result, records = project.measure(*_OPTIONS, *requested, fw=fw)
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    facts = [entry["extra_info"]["fwbench"] for entry in records.values()]
    assert [answer["replicas"] for answer in facts] == ["1", "1", "2", "2"]
    for alone, shared in zip(facts[:2], facts[2:], strict=True):
        assert shared["workload"] == alone["workload"]
        assert shared["steps_per_epoch"] == shared["gang"]["steps_per_round"] == _STEPS
        assert shared["gang"]["verified"]["weights_equal"]
        assert (shared["first_in_process"], alone["first_in_process"]) == (True, True)
        assert [epoch["warmup"] for epoch in shared["epochs"]] == [True, False]
        for shared_epoch, alone_epoch in zip(shared["epochs"], alone["epochs"], strict=True):
            np.testing.assert_allclose(
                shared_epoch["train_losses"], alone_epoch["train_losses"], rtol=1e-5
            )
            assert shared_epoch["validation_loss"] == pytest.approx(
                alone_epoch["validation_loss"], rel=1e-5
            )
            assert shared_epoch["validation_accuracy"] == alone_epoch["validation_accuracy"]
            assert shared_epoch["validation_s"] > 0.0
        assert shared["test_accuracy"] == alone["test_accuracy"]
        assert shared["images_per_s"] * shared["epoch_s"] == pytest.approx(8 * _STEPS)
        assert shared["cpu_utilization"] > 0.0
        assert len(shared["gang"]["ranks"]) == 2
