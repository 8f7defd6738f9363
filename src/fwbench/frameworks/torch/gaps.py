"""Operations that PyTorch does not offer at all, or not everywhere, by family."""

from __future__ import annotations

from fwbench.terms.manifest import Gap
from fwbench.workloads.operations.linalg import DECOMPOSITIONS
from fwbench.workloads.operations.optimisers import OPTIMISERS

_ON_CPU = {
    "reduce_overhead": "torch.compile's reduce-overhead launches CUDA graphs, and a CPU has none",
    "max_autotune": "torch.compile's max-autotune is for GPUs: on a CPU it has little to try "
    "(products of constant factors, or of batches), and fwbench leaves it out",
    "cuda_graph": "a CUDA graph is captured on a GPU",
}

#: Of which PyTorch's documentation says that the host waits for the device.
_WAITING = ("cholesky", "solve", "inverse", "svd", "svd_values", "eigh", "boolean_mask")

_NOT_CAPTURED = {
    **{name: f"{name} waits for the GPU, which cannot be captured" for name in _WAITING},
    "unique": "the size of unique's result is not known before",
    "ctc_loss": "ctc_loss copies the lengths to the host, which cannot be captured",
    **dict.fromkeys(
        (operation.name for operation in OPTIMISERS),
        "the calls before its capture would be steps that nothing verifies",
    ),
}

_RANDPERM = "torch.compile fails on indices by torch.randperm (PyTorch issue 158457)"

_HALVES = ("float16", "bfloat16")

GAPS: tuple[Gap, ...] = (
    # Activations
    Gap(
        "torch's gradient of hardsigmoid has a constant of float32 in every dtype",
        "hard_sigmoid",
        direction="backward",
        dtype="float64",
    ),
    # Reductions
    *(
        Gap(
            f"torch multiplies long rows of {dtype} in {dtype}",
            "prod",
            dtype=dtype,
            device="cpu",
            terms_above=factors,
        )
        for dtype, factors in (("float16", 1024), ("bfloat16", 256))
    ),
    # Vectors and matrices
    *(
        Gap(f"torch has no linear algebra in {dtype}", operation.name, dtype=dtype)
        for operation in DECOMPOSITIONS
        for dtype in _HALVES
    ),
    # Normalisation and random numbers
    *(
        Gap(f"torch has no {dtype} {what} on the CPU", operation, dtype=dtype, device="cpu")
        for operation, what in (("lrn", "pooling over channels"), ("random_gamma", "gamma numbers"))
        for dtype in _HALVES
    ),
    Gap(
        "torch adds up the gradients of layer_norm's vectors in bfloat16",
        "layer_norm",
        direction="backward",
        dtype="bfloat16",
        device="cpu",
        terms_above=64,
    ),
    # Softmax and losses
    *(Gap(f"torch has no {dtype} CTC loss", "ctc_loss", dtype=dtype) for dtype in _HALVES),
    # Optimisers
    Gap("torch has no FTRL", "ftrl"),
    *(
        Gap("torch has no fused RMSprop", name, toggle="optimizer=fused")
        for name in ("rmsprop", "cifar_cnn")
    ),
    Gap("torch has no fused Adagrad on GPUs", "adagrad", device="gpu", toggle="optimizer=fused"),
    Gap(
        "torch's foreach implementation of SGD adds Nesterov's momentum to the gradients in place",
        "nesterov",
        toggle="optimizer=foreach",
    ),
    *(
        Gap(
            f"torch's fused SGD leaves most weights in {dtype} as they are",
            name,
            dtype=dtype,
            device="cpu",
            toggle="optimizer=fused",
        )
        for name in ("sgd", "momentum", "nesterov")
        for dtype in _HALVES
    ),
    # Compiled executions
    *(
        Gap(_RANDPERM, "random_shuffle", execution=execution)
        for execution in ("compile", "reduce_overhead", "max_autotune")
    ),
    # Executions for GPUs
    *(Gap(reason, execution=execution, device="cpu") for execution, reason in _ON_CPU.items()),
    *(
        Gap(reason, name, execution="cuda_graph", device="gpu")
        for name, reason in _NOT_CAPTURED.items()
    ),
    # Networks
    Gap(
        "torch has no bfloat16 LSTM on most CPUs", "sentiment_lstm", dtype="bfloat16", device="cpu"
    ),
    *(
        Gap(
            "torch trains no LSTM in float16 on most CPUs (could not create a primitive "
            "descriptor for the LSTM forward propagation primitive)",
            name,
            direction="train",
            dtype="float16",
            device="cpu",
        )
        for name in ("sentiment_lstm", "word_lm", "word_lm_step", "word_lm_sampled_step")
    ),
)
