"""Environment variables that change speed, of the libraries that several frameworks share.

Names and not prefixes: a variable that begins like a library's own may be a secret
(``NVIDIA_API_KEY``).
"""

from __future__ import annotations

#: OpenMP 5.2, section 21; the manual of GNU's libgomp; the documentation of LLVM's runtime (KMP).
OPENMP = (
    *("GOMP_CPU_AFFINITY", "GOMP_SPINCOUNT", "KMP_AFFINITY", "KMP_BLOCKTIME", "KMP_HW_SUBSET"),
    *("KMP_LIBRARY", "OMP_DYNAMIC", "OMP_MAX_ACTIVE_LEVELS", "OMP_NESTED", "OMP_NUM_THREADS"),
    *("OMP_PLACES", "OMP_PROC_BIND", "OMP_SCHEDULE", "OMP_STACKSIZE", "OMP_THREAD_LIMIT"),
    "OMP_WAIT_POLICY",
)

#: Intel's developer guide for oneMKL, "Environment variables".
MKL = (
    *("MKL_CBWR", "MKL_DEBUG_CPU_TYPE", "MKL_DISABLE_FAST_MM", "MKL_DOMAIN_NUM_THREADS"),
    *("MKL_DYNAMIC", "MKL_ENABLE_INSTRUCTIONS", "MKL_FAST_MEMORY_LIMIT", "MKL_NUM_THREADS"),
    "MKL_THREADING_LAYER",
)

#: OpenBLAS's README and its page "Runtime variables".
OPENBLAS = (
    *("GOTO_NUM_THREADS", "OPENBLAS_CORETYPE", "OPENBLAS_DEFAULT_NUM_THREADS", "OPENBLAS_LOOPS"),
    *("OPENBLAS_NUM_THREADS", "OPENBLAS_THREAD_TIMEOUT"),
)

#: oneDNN's developer guide, "Run-time controls"; DNNL is its earlier name.
ONEDNN = tuple(
    f"{prefix}_{name}"
    for prefix in ("ONEDNN", "DNNL")
    for name in (
        *("CPU_ISA_HINTS", "DEFAULT_FPMATH_MODE", "MAX_CPU_ISA", "PRIMITIVE_CACHE_CAPACITY"),
        "VERBOSE",
    )
)

#: NVIDIA's CUDA programming guide, "CUDA environment variables", and the guides of cuBLAS and of
#: the container toolkit.
CUDA = (
    *("CUBLAS_WORKSPACE_CONFIG", "CUDA_AUTO_BOOST", "CUDA_CACHE_DISABLE", "CUDA_CACHE_MAXSIZE"),
    *("CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_DISABLE_PTX_JIT", "CUDA_FORCE_PTX_JIT"),
    *("CUDA_LAUNCH_BLOCKING", "CUDA_MANAGED_FORCE_DEVICE_ALLOC", "CUDA_MODULE_LOADING"),
    *("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_SCALE_LAUNCH_QUEUES", "NVIDIA_TF32_OVERRIDE"),
)

#: Which devices a framework sees, and in what order. They place work and change no speed: a
#: scheduler gives every job others.
PLACEMENT = (
    *("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "JAX_PLATFORMS", "JAX_PLATFORM_NAME"),
    "NVIDIA_VISIBLE_DEVICES",
)

#: XLA's own, whichever framework compiles with it.
XLA = ("XLA_FLAGS",)
