#!/usr/bin/env python3
"""floaters.py RUN RUN_OF_ANOTHER_SEED [--views N] [--degrees D]: floaters, measured without truth.

Two runs on the same capture that differ by their seed are drawn from where no photo was taken: half way between
cameras that are neighbours, and D (20) degrees beside a camera, above or below it, about the point at the depth that it
looks at. N (24) cameras at even distances of those trained on have a view of either kind. What photos do not determine
comes out differently by chance, so the table has, for each kind of view, in the mean over views:

  disagree  mean |A - B| of colours from 0 to 1
  depth     share of pixels whose expected depths differ by more than 10 %, of those where either model has one
  light     of A and of B, the share of light that comes from nearer than half the depth where the points begin: the
            mean alpha of those splats alone. Points are those in the view and in one of its three nearest cameras; the
            nearest hundredth is left out. Views with fewer than 20 points do not count.

Smaller is better. A floater that both models have shows as light alone. The script needs numpy. VKSPLAT is the program
(vksplat), DEVICE the device (0)."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

FEWEST = 20


def read_ply(path):
    """The header's lines and the vertices, of PLY files whose numbers are float or uchar."""
    data = pathlib.Path(path).read_bytes()
    end = data.index(b"end_header\n") + len(b"end_header\n")
    head = data[:end].decode().splitlines()
    kinds = {"float": "<f4", "uchar": "u1"}
    fields = [(line.split()[2], kinds[line.split()[1]]) for line in head if line.startswith("property")]
    count = next(int(line.split()[2]) for line in head if line.startswith("element vertex"))
    return head, np.frombuffer(data, np.dtype(fields), count, end)


def positions(vertices):
    return np.stack([vertices[k] for k in "xyz"], 1).astype(float)


def write_ply(path, head, vertices):
    lines = [f"element vertex {len(vertices)}" if line.startswith("element vertex") else line for line in head]
    pathlib.Path(path).write_bytes(("\n".join(lines) + "\n").encode() + vertices.tobytes())


class Camera:
    """An entry of cameras.json: the rotation's columns are the camera's x to the right, y down and z ahead."""

    def __init__(self, entry, position=None, rotation=None, name=None):
        self.entry = dict(entry)
        self.position = np.array(entry["position"] if position is None else position)
        self.rotation = np.array(entry["rotation"] if rotation is None else rotation)
        self.entry.update(position=self.position.tolist(), rotation=self.rotation.tolist())
        if name:
            self.entry.update(img_name=name + ".png", split="test")

    def sees(self, points):
        """Depths of the points, and which of them are in the picture."""
        x, y, z = ((points - self.position) @ self.rotation).T
        e, ahead = self.entry, np.where(z > 0, z, np.inf)
        u, v = e["fx"] * x / ahead + e["cx"], e["fy"] * y / ahead + e["cy"]
        return z, (z > 0) & (u >= 0) & (u < e["width"]) & (v >= 0) & (v < e["height"])


def turn(axis, angle):
    """The rotation about an axis of length 1 (Rodrigues)."""
    k = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


def half_way(a, b, name):
    """The camera in the middle of two."""
    r = a.rotation.T @ b.rotation
    angle = np.arccos(np.clip((np.trace(r) - 1) / 2, -1, 1))
    axis = np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]])
    half = turn(axis / np.linalg.norm(axis), angle / 2) if np.linalg.norm(axis) > 1e-9 else np.eye(3)
    return Camera(a.entry, (a.position + b.position) / 2, a.rotation @ half, name)


def aside(camera, depth, degrees, way, name):
    """The camera turned about the point that it looks at: right, up, left or down."""
    target = camera.position + depth * camera.rotation[:, 2]
    q = turn(camera.rotation[:, 1 - way % 2], np.radians(degrees if way < 2 else -degrees))
    return Camera(camera.entry, target + q @ (camera.position - target), q @ camera.rotation, name)


def nearest(view, cameras):
    """Cameras that look less than 60 degrees elsewhere, the nearest first."""
    alike = [c for c in cameras if view.rotation[:, 2] @ c.rotation[:, 2] > 0.5 and c is not view]
    return sorted(alike, key=lambda c: np.linalg.norm(c.position - view.position))


