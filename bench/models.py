#!/usr/bin/env python3
"""Makes the COLMAP models that benchmarks read, outside the repository. Needs numpy and pycolmap 4.2.1
(pip install pycolmap==4.2.1; with an NVIDIA GPU pycolmap-cuda12==4.2.1, which dense needs).

Photos are in CAPTURE/images. OUT gets sparse/0 and images, and is a capture that vksplat reads.

  known   triangulates points with the measured cameras of CAPTURE/cameras.json (x_cam = R X + t, pixel = K x_cam / z,
          one K for all photos), which stay as they are to 1e-9:
            models.py known fountain -o data/fountain
            models.py known herzjesu -o data/herzjesu

  map     finds cameras and points of photos without poses, one camera for all, and keeps the largest model:
            models.py map south_building -o data/south_building
            models.py map drone_copr -o data/drone_copr --camera OPENCV
          --global maps by COLMAP's global mapper. Seeds are fixed; with --threads 1 and without a GPU two runs make the
          same model.

  dense   dense stereo of the photos in the file LIST, one a line, such as those that a run trains on. The model loses
          all other photos first, and the points that fewer than two of LIST observe. DIR gets fused.ply and, where
          cameras are PINHOLE, depths and normals of each photo; else train on DIR/work, which has undistorted photos:
            (cd bonsai_146/images && ls | awk 'NR % 8 != 1') > list.txt
            models.py dense bonsai_146 --photos list.txt -o data/bonsai_dense
            vksplat train bonsai_146 -m out --eval --init ply:data/bonsai_dense/fused.ply
            vksplat train bonsai_146 -m out --eval --depths $PWD/data/bonsai_dense/depths --depth-kind depth \\
              --depth-unit 1 --normals $PWD/data/bonsai_dense/normals --normal-frame opencv
          Depths are along the axis, in the model's unit; normals right, down, ahead; 0 where stereo knows nothing."""
import argparse
import contextlib
import json
import pathlib
import shutil
import tempfile
import time

import numpy as np
import pycolmap

SEED = 42


@contextlib.contextmanager
def stage(name):
    """Seeds what it surrounds, and prints how long that took."""
    start = time.monotonic()
    pycolmap.set_random_seed(SEED)
    yield
    print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)


def match(database, images, names, camera, params, args):
    """Writes the database of SIFT features of photos by one camera, and of the matches between all pairs."""
    reader = pycolmap.ImageReaderOptions(camera_model=camera, camera_params=params)
    extraction, verification = pycolmap.FeatureExtractionOptions(), pycolmap.TwoViewGeometryOptions()
    extraction.num_threads, extraction.sift.max_num_features = args.threads, args.features
    verification.ransac.random_seed = SEED
    with stage("features"):
        pycolmap.extract_features(database, images, names, pycolmap.CameraMode.SINGLE, reader, extraction)
    with stage("matches"):
        matching = pycolmap.FeatureMatchingOptions(num_threads=args.threads)
        pycolmap.match_exhaustive(database, matching, verification_options=verification)


def mapping(threads=-1):
    """Options of the mapper and the triangulation."""
    options = pycolmap.IncrementalPipelineOptions(num_threads=threads, random_seed=SEED)
    options.mapper.num_threads, options.mapper.random_seed, options.triangulation.random_seed = threads, SEED, SEED
    return options


