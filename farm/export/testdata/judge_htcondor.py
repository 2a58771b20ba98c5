"""Judges an export for HTCondor, the folder in argv, by HTCondor's own bindings.

Every submit file makes the job that it should, and the job says after which exit codes it is repeated. The DAG has the
lines that the bindings write for the same nodes and edges.
"""
import os
import pathlib
import re
import sys
import tempfile

os.environ["CONDOR_CONFIG"] = "ONLY_ENV"  # there is no pool here

import classad
import htcondor
from htcondor import dags

folder = pathlib.Path(sys.argv[1])
jobs, variables, edges, other = {}, {}, [], []
for line in (folder / "job.dag").read_text().splitlines():
    if line.startswith("#"):
        continue
    words = line.split()
    if words[0] == "JOB":
        jobs[words[1]] = pathlib.Path(words[2])
    elif words[0] == "VARS":
        variables[words[1]] = dict(re.findall(r'(\w+)="(.*?)"', line))
    elif words[0] == "PARENT":
        at = words.index("CHILD")
        edges += [(parent, child) for parent in words[1:at] for child in words[at + 1:]]
    else:
        other.append(line)


class Names(dags.NodeNameFormatter):
    """Gives nodes the names of their layers."""

    def generate(self, layer_name, node_index):
        return layer_name

    def parse(self, node_name):
        return node_name, 0


def expected():
    """What the bindings write for the nodes and edges, as sorted lines."""
    dag = dags.DAG()
    layers = {name: dag.layer(name=name, submit_description=sub, vars=[variables[name]]) for name, sub in jobs.items()}
    for parent, child in edges:
        layers[parent].add_children(layers[child])
    with tempfile.TemporaryDirectory() as out:
        text = pathlib.Path(dags.write_dag(dag, pathlib.Path(out), node_name_formatter=Names())).read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return sorted(edge for line in lines for edge in split(line))


def split(line):
    """A line of PARENT and CHILD as one for each pair, any other as it is, without the case of keys."""
    words = line.split()
    if words[0] != "PARENT":
        return [" ".join(words)]
    at = words.index("CHILD")
    return ["PARENT %s CHILD %s" % (a, b) for a in words[1:at] for b in words[at + 1:]]


def judge(name):
    """The job of a node."""
    submit = htcondor.Submit((folder / jobs[name].name).read_text())
    for key, value in variables[name].items():
        submit[key] = value
    (ad,) = submit.jobs(clusterid=1)
    index = name.rsplit("-", 1)[1]
    assert ad["Cmd"] == "/usr/bin/env" and not ad["TransferExecutable"], ad
    assert re.search(r" farm run-task --spec \S+/job.json .*--index %s$" % index, ad["Arguments"]), ad["Arguments"]
    assert ad["KillSig"] == "SIGTERM" and ad["ShouldTransferFiles"] == "YES", ad
    assert ad["Out"].endswith("-%s.log" % index), ad
    last = ad["JobMaxRetries"] + 1
    for code, attempts, ends in ((0, 1, True), (75, 1, False), (None, 1, False), (2, 1, True), (65, 1, True),
                                 (78, 1, True), (1, 1, True), (75, last, True), (None, last, True)):
        after = classad.ClassAd(dict(ad))
        after.update({"NumJobCompletions": attempts, "ExitBySignal": code is None})
        after["ExitSignal" if code is None else "ExitCode"] = 9 if code is None else code
        assert after.eval("OnExitRemove") is ends, (name, code, attempts, ad["OnExitRemove"])
    return ad


lines = sorted([*("JOB %s %s" % item for item in jobs.items()),
                *('VARS %s %s' % (name, " ".join('%s="%s"' % v for v in var.items())) for name, var in variables.items()),
                *("PARENT %s CHILD %s" % edge for edge in edges)])
if lines != expected():
    sys.exit("the bindings write other lines:\n%s" % "\n".join(sorted(set(lines) ^ set(expected()))))
for name in jobs:
    ad = judge(name)
    print(name, *("%s=%s" % (key, ad.get(key)) for key in (
        "JobMaxRetries", "RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs", "GPUsMinMemory", "JobPrio",
        "JobMaxVacateTime", "PeriodicRemove")), "pool=%s" % ("VksplatPool" in str(ad["Requirements"])))
print("\n".join(sorted(set(other))))
