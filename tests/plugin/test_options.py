"""Options are read from the command line, the ini file and markers; each has its place."""

import argparse
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from fwbench.errors import UsageError
from fwbench.options import options, values
from fwbench.options.options import Options, Selection
from fwbench.plugin.options import (
    add_to,
    from_config,
    from_marker,
    ignored,
    precision_of,
    threshold_of,
)
from support.tables import tabled, tables

# Sources


def options_of(pytester: pytest.Pytester, *arguments: str, ini: str = "") -> Options:
    """The options of a session with this command line and these ini settings."""
    pytester.makeini(f"[pytest]\n{ini}")
    return from_config(pytester.parseconfig(*arguments))


def test_defaults(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any source every selection is open, and settings are what the help says."""
    spec = options.SETTINGS["threads"]
    monkeypatch.setitem(
        options.SETTINGS,  # type: ignore[arg-type]
        "threads",
        options.Option(spec.flag, spec.parse, spec.metavar, spec.help, lambda: 5),
    )
    assert options_of(pytester) == Options(
        requested=Selection(),
        configured=Selection(),
        threads=5,
        isolation="process",
        timeout_s=300.0,
        warmup_s=0.2,
        precision=0.02,
        epochs=None,
        warmup_epochs=None,
        repetitions=None,
        steps=None,
        toggles={},
        profile=False,
        traces=None,
        memory=False,
        data=None,
        record_host=False,
        tables=False,
        launches=None,
        revisit=None,
        budget_s=None,
        race=False,
        threshold=0.03,
        seed=None,
        first_call="shared",
        gate=None,
        fail_on=("different-results", "regressed", "missing", "all-inconclusive"),
        allow_different=(),
    )


@tabled
@pytest.mark.parametrize("source", ["command line", "ini"])
def test_each_option_is_read_from_either_source(
    pytester: pytest.Pytester, argument: str, setting: str, name: str, value: Any, source: str
) -> None:
    request = (
        options_of(pytester, ini=setting) if source == "ini" else options_of(pytester, argument)
    )
    selection = request.configured if source == "ini" else request.requested
    expected = Path(value) if name in ("places", "traces", "data") else value
    assert {**vars(request), **vars(selection), **request.toggles}[name] == expected


def test_every_option_is_among_those_tested() -> None:
    tested = tables(__file__)["test_each_option_is_read_from_either_source"]["rows"]
    numbers = {*values.SCHEDULE}  # of --fw-train
    assert numbers < {*tested}
    assert {*tested, "train"} == {*options.SELECTORS, *options.SETTINGS, *numbers}


def test_first_calls_are_fresh_in_launches_alone(pytester: pytest.Pytester) -> None:
    for argument in ("--fw-launches=2", "--fw-race", "--fw-budget=9s"):
        assert options_of(pytester, argument, "-ofw_first_call=fresh").first_call == "fresh"
    with pytest.raises(UsageError, match="add --fw-launches 5, or leave it out"):
        options_of(pytester, "-ofw_first_call=fresh")


def test_a_gate_needs_no_threshold(pytester: pytest.Pytester) -> None:
    assert options_of(pytester, "--fw-gate").gate == {"time": 0.03}


@pytest.mark.parametrize("flag", ["--pdb", "--trace", "--setup-plan", "--fw-isolation=none"])
def test_one_process_ignores_launches_of_the_ini_file(pytester: pytest.Pytester, flag: str) -> None:
    """And what needs them; what the command line has of them is refused."""
    launching = "fw_launches = 5\nfw_budget = 5min\nfw_race = true\nfw_first_call = fresh"
    ini = f"{launching}\nfw_gate = 5%\nfw_threads = 3"
    request = options_of(pytester, flag, ini=ini)
    assert (request.isolation, request.threads) == ("none", 3)
    assert (request.launches, request.budget_s, request.race) == (None, None, False)
    assert (request.first_call, request.gate) == ("shared", None)
    for argument in ("--fw-launches=2", "--fw-race", "--fw-budget=9s"):
        message = f"^{argument.partition('=')[0]} .*{flag}.* leave out one of them"
        with pytest.raises(UsageError, match=message):
            options_of(pytester, flag, argument, ini=ini)
    request = options_of(pytester, flag, "-ofw_first_call=fresh", ini=ini)  # a setting, likewise
    assert request.first_call == "shared"


def test_settings_that_ask_for_no_launches_are_not_ignored(pytester: pytest.Pytester) -> None:
    """They say what holds anyway; without a debugger no setting is ignored."""
    config = pytester.parseconfig("--pdb", "-o", "fw_race=false", "-o", "fw_first_call=shared")
    assert ignored(config) == []
    assert ignored(pytester.parseconfig("-o", "fw_launches=5")) == []
    assert ignored(pytester.parseconfig("--pdb", "-o", "fw_launches=5")) == ["launches"]


def test_launches_and_no_isolation_in_one_ini_file_are_refused(pytester: pytest.Pytester) -> None:
    with pytest.raises(UsageError, match=r"--fw-launches .* leave out one of them"):
        options_of(pytester, ini="fw_launches = 5\nfw_isolation = none")


def test_a_marker_has_a_threshold_beside_its_selection() -> None:
    """It selects nothing, and is a share like that of the command line."""
    mark = marked(threshold="5%", sizes=8)
    assert from_marker(mark) == Selection(sizes=(8,))
    assert threshold_of(mark) == 0.05
    assert threshold_of(marked()) is None
    with pytest.raises(UsageError, match="threshold '2' is not a fraction"):
        threshold_of(marked(threshold=2))


@tabled
def test_a_marker_has_a_precision_between_command_line_and_ini_file(
    pytester: pytest.Pytester,
    arguments: tuple[str, ...],
    ini: str,
    marked_as: Any,
    precision: float,
) -> None:
    """It selects nothing; the command line wins over it, and it over the ini file."""
    pytester.makeini(f"[pytest]\n{ini}")
    mark = marked() if marked_as is None else marked(precision=marked_as)
    assert from_marker(mark) == Selection()
    assert precision_of(pytester.parseconfig(*arguments), mark) == precision


def test_a_markers_precision_is_checked(pytester: pytest.Pytester) -> None:
    with pytest.raises(UsageError, match="precision '2' is not a fraction"):
        precision_of(pytester.parseconfig("--fw-precision=1%"), marked(precision=2))


def test_the_help_says_per_cent_once() -> None:
    """argparse formats the help of an option, and nothing that of an ini setting."""
    parser = Mock()
    add_to(parser)
    helps = [call.kwargs["help"] for call in parser.getgroup().addoption.call_args_list]
    settings = [call.args[1] for call in parser.addini.call_args_list]
    every = [*options.SELECTORS.values(), *options.SETTINGS.values()]
    with_flags = [option for part in options.PARTS for option in every if option.part == part]
    shown = [option.help for option in with_flags if not option.ini]
    assert sorted(text % {} for text in helps) == sorted(shown)
    assert any("3%)" in text for text in shown)
    assert not any("%%" in text for text in settings)


def test_the_help_is_short(pytester: pytest.Pytester) -> None:
    """At most thirty options, in three parts, each with one line of help in 80 columns."""
    every = [*options.SELECTORS.values(), *options.SETTINGS.values()]
    shown = [option for option in every if not option.ini]
    assert len(shown) <= 30
    assert [option.flag for option in every if len(option.help) > 54] == []
    output = str(pytester.runpytest_inprocess("--help").stdout)
    heads = [f"\nfwbench: {part}:\n  --fw" for part in options.PARTS]
    assert [head for head in heads if head not in output] == []
    assert all(f"\n  {option.flag}" in output for option in shown)
    assert not any(f"\n  {option.flag}" in output for option in every if option.ini)


def test_a_setting_without_a_flag_is_given_by_o(pytester: pytest.Pytester) -> None:
    request = options_of(pytester, "-o", "fw_engine=local", "-ofw_scaling=weak")
    assert (request.engine, request.scaling) == ("local", "weak")


def test_a_schedule_is_one_option(pytester: pytest.Pytester) -> None:
    """The command line's is instead of the ini file's."""
    request = options_of(pytester, "--fw-train=epochs=5,warmup-epochs=2", "--fw-train=steps=3")
    assert (request.epochs, request.warmup_epochs, request.steps) == (5, 2, 3)
    request = options_of(pytester, "--fw-train=epochs=5", ini="fw_train = epochs=9,steps=3")
    assert (request.epochs, request.steps) == (5, None)
    request = options_of(pytester, ini="fw_train = epochs=5 warmup-epochs = 1")
    assert (request.epochs, request.warmup_epochs) == (5, 1)
    for wrong in ("epoch=5", "epochs", "epochs=5,,steps=2"):
        with pytest.raises((pytest.UsageError, SystemExit)):
            options_of(pytester, f"--fw-train={wrong}")


def test_whether_threads_were_given_is_known(pytester: pytest.Pytester) -> None:
    """Replicas share the CPUs otherwise."""
    assert not options_of(pytester).threads_asked
    assert options_of(pytester, "--fw-threads=2").threads_asked
    assert options_of(pytester, ini="fw_threads = 2").threads_asked


def test_an_empty_setting_is_the_default(pytester: pytest.Pytester) -> None:
    request = options_of(pytester, ini="fw =\nfw_timeout =\n")
    assert request.configured == Selection()
    assert request.timeout_s == 300.0


@tabled
def test_several_toggles(
    pytester: pytest.Pytester,
    arguments: tuple[str, ...],
    ini: str,
    toggles: dict[str, tuple[str, ...]],
) -> None:
    given = [f"--fw-toggle={argument}" for argument in arguments]
    given += ["--fw-replicas=1,2"] * ("replicas" in toggles)
    assert options_of(pytester, *given, ini=f"fw_toggle = {ini}").toggles == toggles


def test_a_folder_in_the_ini_file_is_relative_to_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pytester.path / "sets").mkdir()
    (pytester.path / "elsewhere").mkdir()
    config = pytester.parseconfig("-c", str(pytester.makeini("[pytest]\nfw_data = sets")))
    monkeypatch.chdir(pytester.path / "elsewhere")
    assert from_config(config).data == pytester.path / "sets"


def test_a_folder_of_the_current_one_is_kept_as_a_whole_path(pytester: pytest.Pytester) -> None:
    """A worker that begins elsewhere looks in the same place."""
    pytester.mkdir("sets")
    assert options_of(pytester, "--fw-data=sets").data == pytester.path / "sets"


def test_the_command_line_wins_over_a_setting(pytester: pytest.Pytester) -> None:
    request = options_of(
        pytester, "--fw-threads=3", "--fw-warmup=0", ini="fw_threads = 4\nfw_warmup = 9"
    )
    assert (request.threads, request.warmup_s) == (3, 0.0)


def test_command_line_over_marker_over_ini_over_default(pytester: pytest.Pytester) -> None:
    ini = "fw = from_ini\nfw_dtype = from_ini\nfw_execution = from_ini"
    request = options_of(pytester, "--fw=from_command_line", ini=ini)
    marker = Selection(frameworks=("from_marker",), dtypes=("from_marker",))
    assert request.selection(marker) == Selection(
        frameworks=("from_command_line",),
        dtypes=("from_marker",),
        executions=("from_ini",),
        devices=None,
    )


def refused(pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str], argument: str) -> str:
    """The message of pytest about a bad argument."""
    with pytest.raises((pytest.UsageError, SystemExit, argparse.ArgumentError)) as caught:
        options_of(pytester, argument)
    return f"{caught.value}{capsys.readouterr().err}"


@tabled
def test_bad_options_are_refused_by_name(
    pytester: pytest.Pytester,
    capsys: pytest.CaptureFixture[str],
    option: str,
    value: str,
    message: str,
) -> None:
    output = refused(pytester, capsys, f"--fw-{option}={value}")
    assert f"argument --fw-{option}: {message}" in output
    setting = f"fw_{option.replace('-', '_')}"
    with pytest.raises(UsageError, match=f"ini setting {setting}: .*{message[1:]}"):
        options_of(pytester, ini=f"{setting} = {value}")


@pytest.mark.parametrize("file", ["pyproject.toml", "pytest.toml"])
def test_numbers_and_booleans_of_toml_are_values(pytester: pytest.Pytester, file: str) -> None:
    """pytest itself takes no other texts than those in quotes."""
    table = "[tool.pytest]" if file == "pyproject.toml" else "[pytest]"
    settings = "fw_threads = 3\nfw_precision = 0.1\nfw_wait = false\nfw_resume = true"
    pytester.path.joinpath(file).write_text(f"{table}\n{settings}", encoding="utf-8")
    options = from_config(pytester.parseconfig())
    assert (options.threads, options.precision) == (3, 0.1)
    assert (options.wait, options.resume) == (False, True)


@pytest.mark.parametrize("value", ["{ a = 1 }", "1979-05-27"])
@pytest.mark.parametrize("setting", ["fw_toggle", "fw_gate", "fw_threads"])
def test_a_setting_of_another_type_is_refused(
    pytester: pytest.Pytester, setting: str, value: str
) -> None:
    """It ends the session at once, as a wrong value does."""
    pytester.makepyprojecttoml(f"[tool.pytest]\n{setting} = {value}")
    with pytest.raises(UsageError, match=f"ini setting {setting}: .* neither a text nor a number"):
        from_config(pytester.parseconfig())


@pytest.mark.parametrize("setting", ["fw_toggle", "fw_traces", "fw_size"])
def test_a_list_is_refused(pytester: pytest.Pytester, setting: str) -> None:
    pytester.makepyprojecttoml(f"[tool.pytest.ini_options]\n{setting} = [1, 2]")
    with pytest.raises(UsageError, match=f"ini setting {setting}: .* is a list; give a text"):
        from_config(pytester.parseconfig())


def marked(**keywords: Any) -> pytest.Mark:
    return pytest.mark.fwbench(**keywords).mark


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        ({}, Selection()),
        ({"sizes": (8, 64)}, Selection(sizes=(8, 64))),
        ({"sizes": [8]}, Selection(sizes=(8,))),
        ({"sizes": 8}, Selection(sizes=(8,))),
        ({"sizes": "8, 64"}, Selection(sizes=(8, 64))),
        ({"sizes": "full"}, Selection(sizes="full")),
        ({"sizes": ("8x64", 8)}, Selection(sizes=("8x64", 8))),
        ({"families": "linalg"}, Selection(families=("linalg",))),
        ({"frameworks": "torch"}, Selection(frameworks=("torch",))),
        ({"devices": ("gpu",)}, Selection(devices=("gpu:0",))),
        (
            {"executions": ["eager"], "dtypes": ("float16", "float32"), "directions": "backward"},
            Selection(
                executions=("eager",), dtypes=("float16", "float32"), directions=("backward",)
            ),
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "read",
)
def test_markers_take_names_and_numbers(keywords: dict[str, Any], expected: Selection) -> None:
    assert from_marker(marked(**keywords)) == expected


def test_pytest_lists_all_keywords_of_the_marker(pytester: pytest.Pytester) -> None:
    listed = pytester.parseconfigure().getini("markers")
    (line,) = (line for line in listed if line.startswith("fwbench("))
    assert line.startswith(
        "fwbench(*operations, frameworks, devices, executions, dtypes, directions, sizes, "
        "families, precision, threshold): "
    )


@tabled
def test_bad_markers_are_refused(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        from_marker(marked(**keywords))
