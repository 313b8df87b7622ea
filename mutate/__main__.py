"""`make mutate`: how many changes of the rules of money and outcomes no test notices.

The tests that run the changed lines run, those of the module first, then some of each other file.
In a function or a constant a mutant runs in a fork of a pytest session that has collected the
tests: there the code of the function, or the value of the constant, is replaced. Where the tests
pass with a constant, and for any other mutant, the module is imported again with the change, in a
fork of a process that has imported only libraries. `ARGS="money sms"` takes the modules with one of
these words in their path, `ARGS="--one-in 10"` each tenth mutant: a sample in a tenth of the time.
With `--first 3` it is another sample.
"""

import argparse
import gc
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.machinery import SourceFileLoader
from itertools import accumulate, pairwise
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final

from mutate.mutants import Mutant, mutants

ROOT: Final = Path(__file__).parent.parent
PRODUCT: Final = ROOT / "sandbox_sim"
# A room that decides about money or outcomes is here as a whole: no new module is forgotten.
MODULES: Final = (
    *("operations.py", "values/cards.py", "values/money.py", "values/msisdn.py"),
    *("values/rate_limit.py", "values/response_codes.py", "values/vocabulary.py"),
    *("records/attempts.py", "records/behaviour.py", "records/callbacks.py", "records/jobs.py"),
    *("records/ledger.py", "records/magic_outcomes.py", "records/messages.py"),
    *("records/overrides.py", "records/reports.py", "records/transactions.py"),
    *("ledger/*.py", "overrides/*.py", "payments/*.py", "production/*.py", "sms/*.py"),
    *("callbacks/bodies.py", "control/manual_actions.py"),
)
# Mutants that change nothing a caller can see, one a line: module | function | change | reason.
EQUIVALENT: Final = Path(__file__).with_name("equivalent.txt")
TESTS: Final = (
    *("tests/values", "tests/records", "tests/callbacks", "tests/ledger", "tests/payments"),
    *("tests/production", "tests/sms", "tests/control", "tests/overrides", "tests/stores"),
    *("tests/web/api", "tests/web/control", "tests/web/networks", "tests/web/test_behaviour.py"),
    *("tests/web/pages/test_card_page.py", "tests/web/pages/test_handset.py"),
    *("tests/test_fixtures.py", "tests/test_operations.py"),
)
LIBRARIES: Final = ("aiohttp.web", "aiohttp_jinja2", "asyncpg", "click")
MOST_SURVIVORS: Final = 0.05
TESTS_S: Final = 6.0  # so many seconds of the processor for the tests of one mutant
# A mutant outside of functions may be noticed by any test of its module.
TESTS_OF_MODULE_S: Final = 20.0
LIMIT_S: Final = 40  # of the processor; a mutant that takes longer is in an endless loop
LIMITS_WAITED: Final = 3  # so many limits of real time, for a mutant that waits for ever
# As many as this process may use: `taskset -c 0 make mutate` leaves the others to other work.
WORKERS: Final = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
# The rules are the same on every store, so those of one are enough.
_STORE: Final = "not sqlite and not postgres"
# pytest rewrites modules of plugins, as ours are, where it does not take assertions as they are.
_OPTIONS: Final = (
    *("-x", "--assert=plain", "--hypothesis-profile=mutate", "-k", _STORE),
    *("-p", "no:cacheprovider", "-p", "no:xdist"),
)


