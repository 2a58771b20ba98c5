#!/usr/bin/env python3
"""wrong_poses.py CAPTURE COPY [all [DEGREES]]: copies a COLMAP capture with poses that are wrong by 0.5 degrees, or as
many as are given, about an axis at random, and by 0.5 % of the median distance of the cameras from their mean, in a
direction at random. Every 8th photo, which train --eval holds out, keeps its pose unless all are asked for. The same
capture gives the same copy."""
import math
import pathlib
import random
import shutil
import struct
import sys

DEGREES, SHARE, SEED = 0.5, 0.005, 7


def rotation(w, x, y, z):
    """The rows of a unit quaternion's matrix."""
    return ((1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
            (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
            (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)))


def product(a, b):
    """a times b, quaternions w, x, y, z."""
    return (a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
            a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0])


def direction():
    """A vector of length 1, any direction as likely as any other."""
    v = [random.gauss(0, 1) for _ in range(3)]
    return [x / math.hypot(*v) for x in v]


def read(data):
    """The images of images.bin: [id, 7 numbers of the pose, camera], name, bytes of the 2D points."""
    at, images = 8, []
    for _ in range(struct.unpack_from("<Q", data)[0]):
        head = struct.unpack_from("<I7dI", data, at)
        end = data.index(b"\0", at + 64)
        size = 8 + 24 * struct.unpack_from("<Q", data, end + 1)[0]
        images.append((head, data[at + 64:end], data[end + 1:end + 1 + size]))
        at = end + 1 + size
    return images


def main(source, copy, which="training", degrees=DEGREES):
    random.seed(SEED)
    shutil.copytree(source, copy)
    path = pathlib.Path(copy, "sparse/0/images.bin")
    images = read(path.read_bytes())
    centres = [[-sum(row[c] * t for row, t in zip(rotation(*h[1:5]), h[5:8])) for c in range(3)] for h, _, _ in images]
    mean = [sum(c[k] for c in centres) / len(centres) for k in range(3)]
    step = SHARE * sorted(math.dist(c, mean) for c in centres)[len(centres) // 2]
    held = set(sorted(range(len(images)), key=lambda i: images[i][1])[::8])
    out = [struct.pack("<Q", len(images))]
    for i, (head, name, points) in enumerate(images):
        half, axis, aside = math.radians(float(degrees)) / 2, direction(), direction()
        q, centre = head[1:5], centres[i]
        if which == "all" or i not in held:
            q = product((math.cos(half), *(math.sin(half) * x for x in axis)), q)
            centre = [c + step * x for c, x in zip(centre, aside)]
        t = [-sum(r * c for r, c in zip(row, centre)) for row in rotation(*q)]
        out.append(struct.pack("<I7dI", head[0], *q, *t, head[8]) + name + b"\0" + points)
    path.chmod(0o644)
    path.write_bytes(b"".join(out))


if __name__ == "__main__":
    main(*sys.argv[1:])
