"""The image, tested without Docker: the tests run the commands of its Dockerfile."""

import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sandbox_sim.settings.schema import Settings
from tests.cli.processes import SOON, console_script, end, first_line

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
PAGES = ["Dockerfile", "docs/docker.md", "docs/compose.yaml"]


def arguments_of(instruction: str) -> list[str]:
    """Return the arguments of an instruction, one entry for each time the Dockerfile has it."""
    return re.findall(rf"^\s*{instruction} +(.+)$", DOCKERFILE, re.MULTILINE)


def environment(folder: Path, **changed: str) -> dict[str, str]:
    """Return the environment of the image, with the store in a folder of the test."""
    (variables,) = arguments_of("ENV")
    given = dict(pair.split("=", 1) for pair in variables.split())
    del given["PATH"]
    given["SANDBOX_SIM_STORE"] = f"sqlite:{folder}/state.sqlite3"
    path = f"{console_script().parent}{os.pathsep}{os.environ['PATH']}"
    return {**given, "PATH": path, **changed}


def started(program: Path, environment: dict[str, str]) -> "subprocess.Popen[str]":
    assert arguments_of("ENTRYPOINT") == ['["sandbox-sim"]']
    assert arguments_of("CMD")[-1] == '["serve"]'
    return subprocess.Popen(  # noqa: S603 -- ourselves
        [program, "serve"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_image_does_not_start_without_a_control_token(tmp_path: Path) -> None:
    with started(console_script(), environment(tmp_path)) as server:
        assert server.wait(SOON) == 1
        assert server.stderr is not None
        assert server.stderr.read().startswith("control_token (from default): must be set")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_image_with_a_token_is_healthy_and_ends_at_sigterm(tmp_path: Path, scheme: str) -> None:
    settings = environment(tmp_path, SANDBOX_SIM_CONTROL_TOKEN="secret", SANDBOX_SIM_PORT="0")
    settings["XDG_STATE_HOME"] = str(tmp_path)
    if scheme == "https":
        settings["SANDBOX_SIM_TLS"] = "true"
    (health,) = re.findall(r"HEALTHCHECK .*? CMD (.+)", DOCKERFILE)
    installed = Path(sys.executable).with_name("sandbox-sim")
    with started(installed, settings) as server:
        address, _, port = first_line(server).strip().rpartition(":")
        settings["SANDBOX_SIM_PORT"] = port
        if scheme == "https":
            settings["SANDBOX_SIM_ENDPOINT_URL"] = f"https://127.0.0.1:{port}"
        checked = subprocess.run(  # noqa: S602 -- as Docker does it
            health, shell=True, env=settings, capture_output=True, text=True, check=False
        )
        code, out, _ = end(server, signal.SIGTERM)

    assert address == f"sandbox-sim ready at {scheme}://127.0.0.1"
    assert f"  from other machines: any address of this machine, port {port}\n" in out
    assert (checked.returncode, checked.stdout) == (0, "ready\n")
    assert arguments_of("STOPSIGNAL") == ["SIGTERM"]
    assert code == 0


def test_the_image_does_not_run_as_root() -> None:
    (user,) = arguments_of("USER")

    assert user != "root"
    assert f"useradd --system --create-home --home-dir /var/lib/sandbox-sim {user}" in DOCKERFILE


def test_the_copied_files_exist_and_are_not_ignored_by_docker() -> None:
    copied = [
        name for line in arguments_of("COPY") if "--from" not in line for name in line.split()[:-1]
    ]
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert {project["readme"], *project["license-files"], "sandbox_sim"} <= set(copied)
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert [name for name in copied if f"!{name}" not in ignored] == []


@pytest.mark.parametrize("page", PAGES)
def test_the_settings_on_a_page_exist(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    named = {name.lower() for name in re.findall(r"SANDBOX_SIM_([A-Z_]+)", text)}

    assert named
    assert named - {"endpoint_url", "token"} <= set(Settings.model_fields)
