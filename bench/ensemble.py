#!/usr/bin/env python3
"""ensemble.py RUN RUN...: what is left of the error if the pictures of several seeds are averaged.

RUNs are folders of runs of one capture that differ by their seed (KEEP of ruler.sh). Their held-out pictures, which
train wrote with 8 bits a channel beside the photos, are compared with these, one run after the other and then their
mean. If the mean is hardly better, errors are the same in all seeds, and averages of weights or several models can gain
nothing. Wanted: numpy and Pillow."""
import pathlib
import statistics
import sys

import numpy as np
from PIL import Image


def pair(path):
    """Photo and render of a picture in OUT/test: photo, render and error side by side, 4 pixels apart."""
    row = np.asarray(Image.open(path).convert("RGB"), dtype=float) / 255
    width = (row.shape[1] - 8) // 3
    return row[:, :width], row[:, width + 4:2 * width + 4]


def psnr(a, b):
    return -10 * np.log10(np.mean((a - b) ** 2))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    folders = [max(pathlib.Path(run).glob("test/ours_*"), key=lambda p: int(p.name.split("_")[1]), default=None)
               for run in sys.argv[1:]]
    if None in folders:
        sys.exit(f"ensemble.py: {sys.argv[1 + folders.index(None)]} has no held-out pictures (train --eval makes them)")
    single, mean = [[] for _ in folders], []
    for path in sorted(folders[0].rglob("*.png")):
        pairs = [pair(f / path.relative_to(folders[0])) for f in folders]
        photo, renders = pairs[0][0], [render for _, render in pairs]
        for scores, render in zip(single, renders):
            scores.append(psnr(render, photo))
        mean.append(psnr(np.mean(renders, axis=0), photo))
    singles = [statistics.mean(s) for s in single]
    print(f"{len(mean)} views; single runs {', '.join(f'{s:.2f}' for s in singles)}: mean "
          f"{statistics.mean(singles):.2f} dB; mean picture {statistics.mean(mean):.2f} dB "
          f"({statistics.mean(mean) - statistics.mean(singles):+.2f})")


main()
