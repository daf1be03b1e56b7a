"""A plan's Kubernetes job for the MindSpore operator, an ``MSJob``.

The operator's custom resource (``mindspore.gitee.com/v1``) knows three roles: one scheduler,
workers (here one process with one device each), and parameter servers.  Each role's pod holds a
container called ``mindspore``, whose port, if it is named, is called ``msjob-port``; the operator
itself sets ``MS_ROLE``, ``MS_WORKER_NUM``, ``MS_SERVER_NUM`` and the scheduler's address.  After
the operator's type definitions and its page on the configuration.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

Tree: TypeAlias = "str | int | Mapping[str, Tree] | Sequence[Tree]"

RESOURCES = {"Ascend": "huawei.com/Ascend910", "GPU": "nvidia.com/gpu"}
"""What a pod asks for to get one device; others are compiled for a CPU."""
PORT = 2222


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
    """

    name: str
    image: str
    command: str
    workers: int
    servers: int = 0
    target: str = "Ascend"


def job_object(job: Job) -> dict[str, Tree]:
    """The resource."""
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
    return {
        "replicas": replicas,
        "restartPolicy": "Never",
        "template": {"spec": {"containers": [container]}},
    }


def job_text(job: Job) -> str:
    """The resource as YAML."""
    return "\n".join(_yaml(job_object(job), "")) + "\n"


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
