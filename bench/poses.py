#!/usr/bin/env python3
"""poses.py REFERENCE MODEL...: how far the cameras of COLMAP models are from those of REFERENCE, a COLMAP model (folder
with cameras.bin, images.bin, points3D.bin) or a cameras.json of measured cameras (x_cam = R X + t). Needs numpy.

A row for each model: photos that have a camera, of those of REFERENCE; points; mean distance of observations from
projections, as the model's points say; then, after the similarity that brings the centres together (Umeyama 1991; then
by least absolute distances, so that single wrong photos do not turn the rest), medians and largest of the angles
between rotations, in degrees, less the rotation that all share, and of the distances of centres, in percent of their
RMS distance from the middle."""
import json
import pathlib
import struct
import sys

import numpy as np


def rotation(q):
    w, x, y, z = np.asarray(q) / np.linalg.norm(q)
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def images(data):
    """Rotations and translations by name, of an images.bin."""
    poses, at = {}, 8
    for _ in range(struct.unpack_from("<Q", data)[0]):
        values = struct.unpack_from("<I7dI", data, at)
        end = data.index(b"\0", at + 64)
        poses[data[at + 64:end].decode()] = rotation(values[1:5]), np.array(values[5:8])
        at = end + 9 + 24 * struct.unpack_from("<Q", data, end + 1)[0]
    return poses


def points(data):
    """Number of points, and the mean of their errors over observations, of a points3D.bin."""
    count, at = struct.unpack_from("<Q", data)[0], 8
    errors = lengths = 0
    for _ in range(count):
        error, length = struct.unpack_from("<dQ", data, at + 35)
        errors, lengths, at = errors + error * length, lengths + length, at + 51 + 8 * length
    return count, errors / max(1, lengths)


def read(path):
    path = pathlib.Path(path)
    if path.suffix == ".json":
        photos = json.loads(path.read_text())["photos"]
        return {p["name"]: (np.array(p["R"]), np.array(p["t"]).ravel()) for p in photos}, (0, 0)
    return images((path / "images.bin").read_bytes()), points((path / "points3D.bin").read_bytes())


def similarity(source, target, weights):
    """Scale, rotation and translation from one list of places to the other."""
    weights = weights / weights.sum()
    a, b = weights @ source, weights @ target
    u, d, v = np.linalg.svd((target - b).T @ (weights[:, None] * (source - a)))
    sign = np.diag([1, 1, np.sign(np.linalg.det(u @ v))])
    turn = u @ sign @ v
    scale = (d * np.diag(sign)).sum() / (weights @ ((source - a) ** 2).sum(1))
    return scale, turn, b - scale * turn @ a


def angles(turns):
    return np.degrees([np.arccos(np.clip((np.trace(t) - 1) / 2, -1, 1)) for t in turns])


def compare(reference, model):
    names = sorted(set(reference) & set(model))
    if len(names) < 3:
        return None
    centres = [np.array([-r.T @ t for r, t in (cameras[n] for n in names)]) for cameras in (model, reference)]
    size = np.sqrt(((centres[1] - np.median(centres[1], 0)) ** 2).sum(1).mean())
    weights = np.ones(len(names))
    for _ in range(30):
        scale, turn, move = similarity(centres[0], centres[1], weights)
        off = np.linalg.norm(scale * centres[0] @ turn.T + move - centres[1], axis=1) / size
        weights = 1 / np.maximum(off, 1e-5)
    turns = [reference[n][0].T @ model[n][0] @ turn.T for n in names]
    best = turns[int(np.argmin([np.median(angles([a.T @ b for b in turns])) for a in turns]))]
    for _ in range(10):  # the rotation that all share: the mean of those near it
        off_turns = angles([best.T @ t for t in turns])
        u, _, v = np.linalg.svd(sum(t for t, o in zip(turns, off_turns) if o <= 2 * np.median(off_turns) + 1e-6))
        best = u @ v
    off_turns = angles([best.T @ t for t in turns])
    return np.median(off_turns), off_turns.max(), 100 * np.median(off), 100 * off.max()


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.split("\n")[0])
    reference, _ = read(sys.argv[1])
    print("| model | photos | points | reprojection, px | rotations, degrees: median, most "
          "| centres, %: median, most |")
    print("|---|---|---|---|---|---|")
    for path in sys.argv[2:]:
        model, (count, error) = read(path)
        off = compare(reference, model)
        cells = "| {:.4f}, {:.3f} | {:.3f}, {:.2f} |".format(*off) if off else "| | |"
        print(f"| {path} | {len(set(reference) & set(model))} of {len(reference)} | {count:,} | {error:.3f} {cells}")


if __name__ == "__main__":
    main()
