"""Operators of ONNX Runtime, each a model of one node, with one thread."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper, parser

_GRAPHS = {
    "sigmoid_float64": "(double[2,64,56,56] x) => (double[2,64,56,56] y) {y = Sigmoid(x)}",
    "sign_int64": "(int64[32,64,64] x) => (int64[32,64,64] y) {y = Sign(x)}",
    "reduce_l1": "(float[2,64,56,56] x) => (float[1,64,56,56] y)"
    " {axes = Constant<value_ints = [0]>() y = ReduceL1<keepdims = 1>(x, axes)}",
    "matmul_int64": "(int64[3,128,256] a, int64[256,64] b) => (int64[3,128,64] y) {y=MatMul(a, b)}",
    "gru": "(float[1,1,64] x, float[1,192,64] w, float[1,192,64] w_hidden)"
    " => (float[1,1,1,64] y) {y = GRU<hidden_size = 64>(x, w, w_hidden)}",
    "tree": "(float[1000,1] x) => (float[1000,1] y) {y = ai.onnx.ml.TreeEnsembleRegressor<"
    "n_targets = 1, nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], "
    "nodes_featureids = [0, 0, 0], nodes_values = [0.1, 0.0, 0.0], "
    'nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids = [1, 0, 0], '
    "nodes_falsenodeids = [2, 0, 0], target_treeids = [0, 0], target_nodeids = [1, 2], "
    "target_ids = [0, 0], target_weights = [1.0, 2.0]>(x)}",
}


@pytest.mark.parametrize("graph", _GRAPHS.values(), ids=[*_GRAPHS])
def test_operator(benchmark, graph):
    opsets = '["": 21, "ai.onnx.ml": 3]'
    model = parser.parse_model(f"<ir_version: 10, opset_import: {opsets}> node {graph}")
    arrays = {}
    for value in [*model.graph.input]:
        name, kind = value.name, value.type.tensor_type
        drawn = 9 * np.random.default_rng(0).standard_normal([d.dim_value for d in kind.shape.dim])
        arrays[name] = drawn.astype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
        if name.startswith("w"):  # a weight, which is part of the model
            model.graph.initializer.append(numpy_helper.from_array(arrays.pop(name), name))
            model.graph.input.remove(value)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    benchmark(session.run, ["y"], arrays)
