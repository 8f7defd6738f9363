"""Stand-ins for modules of PyTorch's, held against the real ones: these need no GPU for that."""

import inspect
import json

from support import programs

_BOUND = """
import importlib
import inspect
import json
import sys

module, calls = importlib.import_module(sys.argv[1]), json.loads(sys.argv[2])
refused = {}
for name, (positional, keywords) in calls.items():
    try:
        real = getattr(module, name)
        inspect.signature(real).bind(*range(positional), **dict.fromkeys(keywords))
    except ValueError:  # a class in C has no signature
        assert isinstance(real, type)
    except (AttributeError, TypeError) as error:
        refused[name] = str(error)
print(json.dumps(refused))
"""


def refused(stand_in: type, module: str) -> dict[str, str]:
    """Functions of a stand-in that a module of the framework's does not have, or not with these.

    Args:
        stand_in: a class; names without a leading underscore are the module's, but for those of
            classes above it.
        module: name of the real one, such as ``torch.cuda``.

    Returns:
        What is wrong, by the function's name.
    """
    calls = {}
    for name, function in vars(stand_in).items():
        if name.startswith("_") or not callable(function):
            continue
        _, *parameters = inspect.signature(function).parameters.values()
        keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        calls[name] = (len(parameters) - len(keywords), keywords)
    found: dict[str, str] = programs.result("-c", _BOUND, module, json.dumps(calls))
    return found
