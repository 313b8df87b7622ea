"""The list of the servers that run on this machine."""

import json
import os
from pathlib import Path

import pytest

from sandbox_sim.cli.serve.listening import listening_on, registered, using_the_store_of
from sandbox_sim.settings.schema import Settings

NO_PROCESS = 2**22 + 1  # above the largest id that Linux gives


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sandbox-sim" / "servers"


def test_a_server_is_listed_while_it_runs_without_the_password_of_its_store(
    tmp_path: Path, folder: Path
) -> None:
    settings = Settings(
        port=9000, store=f"sqlite:{tmp_path}/x.db", host="0.0.0.0", control_token="t"
    )
    with registered(settings, 9000):
        server = listening_on(9000)

        assert server is not None
        assert (server.pid, server.url) == (os.getpid(), "http://127.0.0.1:9000")
        assert using_the_store_of(Settings(store=f"sqlite:{tmp_path}/./x.db")) == server
        assert using_the_store_of(Settings(store="sqlite:")) is None
        assert listening_on(9001) is None
    assert listening_on(9000) is None

    with_password = Settings(store="postgresql://me:s3same@db/gateway")
    with registered(with_password, 8233):
        (file,) = folder.iterdir()
        assert "s3same" not in file.read_text("utf-8")
        assert using_the_store_of(with_password) is not None


def test_a_server_that_died_is_not_listed_and_the_next_start_deletes_its_file(folder: Path) -> None:
    folder.mkdir(parents=True)
    dead = {"pid": NO_PROCESS, "url": "http://127.0.0.1:9000", "port": 9000, "store": "memory:"}
    (folder / "dead.json").write_text(json.dumps({**dead, "since": "2026"}), "utf-8")
    (folder / "torn.json").write_text("{", "utf-8")
    assert listening_on(9000) is None

    with registered(Settings(), 8233):
        assert [file.name for file in folder.iterdir()] == [f"{os.getpid()}.json"]


def test_a_server_starts_although_the_folder_of_the_list_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "sandbox-sim").write_text("in the way", "utf-8")

    with registered(Settings(), 8233):
        assert listening_on(8233) is None
