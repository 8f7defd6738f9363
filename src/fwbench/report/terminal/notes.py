"""Texts around the tables: machine, answer, means, overhead, energy, probes, skips."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from fwbench.errors import some
from fwbench.records.facts import CaseFacts, Memory, Profile
from fwbench.records.measurement import Measurement, group_by
from fwbench.records.session_facts import StoredRace
from fwbench.records.units import JOULES, count, mebibytes, time
from fwbench.report import ranking
from fwbench.report.condition import early, is_contended, is_over_memory
from fwbench.report.races import race_answer
from fwbench.report.ranking import Contest, Decision, Ranking, answers, contests, fastest, works
from fwbench.report.terminal.matrix import ratio_text

Cases = Sequence[Measurement]

#: At most this many cases of a kind are named.
_SHOWN = 3

#: The smallest share that a line names, and the name of all others together.
_LEAST, _REST = 0.03, "rest"

_FASTEST = "Fastest here"

#: The verdict of a race on a group that it has not decided.
_UNDECIDED = "undecided"


def headline(cases: Cases) -> str:
    """Machine, threads and versions: ``AMD EPYC 7B13, 2 threads: numpy 1.26.4, torch 2.13.0``."""
    models = {case.facts.device: case.facts.device_name or case.facts.device for case in cases}
    devices = [*models.values()]
    if len(models) > 1:
        devices = [f"{model} ({device})" for device, model in sorted(models.items())]
    threads = sorted({case.facts.threads for case in cases if case.facts.threads is not None})
    common = [count(threads[0], "thread")] if len(threads) == 1 else []
    versions = _versions(cases, with_threads=len(threads) > 1)
    return f"{', '.join([*devices, *common])}: {', '.join(versions)}"


def _versions(cases: Cases, *, with_threads: bool) -> list[str]:
    """Each framework with its version, and on request with its threads."""
    frameworks = {case.facts.framework: case.facts for case in cases}
    return [
        " ".join(filter(None, [name, facts.framework_version]))
        + (f" ({count(facts.threads, 'thread')})" if with_threads and facts.threads else "")
        for name, facts in sorted(frameworks.items())
    ]


def answer(cases: Cases, race: StoredRace | None = None, *, in_full: bool = False) -> list[str]:
    """The fastest framework for each kind of workload and device, by size, and by how much.

    Args:
        race: of the same cases; if it has decided anything, its verdicts are the answer.
    """
    if by_race := race_answer(race):
        return [f"{_FASTEST}, by the race above: {by_race}"]
    several = [contest for contest in contests(cases) if contest.is_between_frameworks]
    if not several:
        return [_why_none(cases)]
    by_kind = ranking.by_kind(several)
    devices = {device for _, device in by_kind}
    if len(by_kind) == 1:
        return [*_by_size(ranking.named(_FASTEST, *devices), several, in_full=in_full)]
    every = {_kind(*key, devices): group for key, group in by_kind.items()}
    lone = [name for name, group in every.items() if len(group) == 1]
    lines = [
        line
        for name, group in every.items()
        if name not in lone
        for line in _by_size(f"{_FASTEST}, {name}", group, in_full=in_full)
    ]
    texts = [line for name in lone for line in _by_size(name, every[name], in_full=in_full)]
    return [*lines, f"{_FASTEST}, {'; '.join(texts)}"] if texts else lines


def _by_size(name: str, contests: Sequence[Contest], *, in_full: bool) -> Iterator[str]:
    """The answer, or one for small sizes and one for large where there are several of both."""
    (whole,) = answers(contests)
    small, large = ranking.extremes(contests)
    is_divided = len(small) > 1 and whole.is_known
    if in_full or not is_divided:
        yield f"{name}: {whole.text}"
    if not small:
        yield from _ahead(contests)
    if is_divided:
        yield from [] if in_full else [f"{name}:"]
        others = "large or only" if ranking.have_single_sizes(contests) else "large"
        for size, part in (("small", small), (others, large)):
            yield from (f"  {size} sizes: {answer.text}" for answer in answers(part))
            yield from _ahead(part)


def _ahead(contests: Sequence[Contest]) -> Iterator[str]:
    """Geometric means of the times of frameworks over the fastest of each row that all have."""
    over, means = ranking.framework_means(contests)
    if over.is_enough and over.known > 1:
        texts = ", ".join(f"{name} {ratio_text(mean)}" for name, mean in means.items())
        yield f"    means of {over.known} rows: {texts}"


def _kind(kind: str, device: str, devices: set[str]) -> str:
    return ranking.named(f"{kind}, {device}" if len(devices) > 1 else kind, device)


def _why_none(cases: Cases) -> str:
    names = sorted({case.facts.framework for case in cases})
    if {case.facts.workload for case in cases} == {"noop"}:
        return "noop does no work, so it is not ranked; -v shows its times"
    if len(names) == 1:
        return f"only {names[0]} was measured: nothing to compare"
    return f"nothing to compare: {_why_apart(cases, names)}"


def _why_apart(cases: Cases, names: Sequence[str]) -> str:
    """The reason why frameworks do not meet, by the first work that several of them did."""
    working = [case for case in cases if case.facts.workload != "noop"]
    every = group_by(working, lambda case: ranking.work(case.facts)).values()
    same = next((group for group in every if _are_several(group)), None)
    if same is None:
        return f"{', '.join(names)} share no workload and size"
    if any(is_over_memory(case.facts) for case in same):
        return "exchanges over loopback wait for processors, not for bytes: try --fw-network"
    if any(case.facts.unequal is not None for case in same):
        return "trainings of the same work differ"
    labels = (work.label.strip(" ()") for work in works(same))
    return f"results of the same work differ: {', '.join(dict.fromkeys(labels))}"


def _are_several(cases: Cases) -> bool:
    return len({case.facts.framework for case in cases}) > 1


def next_steps(
    cases: Cases, stored: str, race: StoredRace | None = None, *, has_journal: bool = True
) -> list[str]:
    """Two things to do next, by what was seen.

    Args:
        stored: the file of the records; empty if they are in the journal alone.
        race: of the same cases.
        has_journal: whether there is one.
    """
    every = contests(cases)
    contended = [case for case in cases if is_contended(case.facts)]
    close = {
        contest.facts.workload: None
        for contest in every
        if contest.decision is Decision.CLOSE and contest.is_between_frameworks
    }
    # From the bracket of an id to the hyphen behind the name: "relu" is in "leaky_relu", too.
    named = " or ".join(f"[{name}-" for name in [*close][:_SHOWN])
    charts = "fwbench recover -o run.json; fwbench report run.json -o run.html"
    charts = charts if has_journal else "measure with --benchmark-json run.json: no record is kept"
    steps = [
        "stop what else keeps processors busy (top lists it), and measure again"
        * (bool(contended) and not race_answer(race)),
        f'what is too close to call: -k "{named}" --fw-race' * (bool(close) and race is None),
        "what the race left undecided: give it more time (--fw-budget)" * _is_open(race),
        f"charts: {f'fwbench report {stored} -o run.html' if stored else charts}",
        "a function or a model of your own, in ten lines: docs/own-operation.md",
    ]
    first, second = [step for step in steps if step][:2]
    return [f"Next: {first}", f"      {second}"]


def _is_open(race: StoredRace | None) -> bool:
    """True if more time may decide a group."""
    groups = race.groups if race else []
    return any(
        group.verdict == _UNDECIDED and not any(rival.disturbed for rival in group.contestants)
        for group in groups
    )


def geometric_means(cases: Cases) -> list[str]:
    """Geometric means of time against the fastest, over the cases that all share."""
    rankings = ranking.rankings(contests(cases))
    return [line for ranking in rankings for line in _ranking(ranking)]


def _ranking(ranking: Ranking) -> list[str]:
    if not ranking.means:
        return [f"{ranking.title}: not ranked: {ranking.why_empty}"]
    names = [*(mean.name for mean in ranking.means), *(rest.name for rest in ranking.unranked)]
    width = max(map(len, names))
    sizes = [size for size in ("smallest", "largest") if getattr(ranking, size).of]
    over = ", and ".join(f"over {getattr(ranking, size).text} of {size} size" for size in sizes)
    return [
        f"{ranking.title}: geometric mean of the median times against the fastest, {over}:",
        *(
            f"  {mean.name:<{width}} {''.join(_ratio(getattr(mean, size)) for size in sizes)}"
            for mean in ranking.means
        ),
        *(f"  {rest.name:<{width}}  {rest.text}" for rest in ranking.unranked),
    ]


def _ratio(mean: float | None) -> str:
    return f"{'-' if mean is None else f'{mean:.2f}x':>10}"


def overhead(cases: Cases) -> list[str]:
    """The time of harness and framework to do nothing: the least of the times of ``noop``."""
    idle = [case for case in cases if case.facts.workload == "noop"]
    least = fastest(idle, lambda case: f"{case.facts.framework} {case.facts.execution}")
    if not least:
        return []
    costs = ", ".join(f"{name} {time(case.median_s)}" for name, case in least.items())
    return [f"noop, the time to do nothing (not subtracted): {costs}"]


def dispatch(cases: Cases, *, in_full: bool) -> list[str]:
    """The frameworks whose calls returned long before their work was done."""
    apart: dict[str, list[tuple[float, CaseFacts]]] = defaultdict(list)
    for facts in (case.facts for case in cases):
        times_s = early(facts)
        if times_s is not None:
            returned_s, done_s = times_s
            apart[facts.framework].append((done_s / returned_s, facts))
    return [
        f"{framework}: {count(len(calls), 'case')} returned in less than half the time that the "
        f"work took{_most(calls) if in_full else ''}"
        for framework, calls in apart.items()
    ]


def _most(cases: Iterable[tuple[float, CaseFacts]]) -> str:
    ratio, facts = max(cases, key=lambda case: case[0])
    name = f"{facts.workload} {facts.execution} {facts.shape or facts.size}"
    times = f"{facts.text('dispatch_s')} of {facts.text('completion_s')} ({ratio:.0f}x)"
    return f", most of all {name}: after {times}"


def energy(cases: Cases, *, in_full: bool) -> list[str]:
    """The energy of a call, or of an epoch, of each contestant on a GPU that counts it."""
    counted = []
    for work in works(cases):
        by_energy = [(c.facts.energy_j, c.contestant) for c in work.entrants if c.facts.energy_j]
        if by_energy:
            counted.append((max(by_energy)[0], work, sorted(by_energy)))
    counted.sort(key=lambda entry: entry[0], reverse=True)
    shown = counted if in_full else counted[:_SHOWN]
    lines = [
        f"energy of {'a call' if work.facts.epoch_s is None else 'an epoch'}, {work.title}: "
        + ", ".join(f"{name} {JOULES.show(energy_j)}" for energy_j, name in by_energy)
        for _, work, by_energy in shown
    ]
    more = len(counted) - len(shown)
    return [*lines, f"energy of {count(more, 'other work')}: -v"] if more else lines


def unsteady(cases: Cases, *, in_full: bool) -> list[str]:
    """The cases whose times had not settled when their warm-up ended."""
    names = [case.name for case in cases if case.facts.steady is False]
    if not names:
        return []
    cases_of = count(len(names), "case")
    line = f"{cases_of} not steady after warm-up: --fw-warmup or a quiet machine may help"
    return [line, f"  {some(names, _SHOWN)}"] if in_full else [line]


def skipped(reasons: Sequence[str], *, in_full: bool) -> list[str]:
    """The number of cases that were skipped, by reason."""
    counts = Counter(reasons).most_common()
    if in_full or len(counts) == 1:
        return [f"skipped {count(number, 'case')}: {reason}" for reason, number in counts]
    if not counts:
        return []
    return [f"skipped {count(len(reasons), 'case')} for {len(counts)} reasons: -rs lists them"]


def profiles(cases: Cases, traces: str, *, in_full: bool) -> Iterator[str]:
    """Shares of the time by class of operators, the folder of the traces, and what was sampled."""
    sampled = sum(case.facts.sampled is not None for case in cases)
    if sampled:
        yield f"functions of {count(sampled, 'case')} sampled: fwbench report shows them"
    profiled = [(case, case.facts.profile) for case in cases if case.facts.profile is not None]
    if not profiled:
        return
    if in_full:
        yield "where the time goes, by the frameworks' own profilers:"
        for case, profile in profiled:
            yield f"  {case.name}: {_shares(case.facts, profile)}"
    else:
        gaps = sum(profile.gap is not None for _, profile in profiled)
        without = f", {gaps} without a result" if gaps else ""
        yield f"{count(len(profiled), 'case')} profiled{without}: -v shows where the time goes"
    if any(profile.trace for _, profile in profiled):
        yield f"traces for https://ui.perfetto.dev: {traces}"


def _shares(facts: CaseFacts, profile: Profile) -> str:
    if profile.shares is None:
        return profile.gap or "nothing profiled"
    ordered = sorted(profile.shares.items(), key=lambda named: -named[1])
    shown = {name: share for name, share in ordered if share >= _LEAST}
    rest = 1.0 - sum(shown.values())
    if rest >= _LEAST / 2:
        shown[_REST] = rest
    overhead = facts.profile_overhead
    cost = "" if overhead is None else f" ({_cost_of_profiler(overhead)})"
    points = round(100 * (profile.shares_within or 0.0))
    within = "" if profile.shares_within is None else f" within {count(points, 'point')}"
    return ", ".join(f"{name} {share:.0%}" for name, share in shown.items()) + within + cost


def _cost_of_profiler(overhead: float) -> str:
    """A cost is not negative: what calls differ by is then more than what it costs."""
    return f"profiler: {overhead:+.0%}" if overhead > 0 else "profiler: cost too small to measure"


def memory(cases: Cases, *, in_full: bool) -> Iterator[str]:
    """Peak memory of the calls of each case."""
    measured = [case for case in cases if case.facts.memory is not None]
    if not measured:
        return
    if not in_full:
        yield f"memory of {count(len(measured), 'case')} measured: -v shows it, and reports do"
        return
    yield "peak memory above what was held before, each in a process of its own:"
    for case in measured:
        facts = case.facts
        parts = {"forward": facts.forward_memory, facts.direction: facts.memory}
        yield f"  {case.name}: {', '.join(_memory(what, m) for what, m in parts.items() if m)}"


def _memory(what: str, memory: Memory) -> str:
    """The peak, and in brackets what else is known."""
    if memory.above_bytes is None:
        return f"{what} {memory.gap or 'unknown'}"
    known = {"planned": memory.planned_bytes, "kept for the gradient": memory.saved_bytes}
    more = [f"{mebibytes(size)} {name}" for name, size in known.items() if size is not None]
    brackets = f" ({', '.join(more)})" if more else ""
    return f"{what} {mebibytes(memory.above_bytes)}{brackets}"