def write(model, images, out):
    """Writes a model as OUT/sparse/0, copies its photos to OUT/images, and prints what it holds."""
    (out / "sparse/0").mkdir(parents=True, exist_ok=True)
    model.write(out / "sparse/0")
    for image in model.images.values():
        (out / "images" / image.name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(images / image.name, out / "images" / image.name)
    cameras = "; ".join(f"{c.model.name} {np.round(c.params, 4).tolist()}" for c in model.cameras.values())
    print(f"{out}: {model.num_reg_images()} photos, {model.num_points3D()} points, "
          f"{model.compute_mean_reprojection_error():.3f} px, {cameras}")


def pose(photo):
    """The pose of a photo of cameras.json, 3 rows of 4."""
    return np.column_stack([photo["R"], photo["t"]])


def known(args):
    photos = json.loads((args.capture / "cameras.json").read_text())["photos"]
    first, images = photos[0], args.capture / "images"
    if any((p["K"], p["width"], p["height"]) != (first["K"], first["width"], first["height"]) for p in photos):
        raise SystemExit("models.py: the photos of cameras.json have several K or sizes; want one camera")
    (fx, skew, cx), (_, fy, cy), _ = first["K"]
    assert skew == 0, "a PINHOLE camera has no skew"
    camera = pycolmap.Camera(camera_id=1, model="PINHOLE", width=first["width"], height=first["height"],
                             params=[fx, fy, cx, cy], has_prior_focal_length=True)
    with tempfile.TemporaryDirectory() as work:
        database = pathlib.Path(work, "database.db")
        params = ",".join(map(str, camera.params))
        match(database, images, [p["name"] for p in photos], "PINHOLE", params, args)
        given = pycolmap.Reconstruction()
        given.add_camera_with_trivial_rig(camera)
        with pycolmap.Database.open(database) as opened:
            ids = {i.name: i.image_id for i in opened.read_all_images()}
        for p in photos:
            image = pycolmap.Image(name=p["name"], camera_id=1, image_id=ids[p["name"]])
            given.add_image_with_trivial_frame(image, pycolmap.Rigid3d(pose(p)))
        with stage("points"):
            model = pycolmap.triangulate_points(given, database, images, work, options=mapping(args.threads))
    write(model, images, args.out)
    model = pycolmap.Reconstruction(args.out / "sparse/0")
    found = {i.name: i for i in model.images.values() if i.has_pose}
    assert len(found) == len(photos) and all(np.array_equal(c.params, camera.params) for c in model.cameras.values())
    off = max(np.abs(found[p["name"]].cam_from_world().matrix() - pose(p)).max() for p in photos)
    print(f"poses are those of cameras.json to {off:.1e}")
    assert off < 1e-9


def map_photos(args):
    images = args.capture / "images"
    with tempfile.TemporaryDirectory() as work:
        database = pathlib.Path(work, "database.db")
        match(database, images, [], args.camera, "", args)
        with stage("mapping"):
            if args.use_global:
                options = pycolmap.GlobalPipelineOptions(num_threads=args.threads, random_seed=SEED)
                models = pycolmap.global_mapping(database, images, work, options).values()
            else:
                models = pycolmap.incremental_mapping(database, images, work, mapping(args.threads)).values()
    if not models:
        raise SystemExit("models.py: no two photos fit together")
    print("models of", sorted((m.num_reg_images() for m in models), reverse=True), "photos")
    write(max(models, key=lambda m: (m.num_reg_images(), m.num_points3D())), images, args.out)


def subset(model, names):
    """Takes from a model all photos but those named, and the points that fewer than two of these observe."""
    missing = names - {i.name for i in model.images.values() if i.has_pose}
    if missing:
        raise SystemExit(f"models.py: the model has no pose of {sorted(missing)}")
    for frame in {i.frame_id for i in model.images.values() if i.has_pose and i.name not in names}:
        model.deregister_frame(frame)
    for key in [k for k, p in model.points3D.items() if len({e.image_id for e in p.track.elements}) < 2]:
        model.delete_point3D(key)


def read_map(file):
    """A map of COLMAP's stereo, [rows, columns, channels]: width&height&channels& and floats, channel by channel.
    (NormalMap.to_array of pycolmap 4.2.1 mixes these up.)"""
    head = file.read_bytes().split(b"&", 3)
    width, height, channels = map(int, head[:3])
    return np.frombuffer(head[3], "<f4").reshape(channels, height, width).transpose(1, 2, 0)


def write_maps(work, out, name):
    """Writes what stereo knows of a photo as vksplat train reads it. Half floats do for normals."""
    depth = read_map(work / f"stereo/depth_maps/{name}.geometric.bin")[..., 0]
    normal = read_map(work / f"stereo/normal_maps/{name}.geometric.bin")
    seen = np.isfinite(depth) & (depth > 0)
    for kind, values in ("depths", depth * seen), ("normals", (normal * seen[..., None]).astype("<f2")):
        (out / kind / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(out / kind / f"{name}.npy", np.ascontiguousarray(values))
    return seen.mean()


def same_camera(a, b):
    """Whether two cameras show the same picture."""
    return (a.model, a.width, a.height) == (b.model, b.width, b.height) and np.array_equal(a.params, b.params)


def move_pixels(model, by, folder):
    """Moves the principal points of a model and writes it."""
    for camera in model.cameras.values():
        camera.principal_point_x += by
        camera.principal_point_y += by
    model.write(folder)


def dense(args):
    names, work = set(args.photos.read_text().split("\n")) - {""}, args.out / "work"
    given = pycolmap.Reconstruction(args.capture / "sparse/0")
    subset(given, names)
    work.mkdir(parents=True)  # a new one: stereo would keep the maps of an earlier run
    with tempfile.TemporaryDirectory() as sparse:
        given.write(sparse)
        with stage("undistortion"):
            pycolmap.undistort_images(work, sparse, args.capture / "images")
    model = pycolmap.Reconstruction(work / "sparse")
    assert {i.name for i in model.images.values()} == names
    print(f"{len(names)} photos, {model.num_points3D()} points", flush=True)
    same = [i.name for i in model.images.values() if same_camera(i.camera, given.find_image_with_name(i.name).camera)]
    # The centre of the first pixel is at 0.5 in a model, but at 0 in stereo and fusion (colmap issue 1515).
    move_pixels(model, -0.5, work / "sparse")
    # Stereo works on a row of pixels at a time, which is little for a GPU: some photos at once.
    options = pycolmap.PatchMatchOptions(gpu_index=",".join(["0"] * args.jobs), geom_consistency=True)
    with stage("stereo"):
        pycolmap.patch_match_stereo(work, options=options)
    with stage("fusion"):
        pycolmap.stereo_fusion(args.out / "fused.ply", work, output_type="PLY")
    move_pixels(model, 0.5, work / "sparse")
    # A photo that shares no points with others has no maps.
    known = [name for name in same if (work / f"stereo/depth_maps/{name}.geometric.bin").exists()]
    shares = [write_maps(work, args.out, name) for name in known]
    if shares:
        print(f"maps of {len(shares)} photos, {np.mean(shares):.1%} of the pixels known")
    else:
        print(f"no maps: undistortion changed the photos; train on {work}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="known|map|dense")
    for name, do in ("known", known), ("map", map_photos), ("dense", dense):
        command = commands.add_parser(name)
        command.set_defaults(do=do)
        command.add_argument("capture", type=pathlib.Path)
        command.add_argument("-o", "--out", type=pathlib.Path, required=True)
        if do is dense:
            command.add_argument("--photos", type=pathlib.Path, required=True, metavar="LIST")
            command.add_argument("--jobs", type=int, default=8, help="photos at once (default: 8)")
            continue
        command.add_argument("--features", type=int, default=8192, help="features of a photo at most (default: 8192)")
        command.add_argument("--threads", type=int, default=-1, help="threads (default: all)")
        if do is map_photos:
            command.add_argument("--camera", default="SIMPLE_RADIAL", help="COLMAP's model (default: SIMPLE_RADIAL)")
            command.add_argument("--global", dest="use_global", action="store_true", help="the global mapper")
    args = parser.parse_args()
    args.do(args)


if __name__ == "__main__":
    main()
