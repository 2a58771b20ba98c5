#!/usr/bin/env python3
"""A job for OpenCue, submitted by its package opencue_pyoutline: that of examples/three-scenes.toml.

docs/farm-export.md says how to adapt it. The folder /shared/three, which all hosts see, has job.toml, retry.sh and
roots.toml.

    CUEBOT_HOSTS=cuebot.example.org python3 opencue.py
"""
import outline
import outline.cuerun
from outline.modules.shell import Shell

FOLDER = "/shared/three"
PROGRAM = "/shared/bin/vksplat"

# Cuebot would repeat any frame that fails, so retry.sh makes up to 4 attempts of a task, with pauses of 10 to 600
# seconds, and the job's maxretries are 0. Frames are numbered as tasks are.
COMMAND = ["bash", FOLDER + "/retry.sh", "4", "10", "600", PROGRAM, "farm", "run-task", "--spec", FOLDER + "/job.toml",
           "--roots", FOLDER + "/roots.toml", "--index", "#IFRAME#"]

# A layer is the tasks of one kind; Cuebot wants both numbers of GPUs, or neither. A timeout, in minutes, counts all
# attempts. Tags, of three characters or more, are for pools.
GPU = {"gpus": 1, "gpu_memory": "8g"}
LAYERS = [
    # name, tasks, layer that it waits for, what a host must have
    ("demo", "0-2", None, {}),
    ("train", "3-5", "demo", GPU),
    ("render", "6-11", "train", GPU),
    ("encode", "12-14", "render", {}),
    ("eval", "15", "train", GPU),
]


def job():
    """The job as an outline."""
    made = outline.Outline("three_scenes", show="testing", shot="default", name_unique=False)
    for name, tasks, needs, host in LAYERS:
        layer = Shell(name, type="Render", command=COMMAND, range=tasks, chunk=1, **host)
        made.add_layer(layer)
        if needs:
            layer.depend_on(made.get_layer(needs), "LAYER_ON_LAYER")
    return made


if __name__ == "__main__":
    # Cuebot runs no jobs of root. Without pycuerun the command is run as it stands.
    outline.cuerun.launch(job(), use_pycuerun=False, maxretries=0)
