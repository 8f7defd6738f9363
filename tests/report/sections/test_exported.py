"""Exported networks stand beside those that stayed where they come from."""

from __future__ import annotations

from typing import Any

from support.reports import case, part, run_of
from support.section_parts import rows

_TITLE = "exported networks"


def exported(source: str, value_s: float, **facts: Any) -> dict[str, Any]:
    known = {"exported_from": source, "model_bytes": 5 * 2**10, "max_relative_error": 1e-6}
    return case("net", "onnxruntime", value_s, f"from_{source}", **known, **facts)


def test_a_network_stands_beside_the_fastest_of_where_it_comes_from() -> None:
    run = run_of(
        exported("tensorflow", 1.0),
        exported("torch", 2.0),
        case("net", "tensorflow", 4.0, "eager"),
        case("net", "tensorflow", 3.0, "graph"),
        case("net", "tensorflow", 0.1, "graph", size=7),
        case("net", "mxnet", 0.1),
    )
    tensorflow, torch = rows(part([run], _TITLE))
    assert tensorflow == {
        "network": "net 100",
        "exported from": "tensorflow",
        "run in": "onnxruntime from_tensorflow",
        "a call": "1 s",
        "there": "tensorflow graph",
        "a call there": "3 s",
        "times as fast": "3.00",
        "model": "5 KiB",
        "largest error": "1.0e-06",
    }
    assert torch["run in"] == "onnxruntime from_torch"
    assert [torch[name] for name in ("there", "a call there", "times as fast")] == [""] * 3


def test_each_run_is_compared_with_itself() -> None:
    """Another run may be from another machine."""
    first = run_of(exported("torch", 1.0), name="first.json")
    second = run_of(case("net", "torch"), name="second.json")
    (row,) = rows(part([first, second], _TITLE))
    assert row["there"] == ""
