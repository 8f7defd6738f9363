"""The promises of an adapter, a test each."""

import pytest

from fwbench.machine import usable_cpus
from fwbench.testing.conformance import arrays, work
from fwbench.testing.conformance.arrays import Adapter, requested_threads
from fwbench.workers.inventory import describe
from fwbench.workloads.grid import Cell

# A check is a test as it is where it takes what the fixtures are called.
test_manifest_survives_json = arrays.manifest_survives_json
test_devices_are_named = arrays.devices_are_named
test_work_is_placed = arrays.work_is_placed
test_creation_copies = arrays.creation_copies
test_values_survive = arrays.values_survive
test_addresses_tell_arrays_apart = arrays.addresses_tell_arrays_apart
test_results_have_the_dtype = arrays.results_have_the_dtype
test_work_is_right = work.work_is_right
test_undeclared_training_is_refused = work.undeclared_training_is_refused
test_first_losses_are_right = work.first_losses_are_right


def test_undeclared_device_is_refused(adapter: Adapter) -> None:
    """Work for a GPU that is not there raises."""
    if len(adapter.manifest.devices) == 1:
        pytest.skip("the CPU is the only device, and fwbench uses no other")
    arrays.undeclared_device_is_refused(adapter)


@pytest.mark.parametrize("integer", ["int32", "int64"])
def test_integers_survive(adapter: Adapter, device: str, integer: str) -> None:
    """An array of integers is read back as integers of the same values."""
    arrays.integers_survive(adapter, device, integer)


def test_gradients_follow_variables(adapter: Adapter, device: str, execution: str) -> None:
    """There is one gradient for each variable, in their order, and none for integers."""
    if not adapter.manifest.differentiable:
        pytest.skip(f"{adapter.manifest.name} offers no gradients")
    work.gradients_follow_variables(adapter, device, execution)


def test_undeclared_execution_is_refused(adapter: Adapter, device: str) -> None:
    """An execution that is not declared raises instead of running as another one."""
    if len(adapter.manifest.executions) == 1:
        pytest.skip("there is one execution, and fwbench uses no other")
    work.undeclared_execution_is_refused(adapter, device)


def test_waiting_waits(adapter: Adapter, long_cell: Cell) -> None:
    """When the waiter has returned, or a call that is not waited for, the work is done."""
    work.waiting_waits(adapter, long_cell)


def test_processor_time_fits_threads(adapter: Adapter, long_cell: Cell) -> None:
    """No more processors are busy than the adapter says that it has threads."""
    if long_cell.device != "cpu":
        pytest.skip("the threads are those of the CPU")
    if (adapter.manifest.threads or 1) >= usable_cpus():
        pytest.skip("no more processors here than threads: give fewer --fw-threads")
    work.processor_time_fits_threads(adapter, long_cell)


def test_threads_are_set(adapter: Adapter, pytestconfig: pytest.Config) -> None:
    """This process and a new one compute with the number of threads that is requested of each."""
    name, threads = adapter.manifest.name, requested_threads(pytestconfig)
    other = 2 if threads == 1 else 1
    arrays.threads_are_set({threads: adapter.manifest, other: describe([name], other)[name]})
