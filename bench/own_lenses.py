#!/usr/bin/env python3
"""own_lenses.py CAPTURE COPY: copies a COLMAP capture with a camera for each photo, whose focal length is wrong by 2 %
(standard deviation). The same capture gives the same copy."""
import pathlib
import random
import shutil
import struct
import sys

from wrong_poses import read

SHARE, SEED = 0.02, 1
PARAMS = (3, 4, 4, 5, 8, 8, 12)  # of COLMAP's models by id
FOCALS = (1, 2, 1, 1, 2, 2, 2)  # of these, focal lengths


def main(source, copy):
    random.seed(SEED)
    shutil.copytree(source, copy)
    model = pathlib.Path(copy, "sparse/0")
    data, at, cameras = (model / "cameras.bin").read_bytes(), 8, {}
    for _ in range(struct.unpack_from("<Q", data)[0]):
        number, kind, width, height = struct.unpack_from("<IiQQ", data, at)
        cameras[number] = kind, width, height, struct.unpack_from(f"<{PARAMS[kind]}d", data, at + 24)
        at += 24 + 8 * PARAMS[kind]
    images = read((model / "images.bin").read_bytes())
    lenses, views = [struct.pack("<Q", len(images))], [struct.pack("<Q", len(images))]
    for own, (head, name, points) in enumerate(images, 1):
        kind, width, height, params = cameras[head[8]]
        factor = 1 + SHARE * random.gauss(0, 1)
        params = [p * factor if k < FOCALS[kind] else p for k, p in enumerate(params)]
        lenses.append(struct.pack(f"<IiQQ{len(params)}d", own, kind, width, height, *params))
        views.append(struct.pack("<I7dI", *head[:8], own) + name + b"\0" + points)
    (model / "cameras.bin").write_bytes(b"".join(lenses))
    (model / "images.bin").write_bytes(b"".join(views))


if __name__ == "__main__":
    main(*sys.argv[1:])
