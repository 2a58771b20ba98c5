"""LPIPS by PyTorch, for TestTorch: python3 lpips_torch.py DIR alex|vgg WIDTH HEIGHT true|false

DIR holds float32 numbers: x and y, pictures [HEIGHT][WIDTH][3] of 0..1, and kernels0, biases0, channels0 and so on, layer by layer, empty where a layer has
none. The last argument says whether colours go to -1..1 first. Everything is computed in float64.

Architecture: torchvision 0.2x models/alexnet.py and models/vgg.py, configuration D, as nn.Sequential; which features count and how they are compared: Zhang
et al. 2018 and version 0.1 of the package lpips.
"""
import sys

import torch
from torch import nn

directory, net, width, height, normalize = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == "true"


def numbers(name):
    with open(f"{directory}/{name}", "rb") as f:
        raw = bytearray(f.read())
    return torch.frombuffer(raw, dtype=torch.float32).double() if raw else None


def network():
    """Modules, and after which of them features count."""
    if net == "alex":
        modules = [
            nn.Conv2d(3, 64, kernel_size=11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(kernel_size=3, stride=2),
            nn.Conv2d(64, 192, kernel_size=5, padding=2), nn.ReLU(), nn.MaxPool2d(kernel_size=3, stride=2),
            nn.Conv2d(192, 384, kernel_size=3, padding=1), nn.ReLU(),
            nn.Conv2d(384, 256, kernel_size=3, padding=1), nn.ReLU(),
            nn.Conv2d(256, 256, kernel_size=3, padding=1), nn.ReLU(),
        ]
        return modules, [1, 4, 7, 9, 11]
    modules, channels = [], 3
    for out in [64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512]:
        if out == "M":
            modules.append(nn.MaxPool2d(kernel_size=2, stride=2))
        else:
            modules += [nn.Conv2d(channels, out, kernel_size=3, padding=1), nn.ReLU()]
            channels = out
    return modules, [3, 8, 15, 22, 29]


def picture(name):
    p = numbers(name).reshape(1, height, width, 3).permute(0, 3, 1, 2)
    if normalize:
        p = 2 * p - 1
    shift = torch.tensor([-0.030, -0.088, -0.188], dtype=torch.float64).reshape(1, 3, 1, 1)
    scale = torch.tensor([0.458, 0.448, 0.450], dtype=torch.float64).reshape(1, 3, 1, 1)
    return (p - shift) / scale


modules, taps = network()
layer, layer_of = -1, []  # numbered as in Go, where a convolution and its ReLU are one
for m in modules:
    layer += not isinstance(m, nn.ReLU)
    layer_of.append(layer)
    if isinstance(m, nn.Conv2d):
        m.double()
        m.weight.data = numbers(f"kernels{layer}").reshape(m.weight.shape)
        m.bias.data = numbers(f"biases{layer}")
with torch.no_grad():
    total, x, y = 0.0, picture("x"), picture("y")
    for i, m in enumerate(modules):
        x, y = m(x), m(y)
        if i in taps:
            fx, fy = (f / (torch.linalg.vector_norm(f, dim=1, keepdim=True) + 1e-10) for f in (x, y))
            weights = numbers(f"channels{layer_of[i]}").reshape(1, -1, 1, 1)
            total += nn.functional.conv2d((fx - fy) ** 2, weights).mean().item()
print(f"{total:.12f}")
