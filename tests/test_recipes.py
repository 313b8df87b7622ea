"""The recipes in docs/recipes run unchanged, in a folder outside of this project.

Those for other languages run against the real program. The one for Node always runs. Few machines
have the tools of the others, so they run only if SANDBOX_SIM_REQUIRE names them, as `php`, `go` or
`java`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import console_script
from tests.docs.test_writing_a_network import WITHOUT_OTHERS
from tests.requirements import REQUIRED, missing

RECIPES = Path(__file__).parent.parent / "docs" / "recipes"
# Where Debian puts JUnit.
_JARS = "/usr/share/java"
_JUNIT = ":".join(
    f"{_JARS}/{name}.jar"
    for name in (
        *("junit-jupiter-api", "junit-jupiter-engine", "junit-platform-console", "opentest4j"),
        *("junit-platform-commons", "junit-platform-engine", "junit-platform-launcher"),
        *("junit-platform-reporting", "apiguardian-api", "picocli", "univocity-parsers"),
    )
)
COMMANDS = {
    "node": ["node --test"],
    "php": ["phpunit PaymentTest.php"],
    "go": ["go mod init shop", "go test ./..."],
    "java": [
        f"javac -cp {_JUNIT} Gateway.java PaymentTest.java",
        f"java -cp {_JUNIT}:. org.junit.platform.console.ConsoleLauncher -c PaymentTest",
    ],
}


@pytest.mark.parametrize("language", ["node", *sorted(REQUIRED & {"php", "go", "java"})])
def test_a_recipe_runs_unchanged(language: str, tmp_path: Path) -> None:
    commands = [command.split() for command in COMMANDS[language]]
    if shutil.which(commands[0][0]) is None:
        missing(language, f"{commands[0][0]} is not installed")
    shutil.copytree(RECIPES / language, tmp_path, dirs_exist_ok=True)
    assert len([*tmp_path.iterdir()]) == 2
    environment = {
        **os.environ,
        "PATH": f"{console_script().parent}{os.pathsep}{os.environ['PATH']}",
    }

    for command in commands:
        done = subprocess.run(  # noqa: S603 -- ours
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def node(folder: Path, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script beside gateway.mjs of the recipe, without sandbox-sim on the PATH."""
    found = shutil.which("node")
    if found is None:
        missing("node", "node is not installed")
    shutil.copy(RECIPES / "node" / "gateway.mjs", folder)
    (folder / "script.mjs").write_text(script, "utf-8")
    return subprocess.run(  # noqa: S603 -- ours
        [found, "script.mjs"],
        cwd=folder,
        env={"PATH": "/nowhere", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


START = """
import { startGateway } from "./gateway.mjs";
const gateway = await startGateway();
"""
REFUSED = """
try {
  await gateway.control("POST", "clock/advance", { seconds: "five" });
} catch (error) {
  console.log(error.message);
} finally {
  await gateway.stop();
}
"""


def test_node_finds_the_program_without_a_path_and_shows_errors(tmp_path: Path) -> None:
    done = node(tmp_path, START + REFUSED, SANDBOX_SIM=str(console_script()))

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("POST clock/advance: seconds must be ")


def test_node_says_which_program_does_not_start(tmp_path: Path) -> None:
    done = node(tmp_path, START)

    assert done.returncode == 1
    assert "Error: sandbox-sim does not start; set SANDBOX_SIM" in done.stderr


def test_the_python_recipes_pass(tmp_path: Path) -> None:
    for recipe in RECIPES.glob("test_*.py"):
        shutil.copy(recipe, tmp_path)
    options = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"
    (tmp_path / "pytest.ini").write_text(options, "utf-8")
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", *WITHOUT_OTHERS]

    done = subprocess.run(  # noqa: S603 -- ourselves
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