def main(*words: str, one_in: int = 1, first: int | None = None) -> int:
    """Print the figures and the survivors of each module. Returns 1 where too many survive."""
    chosen = [path for pattern in MODULES for path in sorted(PRODUCT.glob(pattern))]
    paths = [path for path in chosen if not words or any(word in str(path) for word in words)]
    equivalent = tuple(EQUIVALENT.read_text("utf-8").splitlines())
    todo = [
        mutant
        for path in paths
        for mutant in mutants(path)
        if not any(line.startswith(f"{_named(mutant)} | ") for line in equivalent)
    ][one_in // 2 if first is None else first :: one_in]
    for library in LIBRARIES:  # and no module of ours: these are imported with the change
        importlib.import_module(library)
    with tempfile.NamedTemporaryFile() as file:
        list(_in_forks([partial(_session, todo, file.name)], seconds=6 * 3_600))
        killed, left, tests = json.loads(file.read())
    jobs = [partial(_imported_again, todo[n], tests[str(todo[n].path)]) for n in left]
    return _report(paths, todo, {*killed, *(left[job] for job in _in_forks(jobs))})


def _named(mutant: Mutant) -> str:
    module = mutant.path.relative_to(PRODUCT).as_posix()
    return f"{module} | {mutant.scope or 'module'} | {mutant.change}"


def _report(paths: Sequence[Path], todo: Sequence[Mutant], killed: set[int]) -> int:
    survivors = [mutant for number, mutant in enumerate(todo) if number not in killed]
    for path in paths:
        count = sum(mutant.path == path for mutant in todo)
        alive = [mutant for mutant in survivors if mutant.path == path]
        print(f"{path.relative_to(ROOT)}: {count} mutants, {count - len(alive)} killed")
        for mutant in alive:
            print(f"  {path.relative_to(ROOT)}:{mutant.line}: {mutant.change}")
    share = len(survivors) / max(len(todo), 1)
    print(
        f"{len(todo)} mutants, {len(survivors)} survive: {share:.1%}, at most {MOST_SURVIVORS:.0%}"
    )
    return int(share > MOST_SURVIVORS)


def _in_forks(jobs: Sequence[Callable[[], object]], seconds: int = LIMIT_S) -> Iterator[int]:
    """Run each job in a process of its own; yields those that return true, fail or never end."""
    running: dict[int, tuple[int, float]] = {}
    waiting = list(enumerate(jobs))[::-1]
    while waiting or running:
        while waiting and len(running) < WORKERS:
            number, job = waiting.pop()
            running[_forked(job, seconds)] = number, time.monotonic() + LIMITS_WAITED * seconds
        for pid, (number, end) in list(running.items()):
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del running[pid]
                if status:
                    yield number
        time.sleep(0.005)


def _forked(job: Callable[[], object], seconds: int) -> int:
    """The process that runs the job, silently and with limits of memory and processor time."""
    pid = os.fork()
    if pid:
        return pid
    try:
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), stream)
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        os._exit(bool(job()))
    finally:
        os._exit(1)


class _Mutating:
    """The plugin of pytest that runs tests for mutants in place of all tests.

    It writes to a file which mutants were killed, which are left, and the tests of each module.
    """

    def __init__(self, todo: Sequence[Mutant], found: Path) -> None:
        self._todo, self._found = todo, found

    def pytest_runtestloop(self, session: Any) -> bool:
        """Run the tests of each mutant in a fork."""
        items = session.items
        list(_in_forks([partial(_cover, items, self._todo, self._found)], seconds=1_800))
        tests_of_line, durations = json.loads(self._found.read_text())
        lines_of = _lines_of(tests_of_line)

        def first(path: Path, tests: Iterable[int], seconds: float = TESTS_S) -> list[Any]:
            """The tests of the module, then of its folder, then of others; the quickest first.

            Of the others first those that run other lines than each before, as a payout does after
            a collection. Each file has its turn. They end where they would take longer.
            """
            own, of_file, places = ROOT / _own_tests(path), Counter[Path](), {}
            seen: set[int] = set()
            for test in sorted(tests, key=durations.__getitem__):
                file = items[test].path
                of_file[file] += 1
                is_own, is_near = file == own, file.parent == own.parent
                is_repeat = not is_near and lines_of[test] in seen
                places[test] = (not is_own, not is_near, is_repeat, of_file[file])
                seen.add(lines_of[test])
            ordered = sorted(places, key=places.__getitem__)
            spent = accumulate(durations[test] for test in ordered)
            within = zip(ordered, spent, strict=True)
            return [items[test] for test, by_then in within if by_then < seconds]

        def tests_of(mutant: Mutant) -> set[int]:
            of_line = tests_of_line[str(mutant.path)]
            if mutant.scope:
                return {test for line in mutant.lines for test in of_line.get(str(line), ())}
            return tests_of_module(mutant.path)

        def tests_of_module(path: Path) -> set[int]:
            """The tests of its folder, which may only read its tables, and those that run it."""
            folder = _own_tests(path).rpartition("/")[0]
            near = {n for n, item in enumerate(items) if item.path.parent == ROOT / folder}
            return near.union(*tests_of_line[str(path)].values())

        def run(mutant: Mutant) -> bool:
            if mutant.scope:
                _replace_functions(mutant, functions)
            else:
                _assign_again(mutant)
            return _fails(session, first(mutant.path, tests_of(mutant)))

        for path in {mutant.path for mutant in self._todo}:
            importlib.import_module(_module_name(path))  # some are imported by a test first
        functions = _functions()
        here = [
            number
            for number, mutant in enumerate(self._todo)
            if mutant.is_constant or (mutant.scope and tests_of(mutant))
        ]
        jobs = [partial(run, self._todo[number]) for number in here]
        killed = {here[job] for job in _in_forks(jobs)}
        # Other code than functions that a test runs may have been used when modules were imported.
        done = killed | {number for number in here if self._todo[number].scope}
        left = [number for number in range(len(self._todo)) if number not in done]
        names = {
            path: list(
                dict.fromkeys(
                    str(item.nodeid).partition("[")[0]
                    for item in first(Path(path), tests_of_module(Path(path)), TESTS_OF_MODULE_S)
                )
            )
            for path in tests_of_line
        }
        self._found.write_text(json.dumps([sorted(killed), left, names]))
        return True


