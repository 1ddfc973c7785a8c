"""The image is made from files that are there, and the compose file is one that Docker reads."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from lakerace.home import conf_dir

DOCKER = conf_dir().parent / "docker"

if not DOCKER.is_dir():
    pytest.skip("a checkout only: the wheel carries no docker folder", allow_module_level=True)


def test_every_name_that_goes_into_the_image_is_there() -> None:
    wanted = re.findall(r"^!(\S+)$", (DOCKER / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    assert wanted
    assert [name for name in wanted if not (DOCKER.parent / name).exists()] == []


def test_docker_reads_the_compose_file() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True).returncode:
        pytest.skip("no docker compose on this machine")
    read = subprocess.run(
        [docker, "compose", "-f", str(DOCKER / "compose.yaml"), "config", "--services"],
        capture_output=True,
        text=True,
    )
    assert read.returncode == 0, read.stderr
    assert sorted(read.stdout.split()) == ["run", "test"]
