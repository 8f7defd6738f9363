"""Networks by framework and execution, by batch, exported, and by accuracy."""

import re
from typing import Any

from fwbench.report import sections
from support.reports import case, chart_of, part, part_of, run_of, runs_of
from support.section_parts import rows

_MEBIBYTE = 2**20


def network(framework: str = "torch", batch: int = 1, call_s: float = 0.5, **facts: Any) -> Any:
    return case(
        "resnet50_inference",
        framework,
        call_s,
        **{
            "size": 1000 * batch,
            "shape": f"b{batch}i64d8",
            "parameters": 10,
            "images_per_s": batch / call_s,
            **facts,
        },
    )


def test_networks_are_listed_by_framework_and_execution() -> None:
    alone = {"before_bytes": 0, "peak_bytes": 80 * _MEBIBYTE}
    shared = {"host_memory_before_bytes": 0, "peak_host_memory_bytes": 90 * _MEBIBYTE}
    made = run_of(
        network(memory=alone, attainable_share=0.25, flops=1.0, bytes=1.0, **shared),
        network("mxnet", call_s=0.25, **shared),
        network("mxnet", images_per_s=None, tokens_per_s=12_345.0),
        case(),
    )
    section = part([made], "networks: forward cpu float32")
    assert rows(section)[-1] == {
        "network": "resnet50_inference",
        "size": "b1i64d8",
        "case": "torch eager",
        "a call": "500 ms",
        "a second": "2",
        "memory": "80 MiB",
        "of attainable": "25%",
    }
    assert [(row["case"], row["a second"], row["memory"]) for row in rows(section)[:-1]] == [
        ("mxnet eager", "4", "90 MiB"),
        ("mxnet eager #2", "12,345", ""),
    ]


def test_kinds_of_calls_devices_and_dtypes_are_apart() -> None:
    entries = [network(), network(direction="train"), network(dtype="bfloat16")]
    titles = [section.title for section in sections.details([run_of(*entries)])]
    assert [title for title in titles if title.startswith("networks: ")] == [
        "networks: forward cpu float32",
        "networks: train cpu float32",
        "networks: forward cpu bfloat16",
    ]


_BY_BATCH = "resnet50_inference i64d8 cpu float32: answers by batch"


def test_answers_are_shown_against_the_batch() -> None:
    entries = [network(batch=1), network(batch=8, call_s=2.0), network("mxnet", batch=8)]
    section = part_of(_BY_BATCH, *entries)
    mxnet, torch = rows(section)
    assert torch == {
        "case": "torch eager",
        "batch 1": "500 ms",
        "batch 1, a second": "2",
        "batch 8": "2 s",
        "batch 8, a second": "4",
    }
    assert (mxnet["batch 1"], mxnet["batch 8"]) == ("", "500 ms")
    assert [*section.legend] == ["mxnet eager", "torch eager"]
    assert "torch eager 500 ms to 2 s" in chart_of(section, "latency").text
    assert "torch eager 2 to 4" in chart_of(section, "examples a second").text


def test_contended_answers_are_bounds() -> None:
    entries = [network(batch=1), network(batch=8, call_s=2.0, condition="contended")]
    section = part_of(_BY_BATCH, *entries)
    (row,) = rows(section)
    assert (row["batch 1"], row["batch 1, a second"]) == ("500 ms", "2")
    assert (row["batch 8"], row["batch 8, a second"]) == ("≤ 2 s", "≥ 4")
    assert "upper bound" in section.notes[0]
    assert not part_of(_BY_BATCH, network(batch=1), network(batch=8)).notes


def test_batches_of_loops_networks_are_sizes() -> None:
    """Without a shape the size is the batch."""
    entries = [network(batch=1, shape=None, size=size) for size in (1, 64)]
    section = part_of("resnet50_inference cpu float32: ", *entries)
    assert list(section.columns)[1::2] == ["batch 1", "batch 64"]


def test_batches_are_compared_within_a_network() -> None:
    other = network(batch=8, shape="b8i64d1")
    steps = [network(batch=batch, direction="train") for batch in (1, 8)]
    made = run_of(network(), other, *steps)
    assert not [section for section in sections.details([made]) if "by batch" in section.title]


