"""The class of case that measures each kind of workload; operations need none of these."""

from fwbench.cases.case import Case
from fwbench.cases.checkpoints import CheckpointCase
from fwbench.cases.imports import ImportCase
from fwbench.cases.models import ModelInferenceCase, ModelStepCase
from fwbench.cases.networks import ClassificationCase, ForwardBackwardCase, InferenceCase
from fwbench.cases.photos import PhotosCase
from fwbench.cases.training import LoaderCase, LoopCase, StepCase
from fwbench.workloads.imports import Import
from fwbench.workloads.model import ModelInference, ModelTraining
from fwbench.workloads.models.passes import Classification, ForwardBackward, Inference
from fwbench.workloads.models.steps import ModelStep
from fwbench.workloads.photos import PhotoLoading
from fwbench.workloads.training import Checkpointing, Loading, Step, Training
from fwbench.workloads.workload import Workload

_CASES: dict[type[Workload], type[Case]] = {
    Training: LoopCase,
    Step: StepCase,
    ModelStep: StepCase,
    Loading: LoaderCase,
    Checkpointing: CheckpointCase,
    PhotoLoading: PhotosCase,
    Import: ImportCase,
    Classification: ClassificationCase,  # before what it is derived from
    Inference: InferenceCase,
    ForwardBackward: ForwardBackwardCase,
    ModelInference: ModelInferenceCase,
    ModelTraining: ModelStepCase,
}


def case_class(workload: Workload) -> type[Case]:
    """The class that measures a workload; the plain case unless the table says otherwise."""
    return next(
        (kind for workload_class, kind in _CASES.items() if isinstance(workload, workload_class)),
        Case,
    )
