"""Trained networks are listed and drawn by accuracy, time and bytes, in each of their dtypes."""

from __future__ import annotations

import re
from typing import Any

from support.reports import case, part, run_of
from support.section_parts import rows

_TITLE = "accuracy, time and bytes: net cpu 100"


def trained(framework: str, dtype: str, value_s: float, accuracy: float, **facts: Any) -> Any:
    known = {"accuracy": accuracy, "agreement": 0.99, "tested_examples": 2_000, "dtype": dtype}
    return case("net", framework, value_s, **known, **facts)


def test_a_dtype_stands_beside_float32_of_the_same_framework() -> None:
    run = run_of(
        trained("torch", "float32", 1.0, 0.95, model_bytes=240 * 2**10),
        trained("torch", "int8", 2.0, 0.94, model_bytes=70 * 2**10, int8_features=""),
        trained("mxnet", "int8", 0.5, 0.93, int8_features="avx512_vnni"),
    )
    torch, narrow, alone = rows(part([run], _TITLE))
    assert narrow == {
        "case": "torch eager",
        "dtype": "int8",
        "accuracy": "94.00%",
        "against float32": "-1.00%",
        "as reference": "99.00%",
        "pictures": "2,000",
        "a call": "2 s",
        "times as fast": "0.50",
        "model": "70 KiB",
        "CPU has for int8": "nothing",
    }
    assert (torch["against float32"], torch["CPU has for int8"]) == ("+0.00%", "")
    assert (alone["against float32"], alone["times as fast"]) == ("", "")
    assert alone["CPU has for int8"] == "avx512_vnni"


def test_dtypes_are_points_of_a_track() -> None:
    run = run_of(
        trained("torch", "float32", 1.0, 0.95, model_bytes=240 * 2**10),
        trained("torch", "int8", 2.0, 0.94, model_bytes=70 * 2**10),
        trained("jax", "float32", 0.5, 0.95),
    )
    times, sizes = part([run], _TITLE).charts
    assert times.text == (
        f"{times.title}: torch eager float32 1 s, 95.00%; torch eager int8 2 s, 94.00%; "
        "jax eager float32 500 ms, 95.00%"
    )
    assert sizes.text.endswith(
        ": torch eager float32 240 KiB, 95.00%; torch eager int8 70 KiB, 94.00%"
    )
    assert (times.legends, sizes.legends) == (["torch eager", "jax eager"], ["torch eager"])
    assert times.title == "net cpu 100: accuracy against time of a call"
    assert [float(r) for r in re.findall(r'<circle[^>]* r="([^"]+)"', sizes.svg)] == [6, 3]