def _session(todo: Sequence[Mutant], found: str) -> None:
    import pytest  # noqa: PLC0415 -- `_imported_again` forks from a process without it

    pytest.main([*TESTS, *_OPTIONS], [_Mutating(todo, Path(found))])


def _cover(items: Sequence[Any], todo: Sequence[Mutant], found: Path) -> None:
    """Run every test once. Writes which tests run each line, and how long each test takes."""
    import coverage  # noqa: PLC0415 -- as above

    paths = sorted({str(mutant.path) for mutant in todo})
    measured = coverage.Coverage(data_file=None, config_file=False, include=paths)
    measured.start()
    durations = []
    for number, (item, following) in enumerate(pairwise([*items, None])):
        measured.switch_context(str(number))
        began = time.process_time()
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        durations.append(time.process_time() - began)
    measured.stop()
    data = measured.get_data()
    tests_of_line = {
        path: {
            line: [int(test) for test in tests if test]
            for line, tests in data.contexts_by_lineno(path).items()
        }
        for path in paths
    }
    found.write_text(json.dumps([tests_of_line, durations]))


def _lines_of(tests_of_line: Mapping[str, Mapping[str, Sequence[int]]]) -> Mapping[int, int]:
    """A number for each test, which is the same for two that run the same lines."""
    found: dict[int, int] = defaultdict(int)
    for path, of_lines in tests_of_line.items():
        for line, tests in of_lines.items():
            number = hash((path, line))
            for test in tests:
                found[test] ^= number
    return found


def _functions() -> Mapping[tuple[object, ...], Sequence[FunctionType]]:
    """All functions, by the place of their code."""
    gc.unfreeze()  # tests/fast_run.py hides what there is from `get_objects`
    found = defaultdict(list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType):
            found[_place(each.__code__)].append(each)
    gc.freeze()
    return found


def _place(code: CodeType) -> tuple[object, ...]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _replace_functions(
    mutant: Mutant, functions: Mapping[tuple[object, ...], Sequence[FunctionType]]
) -> None:
    inner = [mutant.code(True)]
    for code in inner:
        inner += [each for each in code.co_consts if isinstance(each, CodeType)]
        for function in functions.get(_place(code), ()):
            function.__code__ = code


def _module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def _assign_again(mutant: Mutant) -> None:
    """Run the changed assignment, and put its value wherever the old one was imported."""
    name = _module_name(mutant.path)
    old = vars(sys.modules[name])
    new = dict(old)
    exec(mutant.code(False), new)  # noqa: S102 -- a statement of ours
    changed = {name: new[name] for name in old if old[name] is not new[name]}
    for module in [each for each in sys.modules.values() if each.__name__ != name]:
        if module.__name__.startswith(("sandbox_sim", "tests")):
            for name, value in changed.items():
                if vars(module).get(name) is old[name]:
                    setattr(module, name, value)
    old.update(changed)


def _fails(session: Any, items: Sequence[Any]) -> bool:
    for item, following in pairwise([*items, None]):
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return True
    return False


def _imported_again(mutant: Mutant, tests: Sequence[str]) -> bool:
    """Import the mutant in place of its module, and run these tests. Returns whether one fails."""
    import pytest  # noqa: PLC0415 -- as above

    code, load = mutant.code(True), SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        return code if loader.path == str(mutant.path) else load(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
    return bool(tests) and pytest.main([*tests, *_OPTIONS]) != 0


def _own_tests(path: Path) -> str:
    """The file of tests that mirrors a module."""
    module = path.relative_to(PRODUCT)
    return (Path("tests") / module.with_name(f"test_{module.name}")).as_posix()


if __name__ == "__main__":
    options = argparse.ArgumentParser(prog="make mutate")
    options.add_argument("words", nargs="*", help="parts of the paths of modules")
    options.add_argument("--one-in", type=int, default=1, metavar="N", help="take each Nth mutant")
    options.add_argument("--first", type=int, metavar="K", help="begin with the Kth, from 0")
    chosen = options.parse_args()
    sys.exit(main(*chosen.words, one_in=chosen.one_in, first=chosen.first))
