"""Sample output in documents is what today's code prints: a command stands for each."""

import ast
import re
import shutil
from dataclasses import replace
from pathlib import Path
from subprocess import CalledProcessError

import pytest
import pytest_benchmark
import samples

import fwbench
from fwbench.frameworks.declared import manifests
from fwbench.workloads import LOOPS, OPERATIONS, STEPS
from support import documents
from support.documents import PAGES, blocks

#: Written from the code as a whole, with all that they show.
_GENERATED = (
    "docs/commands.md",
    "docs/frameworks.md",
    "docs/cheats.md",
    "docs/operations.md",
    "docs/record.md",
)

_ALL = [sample for page in PAGES for sample in samples.samples(page)]
_PICTURES = [picture for page in PAGES for picture in samples.pictures(page)]

#: What takes a second: nothing is measured.
_CHEAP = [sample for sample in _ALL if re.match(r"fwbench (list|gate)\b", sample.command)]
_MEASURED = [sample for sample in _ALL if sample not in _CHEAP]

#: Words that follow each other in a line, between numbers, names and marks.
_PHRASE = re.compile(r"[a-z][a-z'-]+(?: [a-z][a-z'-]+){2,}")


def _name(sample: samples.Sample) -> str:
    return f"{sample.page}: {sample.command}"


def test_all_output_is_a_sample() -> None:
    """A block of text says which command printed it, so that it can be printed again."""
    shown = [
        block
        for page in PAGES
        if page not in _GENERATED
        for block in blocks(page)
        if block.language in ("", "text")
    ]
    assert [block.text for block in shown] == [sample.text for sample in _ALL]
    assert _CHEAP
    assert _MEASURED


@pytest.mark.parametrize("sample", _CHEAP, ids=_name)
def test_what_takes_a_second_is_printed_again(sample: samples.Sample, tmp_path: Path) -> None:
    """If this fails: make samples ARGS="'the command'"."""
    samples.prepare(tmp_path)
    assert sample.cut(samples.output(sample.command, tmp_path)) == sample.text


def test_a_command_that_breaks_down_is_no_sample(tmp_path: Path) -> None:
    """Its error message would be in the document from then on."""
    assert samples.output("echo failed cases; exit 1", tmp_path) == "failed cases\n"
    with pytest.raises(CalledProcessError, match="exit status 4"):
        samples.output("echo 'no such option'; exit 4", tmp_path)


@pytest.fixture(scope="module")
def printed() -> str:
    """All text that fwbench and pytest-benchmark can print, a string of the source a line."""
    folders = [Path(module.__file__).parent for module in (fwbench, pytest_benchmark)]
    trees = (
        ast.parse(file.read_text(encoding="utf-8"))
        for folder in folders
        for file in folder.rglob("*.py")
    )
    return "\n".join(text for tree in trees for text in _strings(tree))


def _strings(tree: ast.AST) -> list[str]:
    """The strings of a module, what is put into them left out."""
    strings = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "" for part in node.values]
            strings.append(" ".join("".join(parts).split()))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.append(" ".join(node.value.split()))
    return strings


def _names() -> set[str]:
    """Names that a line may have: workloads, frameworks, executions, directions, sides."""
    loops = (*LOOPS, *STEPS, *(loop.loader for loop in LOOPS))
    workloads = {workload.name for workload in (*loops, *OPERATIONS)}
    declared = manifests()
    executions = {name for m in declared.values() for name in (*m.executions, "fit")}
    return {*workloads, *declared, *executions, "forward", "backward", "cpu", "base", "contender"}


def _named(word: str) -> str:
    """The name within a word; a case begins with its workload."""
    return word.strip(",:()").partition("-")[0]


@pytest.mark.parametrize("sample", _MEASURED, ids=_name)
def test_the_words_of_a_measured_sample_are_still_printed(
    sample: samples.Sample, printed: str
) -> None:
    """Its numbers and lines depend on the machine; its phrases are those of the source.

    If this fails: make samples ARGS="'the command'", on an idle machine.
    """
    names = _names()
    for cell in re.split(r"\n|  +", sample.text):
        text = " ".join("|" if _named(word) in names else word for word in cell.split())
        for phrase in _PHRASE.findall(text):
            # Its first word may be one of several, for one thing or more.
            known = phrase in printed or phrase.partition(" ")[2] in printed
            assert known, f"nothing prints {phrase!r}"


@pytest.mark.parametrize("picture", _PICTURES, ids=lambda picture: picture.name)
def test_pictures_are_what_is_drawn_of_their_runs(picture: samples.Picture) -> None:
    """If this fails: make samples ARGS=--draw."""
    drawn = picture.drawn()
    assert len(drawn) == len({*drawn.values()}) == 2
    for file, text in drawn.items():
        assert file.read_text(encoding="utf-8") == text
        assert "var(--" not in text
        assert f"docs/{file.name}" in documents.read(picture.page)
    assert f"`{picture.command}`" in documents.read(picture.page)


def test_a_picture_that_no_report_has_is_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (picture,) = _PICTURES
    (tmp_path / "page.md").write_text(f"<!-- picture (other): {picture.command} -->\n", "utf-8")
    shutil.copy(picture.run, tmp_path / "other.json")
    for module in (documents, samples):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(samples, "PAGES", ["page.md"])
    monkeypatch.setattr(samples, "_RUNS", tmp_path)
    monkeypatch.setattr("sys.argv", ["samples", "--draw"])
    assert samples.main() == 1
    assert "left as it is: other: there are ['lenet_step " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("last", "shown"), [("2", ["", "5 end"]), ("0", []), ("3rd", ["3rd", "4"])]
)
def test_a_sample_may_show_its_ends_alone(last: str, shown: list[str]) -> None:
    printed = "1\n2\n3rd\n4\n\n5 end\n"
    sample = samples.Sample("page.md", "fwbench", False, (1, last), "", (0, 0))
    assert sample.cut(printed).splitlines() == ["1", "[...]", *shown]
    assert replace(sample, ends=(6, "0")).cut(printed) == printed
    with pytest.raises(ValueError, match="no line begins with other"):
        replace(sample, ends=(1, "other")).cut(printed)


def test_the_readme_is_short_and_shows_first() -> None:
    """A sentence and a picture, for white and for dark, stand before everything else."""
    lines = documents.read("README.md").splitlines()
    assert len(lines) <= 100
    assert [line for line in lines if len(line) > 120] == []
    before, _, after = "\n".join(lines).partition("\n## ")
    assert "<picture>" in before
    assert 'media="(prefers-color-scheme: dark)"' in before
    assert {"make bench", "fwbench ab", "fwbench since"} <= {
        *re.findall(r"make bench|fwbench \w+", after)
    }


def test_samples_are_written_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = ("echo one; exit 1", "true", "echo three; exit 3", "printf 'four\\nfour\\n'")
    page = "\n".join(f"<!-- sample: {it} -->\n```text\nold\n```\n" for it in commands)
    (tmp_path / "page.md").write_text(page, encoding="utf-8")
    for module in (documents, samples):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(samples, "PAGES", ["page.md"])
    monkeypatch.setattr(samples, "prepare", lambda folder: None)
    monkeypatch.setattr("sys.argv", ["samples"])
    assert samples.main() == 1
    written = [sample.text for sample in samples.samples("page.md")]
    assert written == ["one\n", "old\n", "old\n", "four\nfour\n"]
    output = capsys.readouterr().out
    assert "left as it is: true printed nothing" in output
    assert "returned non-zero exit status 3.\nthree\n" in output