def test_runs_have_lines_of_their_own() -> None:
    entries = [network(batch=batch) for batch in (1, 8)]
    section = part(runs_of(first=entries, second=entries), _BY_BATCH)
    assert [row["case"] for row in rows(section)] == [
        "torch eager (first.json)",
        "torch eager (second.json)",
    ]


_EXPORTED = "exported networks"


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
    tensorflow, torch = rows(part([run], _EXPORTED))
    assert tensorflow == {
        "network": "net 100",
        "dtype": "float32",
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


def test_exports_are_told_apart_by_dtype_and_have_no_ratio_of_upper_bounds() -> None:
    run = run_of(
        exported("torch", 1.0, condition="contended"),
        exported("torch", 1.0, dtype="int8"),
        case("net", "torch", 2.0),
        case("net", "torch", 2.0, dtype="int8", condition="contended"),
    )
    wide, narrow = rows(part([run], _EXPORTED))
    assert (wide["dtype"], wide["run in"], wide["there"]) == (
        "float32",
        "onnxruntime from_torch (contended)",
        "torch eager",
    )
    assert (narrow["dtype"], narrow["there"]) == ("int8", "torch eager (contended)")
    assert (wide["times as fast"], narrow["times as fast"]) == ("", "")


def test_each_run_is_compared_with_itself() -> None:
    """Another run may be from another machine."""
    first = run_of(exported("torch", 1.0), name="first.json")
    second = run_of(case("net", "torch"), name="second.json")
    (row,) = rows(part([first, second], _EXPORTED))
    assert row["there"] == ""


_ACCURACY = "accuracy, time and bytes: net cpu 100"


def trained(framework: str, dtype: str, value_s: float, accuracy: float, **facts: Any) -> Any:
    known = {"accuracy": accuracy, "agreement": 0.99, "tested_examples": 2_000, "dtype": dtype}
    return case("net", framework, value_s, **known, **facts)


def test_a_dtype_stands_beside_float32_of_the_same_framework() -> None:
    run = run_of(
        trained("torch", "float32", 1.0, 0.95, model_bytes=240 * 2**10),
        trained("torch", "int8", 2.0, 0.94, model_bytes=70 * 2**10, int8_features=""),
        trained("mxnet", "int8", 0.5, 0.93, int8_features="avx512_vnni"),
    )
    torch, narrow, alone = rows(part([run], _ACCURACY))
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


def test_upper_bounds_have_no_ratio_to_float32() -> None:
    """A contended float32 of 104 ms once made int8 1,891 times as fast."""
    run = run_of(
        trained("torch", "float32", 1.0, 0.95, condition="contended"),
        trained("torch", "int8", 0.001, 0.94),
        trained("mxnet", "float32", 1.0, 0.95),
        trained("mxnet", "int8", 0.5, 0.94, condition="contended"),
        trained("mxnet", "bfloat16", 0.5, 0.94),
    )
    shown = {
        (row["case"], row["dtype"]): row["times as fast"] for row in rows(part([run], _ACCURACY))
    }
    assert shown == {
        ("torch eager (contended)", "float32"): "",
        ("torch eager", "int8"): "",
        ("mxnet eager", "float32"): "1.00",
        ("mxnet eager (contended)", "int8"): "",
        ("mxnet eager", "bfloat16"): "2.00",
    }


def test_dtypes_are_points_of_a_track() -> None:
    run = run_of(
        trained("torch", "float32", 1.0, 0.95, model_bytes=240 * 2**10),
        trained("torch", "int8", 2.0, 0.94, model_bytes=70 * 2**10),
        trained("jax", "float32", 0.5, 0.95),
    )
    times, sizes = part([run], _ACCURACY).charts
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


def test_a_dtype_of_another_release_is_drawn() -> None:
    run = run_of(trained("torch", "int4", 1.0, 0.9, model_bytes=2**10))
    times, _ = part([run], _ACCURACY).charts
    assert times.text.endswith(": torch eager int4 1 s, 90.00%")
