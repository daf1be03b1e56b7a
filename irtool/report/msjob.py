"""A plan's Kubernetes job for the MindSpore operator, an ``MSJob``.

The operator's custom resource (``mindspore.gitee.com/v1``) knows three roles: one scheduler,
workers (here one process with one device each), and parameter servers.  Each role's pod holds a
container called ``mindspore``, whose port, if it is named, is called ``msjob-port``; the operator
itself sets ``MS_ROLE``, ``MS_WORKER_NUM``, ``MS_SERVER_NUM`` and the scheduler's address.  After
the operator's type definitions and its page on the configuration.

A strategy file goes with it as a ``ConfigMap``, which every role mounts: the environment names the
file, and the network must load it, each kind of file by a call of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, cast

from irtool.artefacts.strategies.model import Keys
from irtool.ir.dataclass import dataclass

Tree: TypeAlias = "str | int | Mapping[str, Tree] | Sequence[Tree]"

RESOURCES = {"Ascend": "huawei.com/Ascend910", "GPU": "nvidia.com/gpu"}
"""What a pod asks for to get one device; others are compiled for a CPU."""
PORT = 2222
STRATEGY_FILE = "STRATEGY_FILE"
"""The variable that names the strategy file in a pod."""
LARGEST_MAP = 1 << 20
"""Bytes that a ``ConfigMap`` holds, at most."""
_STRATEGY_FOLDER = "/strategy"
_STRATEGY_NAME = "strategy.json"


@dataclass(frozen=True, slots=True)
class Job:
    """What a job is of.

    Attributes:
        name: lower-case letters, digits and hyphens.
        image: of all pods.
        command: that every role runs, by the shell.
        workers: processes with a device each.
        servers: parameter servers; 0: parameter server mode is off.
        target: ``Ascend``, ``GPU`` or ``CPU``.
        strategy: text of a strategy file; None: the network says its strategies itself.
        keys: what that file is keyed by.
    """

    name: str
    image: str
    command: str
    workers: int
    servers: int = 0
    target: str = "Ascend"
    strategy: str | None = None
    keys: Keys = "parameters"

    @property
    def map_name(self) -> str:
        """Of the map that holds the strategy file."""
        return f"{self.name}-strategy"


def strategy_object(job: Job) -> dict[str, Tree] | None:
    """The map with the strategy file; None where the job has none."""
    if job.strategy is None:
        return None
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": job.map_name},
        "data": {_STRATEGY_NAME: job.strategy},
    }


def job_object(job: Job) -> dict[str, Tree]:
    """The ``MSJob`` resource as plain data.

    Args:
        job: one scheduler, the workers and the servers of it; each worker asks for one device.
    """
    roles: dict[str, Tree] = {"Scheduler": _role(job, 1, device=False)}
    if job.servers:
        roles["PS"] = _role(job, job.servers, device=False)
    roles["Worker"] = _role(job, job.workers, device=True)
    return {
        "apiVersion": "mindspore.gitee.com/v1",
        "kind": "MSJob",
        "metadata": {"name": job.name},
        "spec": {
            "runPolicy": {"cleanPodPolicy": "None"},
            "successPolicy": "AllWorkers",
            "msReplicaSpecs": roles,
        },
    }


def _role(job: Job, replicas: int, *, device: bool) -> Tree:
    container: dict[str, Tree] = {
        "name": "mindspore",
        "image": job.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/bash", "-c", job.command],
        "ports": [{"name": "msjob-port", "containerPort": PORT}],
    }
    resource = RESOURCES.get(job.target)
    if device and resource is not None:
        container["resources"] = {"limits": {resource: 1}}
    pod: dict[str, Tree] = {"containers": [container]}
    if job.strategy is not None:
        path = f"{_STRATEGY_FOLDER}/{_STRATEGY_NAME}"
        container["env"] = [{"name": STRATEGY_FILE, "value": path}]
        container["volumeMounts"] = [{"name": "strategy", "mountPath": _STRATEGY_FOLDER}]
        pod["volumes"] = [{"name": "strategy", "configMap": {"name": job.map_name}}]
    return {"replicas": replicas, "restartPolicy": "Never", "template": {"spec": pod}}


def job_text(job: Job) -> str:
    """The resource as YAML, behind the map with its strategy file.

    Args:
        job: one scheduler, workers and servers.
    """
    strategy = strategy_object(job)
    parts = [] if strategy is None else [_note(job.keys), *_yaml(strategy, ""), "---"]
    return "\n".join([*parts, *_yaml(job_object(job), "")]) + "\n"


def _note(keys: Keys) -> str:
    """The call that loads the file; one keyed by operators is loaded by sharding propagation."""
    file = f'os.environ["{STRATEGY_FILE}"]'
    load = f'set_auto_parallel_context(strategy_ckpt_config={{"load_file": {file}}})'
    if keys == "operators":
        load = f'mindspore.parallel.set_op_strategy_config("LOAD", {file})'
    return f"# the network loads the strategies: {load}"


def _yaml(tree: Tree, indent: str) -> Iterator[str]:
    """A tree as YAML; texts in quotes, as JSON writes them, which YAML reads the same."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _entry(f"{indent}{key}:", value, indent)
    else:
        for value in cast("Sequence[Tree]", tree):
            if isinstance(value, (str, int)):
                yield f"{indent}- {json.dumps(value)}"
                continue
            first, *rest = _yaml(value, indent + "  ")
            yield f"{indent}- {first.strip()}"
            yield from rest


def _entry(head: str, value: Tree, indent: str) -> Iterator[str]:
    if isinstance(value, (str, int)):
        yield f"{head} {json.dumps(value)}"
    else:
        yield head
        yield from _yaml(value, indent + "  ")
