"""Judges an export for OpenCue, the folder in argv, by OpenCue's own packages.

outline, which writes specs for Cuebot, is given the same layers and must write the same spec. submit.py must hand job.xml
to a Cuebot that this script serves.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from concurrent import futures

os.environ["HOME"] = tempfile.mkdtemp()  # where outline keeps sessions

import FileSequence
import grpc
import outline
import outline.backend.cue
import outline.cuerun
import outline.modules.shell
from opencue_proto import cue_pb2, cue_pb2_grpc, job_pb2, job_pb2_grpc

folder = pathlib.Path(sys.argv[1])
ours = ET.parse(folder / "job.xml").getroot()

# What outline adds by itself: who submits from where, and defaults.
ADDED = {"facility", "email", "uid", "paused", "priority", "autoeat", "env", "services", "outputs", "threadable"}


def plain(element):
    """An element as nested lists, without what outline adds."""
    children = [plain(child) for child in element if child.tag not in ADDED]
    return [element.tag, dict(element.attrib), (element.text or "").strip(), children]


def same_job():
    """The job of job.xml in an outline."""
    job = ours.find("job")
    ol = outline.Outline(job.get("name"), show=ours.findtext("show"), shot=ours.findtext("shot"), name_unique=False)
    for layer in job.find("layers"):
        args = {"command": layer.findtext("cmd"), "range": layer.findtext("range"),
                "chunk": int(layer.findtext("chunk"))}
        for name, value in (("cores", float), ("memory", str), ("gpus", int), ("gpu_memory", str), ("timeout", int)):
            if layer.find(name) is not None:
                args[name] = value(layer.findtext(name))
        if layer.find("tags") is not None:
            args["tags"] = [layer.findtext("tags")]
        ol.add_layer(outline.modules.shell.Shell(layer.get("name"), type=layer.get("type"), **args))
    for depend in ours.find("depends"):
        layer = ol.get_layer(depend.findtext("deplayer"))
        layer.depend_on(ol.get_layer(depend.findtext("onlayer")), depend.get("type"))
    return ol


class Cuebot(job_pb2_grpc.JobInterfaceServicer, cue_pb2_grpc.CueInterfaceServicer):
    """A Cuebot that keeps the spec it is given."""
    spec = ""

    def GetSystemStats(self, request, context):
        return cue_pb2.CueGetSystemStatsResponse()

    def LaunchSpecAndWait(self, request, context):
        self.spec = request.spec
        job = job_pb2.Job(name=ET.fromstring(request.spec).find("job").get("name"))
        return job_pb2.JobLaunchSpecAndWaitResponse(jobs=job_pb2.JobSeq(jobs=[job]))


launcher = outline.cuerun.OutlineLauncher(same_job(), maxretries=ours.findtext("job/maxretries"),
                                          user=ours.findtext("user"))
theirs = ET.fromstring(outline.backend.cue.serialize_simple(launcher))
if plain(ours) != plain(theirs):
    ET.indent(theirs)
    sys.exit("outline writes another spec:\n" + ET.tostring(theirs, "unicode"))

for layer in ours.iter("layer"):
    words = layer.findtext("cmd").split()
    frames = len(list(FileSequence.FrameSet(layer.findtext("range"))))
    runs = [part.partition("-") for part in words[words.index("--of") + 1].split(",")]
    tasks = sum(int(last or first) - int(first) + 1 for first, _, last in runs)
    if frames != tasks or words[-2:] != ["--index", "#IFRAME#"]:
        sys.exit("layer %s has %d frames for %d tasks: %s" % (layer.get("name"), frames, tasks, words))

cuebot = Cuebot()
server = grpc.server(futures.ThreadPoolExecutor(1))
job_pb2_grpc.add_JobInterfaceServicer_to_server(cuebot, server)
cue_pb2_grpc.add_CueInterfaceServicer_to_server(cuebot, server)
port = server.add_insecure_port("127.0.0.1:0")
server.start()
said = subprocess.run([sys.executable, folder / "submit.py"], env={**os.environ, "CUEBOT_HOSTS": "127.0.0.1:%d" % port},
                      check=True, capture_output=True, text=True).stdout
server.stop(None)
if cuebot.spec != (folder / "job.xml").read_text() or said.strip() != ours.find("job").get("name"):
    sys.exit("Cuebot was given %r, and submit.py said %r" % (cuebot.spec, said))