def views_of(cameras, points, count, degrees):
    """The views of both kinds: kind -> cameras."""
    views = {"between": [], "aside": []}
    for i in np.unique(np.linspace(0, len(cameras) - 1, min(count, len(cameras))).astype(int)):
        camera = cameras[i]
        others = [c for c in nearest(camera, cameras) if np.linalg.norm(c.position - camera.position) > 1e-6]
        if others:
            views["between"].append(half_way(camera, others[0], f"between_{i:05d}"))
        z, seen = camera.sees(points)
        if seen.sum() >= FEWEST:
            way = len(views["aside"]) % 4
            views["aside"].append(aside(camera, np.median(z[seen]), degrees, way, f"aside_{i:05d}"))
    return views


def begin(view, cameras, points):
    """The depth along the view's axis where the points of its three nearest cameras begin, or None."""
    z, seen = view.sees(points)
    near = [c.sees(points)[1] for c in nearest(view, cameras)[:3]]
    seen = seen & np.any(near, axis=0) if near else np.zeros_like(seen)
    return np.quantile(z[seen], 0.01) if seen.sum() >= FEWEST else None


def render(model, views, cameras, folder, *flags):
    """Draws the views, and returns the folder. The training cameras beside them set the unit of the near plane."""
    folder.mkdir()
    path = folder / "cameras.json"
    path.write_text(json.dumps([dict(v.entry, id=i) for i, v in enumerate([*cameras, *views])]))
    done = subprocess.run([os.environ.get("VKSPLAT", "vksplat"), "render", str(model), "--cameras", str(path), "-o",
                           str(folder / "out"), "--split", "test", "--format", "npy", "--device",
                           os.environ.get("DEVICE", "0"), *flags], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"floaters.py: cannot draw {model}:\n{done.stderr}")
    return folder / "out"


def name_of(view):
    return pathlib.Path(view.entry["img_name"]).stem


def disagreement(runs, views, cameras, work):
    """Mean |A - B| and the share of other depths, of each view."""
    folders = [render(run, views, cameras, work / f"whole_{i}", "--depth") for i, run in enumerate(runs)]
    colour, depth = [], []
    for view in views:
        a, b = (np.clip(np.load(f / f"{name_of(view)}.npy"), 0, 1) for f in folders)
        colour.append(np.abs(a - b).mean())
        a, b = (np.load(f / f"{name_of(view)}.depth.npy") for f in folders)
        some = np.maximum(a, b) > 0
        depth.append((np.abs(a - b) > 0.1 * np.minimum(a, b))[some].mean() if some.any() else 0)
    return colour, depth


def newest(run):
    """The newest model of a run."""
    return max(pathlib.Path(run).glob("point_cloud/iteration_*/point_cloud.ply"),
               key=lambda p: int(p.parent.name.split("_")[1]))


def light(run, views, cameras, points, work):
    """The share of light from splats nearer than half of where the points begin, of views that have such points."""
    head, splats = read_ply(newest(run))
    at, shares = positions(splats), []
    for i, view in enumerate(views):
        limit = begin(view, cameras, points)
        if limit is None:
            continue
        z, _ = view.sees(at)
        near = splats[(z > 0) & (z < limit / 2)]
        if len(near) == 0:
            shares.append(0)
            continue
        write_ply(work / "near.ply", head, near)
        shares.append(np.load(render(work / "near.ply", [view], cameras, work / f"near_{i}", "--alpha") /
                              f"{name_of(view)}.npy")[..., 3].mean())
    return shares


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs=2, metavar="RUN")
    parser.add_argument("--views", type=int, default=24)
    parser.add_argument("--degrees", type=float, default=20)
    options = parser.parse_args()
    first = pathlib.Path(options.runs[0])
    cameras = [Camera(e) for e in json.loads((first / "cameras.json").read_text()) if e.get("split") != "test"]
    points = positions(read_ply(first / "input.ply")[1])
    print("| views | | disagree | depth | light of A | light of B |\n|---|---|---|---|---|---|")
    scene = points if len(points) >= FEWEST else positions(read_ply(newest(first))[1])  # a capture without points
    for kind, views in views_of(cameras, scene, options.views, options.degrees).items():
        if not views:
            continue
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            cells = [f"{np.mean(c):.4f}" for c in disagreement(options.runs, views, cameras, work)]
            for name, run in zip("ab", options.runs):
                (work / name).mkdir()
                shares = light(run, views, cameras, points, work / name)
                cells.append(f"{np.mean(shares):.4f}" if shares else "")
        print(f"| {kind if kind == 'between' else f'{options.degrees:g} degrees aside'} | {len(views)} | "
              + " | ".join(cells) + " |")


main()
