"""The Kubernetes job: what the operator's type definition wants, as YAML that reads back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from irtool.report.msjob import (
    STRATEGY_FILE,
    Job,
    job_object,
    job_text,
    strategy_object,
)

JOB = Job("train", "lab/train:1", 'python train.py --name "a: b"', 16)


def roles(job: Job) -> dict[str, dict[str, object]]:
    return json.loads(json.dumps(job_object(job)))["spec"]["msReplicaSpecs"]


def test_one_scheduler_and_a_worker_for_every_device() -> None:
    found = roles(JOB)
    assert {name: role["replicas"] for name, role in found.items()} == {
        "Scheduler": 1,
        "Worker": 16,
    }


def test_servers_are_there_where_parameter_server_mode_is_on() -> None:
    found = roles(Job("train", "lab/train:1", "python train.py", 8, servers=2))
    assert found["PS"]["replicas"] == 2


@pytest.mark.parametrize("target", ["Ascend", "GPU", "CPU"])
def test_only_workers_ask_for_a_device(target: str) -> None:
    found = roles(Job("train", "lab/train:1", "python train.py", 8, 1, target))
    asks = {name for name, role in found.items() if "resources" in json.dumps(role)}
    assert asks == (set() if target == "CPU" else {"Worker"})


def test_every_role_has_the_container_that_the_operator_looks_for() -> None:
    for role in roles(JOB).values():
        template: Any = role["template"]
        (container,) = template["spec"]["containers"]
        assert container["name"] == "mindspore"
        assert [port["name"] for port in container["ports"]] == ["msjob-port"]


def test_the_text_reads_back() -> None:
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load(job_text(JOB)) == job_object(JOB)


def test_a_strategy_file_is_mounted_by_every_role() -> None:
    """What the map holds is the file as it was, and the environment names where it lies."""
    job = Job("train", "lab/train:1", "python train.py", 8, 1, strategy='{"a": "b: c"}\n')
    held: Any = strategy_object(job)
    assert held["data"] == {"strategy.json": job.strategy}
    for role in roles(job).values():
        template: Any = role["template"]
        pod = template["spec"]
        (container,) = pod["containers"]
        (volume,), (mount,), (variable,) = (
            pod["volumes"], container["volumeMounts"], container["env"],
        )  # fmt: skip
        assert volume["configMap"]["name"] == held["metadata"]["name"]
        assert mount["name"] == volume["name"]
        assert variable == {"name": STRATEGY_FILE, "value": f"{mount['mountPath']}/strategy.json"}


def test_both_resources_read_back() -> None:
    yaml = pytest.importorskip("yaml")
    job = Job("train", "lab/train:1", "python train.py", 8, strategy='{"a": [1]}\n')
    assert list(yaml.safe_load_all(job_text(job))) == [strategy_object(job), job_object(job)]


def test_without_a_strategy_file_there_is_no_map() -> None:
    assert strategy_object(JOB) is None
    assert "volumes" not in job_text(JOB)
