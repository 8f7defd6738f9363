"""Trains LeNet on MNIST, and writes its weights (workloads/models/lenet.npz).

    FWBENCH_DATA=FOLDER python scripts/trained_weights.py

In NumPy alone, by the reference of the training loops, in the order of their first epoch. Weights
are kept as float16, a quarter of the bytes: they are what every framework begins with.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from fwbench.workloads import data, lenet
from fwbench.workloads.models import reference
from fwbench.workloads.training import order

_FILE = Path(__file__).parents[1] / "src/fwbench/workloads/models/lenet.npz"
_STEPS, _BATCH = 1_200, 32


def main() -> int:
    """Train, and write; returns the exit status."""
    data_set = data.find(lenet.dataset, None)
    if data_set.source != "real":
        sys.exit(f"{lenet.dataset} was not found: name its folder in {data.VARIABLE}")
    train = data.load(data_set).train
    parameters = lenet.initial()
    descents = [
        [reference.Descent(lenet.optimizer, parameter) for parameter in node_parameters]
        for node_parameters in parameters
    ]
    chosen = order(train.y.size, 0, 0)[: _STEPS * _BATCH].reshape(_STEPS, _BATCH)
    for step, rows in enumerate(chosen, 1):
        x, y = train.x[rows] / 255.0, train.y[rows]
        loss, of_nodes = reference.gradients(lenet.graph, parameters, x, y)
        for of_node, updates in zip(of_nodes, descents, strict=True):
            for gradient, descent in zip(of_node, updates, strict=True):
                descent.step(gradient)
        if step % 100 == 0:
            print(f"step {step}: loss {loss:.4f}", flush=True)
    arrays = [array.astype(np.float16) for arrays in parameters for array in arrays]
    np.savez_compressed(_FILE, *arrays)
    return 0


if __name__ == "__main__":
    sys.exit(main())
