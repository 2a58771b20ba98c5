#!/usr/bin/env python3
"""Writes the fixtures of captures that other programs export: python3 tools/posefixtures.py

Each folder scene/NAME/testdata/small has the files that the program would write, by the description of its format, and
pixels.txt: where points of the world fall in the photos. Those are computed here, from the numbers of the files and by
the formulas of the format, and share nothing with the readers in Go that they test. Needs numpy.
"""

import io
import json
import math
import os
import struct

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scene")
W, H = 64, 48
POINTS = np.array([[0, 0, 0], [0.5, 0.25, -0.25], [-0.5, 0.3, 0.2], [0.3, -0.6, 0.4], [-0.7, -0.2, -0.5],
                   [0.1, 0.7, 0.6], [0.6, 0.6, 0.1], [-0.25, 0.5, -0.6]])
COLOURS = np.array([[40 * i % 256, 255 - 30 * i, 10 + 20 * i] for i in range(len(POINTS))])


def look(i):
    """Axes (columns: right, down, forward, in the world, z up) and centre of the camera of photo i."""
    angle, tilt = 0.9 * i + 0.2, 0.15 * i - 0.1
    centre = np.array([2.4 * math.cos(angle), 2.4 * math.sin(angle), 0.6 + 0.25 * i])
    forward = -centre / np.linalg.norm(centre)
    right = np.cross(forward, [0, 0, 1])
    right /= np.linalg.norm(right)
    down = np.cross(forward, right)
    c, s = math.cos(tilt), math.sin(tilt)
    return np.stack([c * right + s * down, c * down - s * right, forward], 1), centre


def put(package, name, text):
    path = os.path.join(ROOT, package, "testdata", "small", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb" if isinstance(text, bytes) else "w") as f:
        f.write(text)


def put_pixels(package, lines):
    put(package, "pixels.txt", "# photo, its size, a point of the world, and where it falls; pixel centres at +0.5\n" +
        "".join("%s %d %d %.17g %.17g %.17g %.12f %.12f\n" % line for line in lines))


def ply(points):
    head = "ply\nformat ascii 1.0\nelement vertex %d\n" % len(points)
    head += "".join("property %s\n" % p for p in
                    ["double x", "double y", "double z", "uchar red", "uchar green", "uchar blue"])
    return head + "end_header\n" + "".join(
        "%.17g %.17g %.17g %d %d %d\n" % (*p, *c) for p, c in zip(points, COLOURS))


def turn(axis, degrees):
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.array({"x": [[1, 0, 0], [0, c, -s], [0, s, c]], "y": [[c, 0, s], [0, 1, 0], [-s, 0, c]],
                     "z": [[c, -s, 0], [s, c, 0], [0, 0, 1]]}[axis])


def metashape():
    """The frame and fisheye cameras of the manual's appendix, the latter on a rig with the former, a component that is
    turned, moved and scaled, and points in the coordinates of the chunk."""
    matrices = []
    for i in range(5):
        matrices.append(np.eye(4))
        matrices[i][:3, :3], matrices[i][:3, 3] = look(i)
    on_rig = np.linalg.inv(matrices[3]) @ matrices[4]  # the slave's axes and centre in the master's
    lenses = {0: dict(f=61.5, cx=0.75, cy=-0.5, b1=0.8, b2=-1.3, k1=-0.11, k2=0.04, k3=-0.01, k4=0.002, p1=0.003,
                      p2=-0.002),
              1: dict(f=48.0, cx=-0.25, cy=0.5, k1=0.02, k2=-0.01, p1=-0.001, p2=0.002)}
    world = turn("z", 30) @ turn("x", -20)
    scale, move = 2.5, np.array([10, -20, 5.0])
    numbers = lambda values: " ".join("%.17g" % v for v in np.ravel(values))
    out = ['<?xml version="1.0" encoding="UTF-8"?>', '<document version="2.0.0">',
           '  <chunk label="Chunk 1" enabled="true">', '    <sensors next_id="2">']
    for i, k in lenses.items():
        kind = ["frame", "fisheye"][i]
        out += ['      <sensor id="%d" label="lens %d" type="%s"%s>' % (i, i, kind, ["", ' master_id="0"'][i]),
                '        <resolution width="%d" height="%d"/>' % (W, H),
                '        <property name="pixel_width" value="0.0024"/>',
                '        <calibration type="%s" class="adjusted">' % kind,
                '          <resolution width="%d" height="%d"/>' % (W, H)]
        out += ["          <%s>%.17g</%s>" % (n, v, n) for n, v in k.items()]
        out += ['        </calibration>', '        <covariance><params>f cx</params></covariance>']
        out += ['        <rotation>%s</rotation>' % numbers(on_rig[:3, :3]),
                '        <location>%s</location>' % numbers(on_rig[:3, 3])] if i else []
        out += ['      </sensor>']
    out += ['    </sensors>', '    <components next_id="1" active_id="0">',
            '      <component id="0" label="Component 1">', '        <transform>',
            '          <rotation locked="false">%s</rotation>' % numbers(world),
            '          <translation locked="false">%s</translation>' % numbers(move),
            '          <scale locked="false">%.17g</scale>' % scale, '        </transform>', '      </component>',
            '    </components>', '    <cameras next_id="7" next_group_id="1">']
    pixels = []
    for i in range(5):
        matrix = matrices[i]
        sensor = 1 if i == 4 else 0
        name = "IMG_%04d" % i
        if i == 3:
            out += ['      <group id="0" label="far" type="folder">']
        out += ['      <camera id="%d" sensor_id="%d" component_id="0" label="%s"%s>' % (
            i, sensor, name, ' master_id="3"' if sensor else "")]
        out += [] if sensor else ['        <transform>%s</transform>' % numbers(matrix)]
        out += ['        <orientation>1</orientation>', '      </camera>']
        if i == 3:
            out += ['      </group>']
        k = dict.fromkeys(["b1", "b2", "k1", "k2", "k3", "k4", "p1", "p2"], 0.0) | lenses[sensor]
        for p in POINTS:
            x, y, z = np.linalg.inv(matrix)[:3] @ [*p, 1]
            x, y = x / z, y / z
            if sensor == 1:
                r0 = math.hypot(x, y)
                x, y = (x * math.atan(r0) / r0, y * math.atan(r0) / r0) if r0 else (x, y)
            r2 = x * x + y * y
            radial = 1 + k["k1"] * r2 + k["k2"] * r2**2 + k["k3"] * r2**3 + k["k4"] * r2**4
            xd = x * radial + k["p1"] * (r2 + 2 * x * x) + 2 * k["p2"] * x * y
            yd = y * radial + k["p2"] * (r2 + 2 * y * y) + 2 * k["p1"] * x * y
            u = W * 0.5 + k["cx"] + xd * k["f"] + xd * k["b1"] + yd * k["b2"]
            v = H * 0.5 + k["cy"] + yd * k["f"]
            pixels.append((name + ".png", W, H, *(scale * world @ p + move), u, v))
    out += ['      <camera id="5" sensor_id="0" component_id="0" label="IMG_0005"><orientation>1</orientation></camera>',
            '      <camera id="6" sensor_id="0" component_id="0" label="IMG_0006" enabled="false">',
            '        <transform>%s</transform>' % numbers(np.eye(4)), '      </camera>',
            '    </cameras>', '    <reference>LOCAL_CS["Local Coordinates (m)"]</reference>', '  </chunk>',
            '</document>']
    put("metashape", "cameras.xml", "\n".join(out) + "\n")
    put("metashape", "tie_points.ply", ply(POINTS))
    put_pixels("metashape", pixels)



def angles(matrix, axes):
    """Degrees a, b, c with turn(axes[0], a) @ turn(axes[1], b) @ turn(axes[2], c) = matrix, by Newton's method from
    many starts: nothing here depends on formulas that could share a sign error with a reader."""
    rng = np.random.default_rng(1)
    product = lambda v: turn(axes[0], v[0]) @ turn(axes[1], v[1]) @ turn(axes[2], v[2])
    while True:
        v = rng.uniform(-180, 180, 3)
        for _ in range(60):
            f = (product(v) - matrix).ravel()
            jacobian = np.stack([(product(v + d) - product(v - d)).ravel() / 2e-4 for d in np.eye(3) * 1e-4], 1)
            v = v - np.linalg.lstsq(jacobian, f, rcond=None)[0]
        if np.abs(product(v) - matrix).max() < 1e-13:
            return (v + 180) % 360 - 180


OPENGL = np.diag([1, -1, -1.0])  # a camera that looks along -z with y up


def realityscan():
    """Internal/External camera parameters, with the axes as nerfstudio's importer turns them."""
    k = dict(f=34.2, px=0.0125, py=-0.008, k1=-0.12, k2=0.05, k3=-0.02, k4=0.003, t1=0.002, t2=-0.0015)
    rows, pixels = ["#cameras 4", "#name,x,y,alt,heading,pitch,roll,f,px,py,k1,k2,k3,k4,t1,t2"], []
    for i in range(4):
        axes, centre = look(i)
        negative, pitch, roll = angles(axes @ OPENGL, "zxy")
        heading = -negative
        name = "frame_%05d.png" % i
        rows.append(",".join([name] + ["%.17g" % v for v in [*centre, heading, pitch, roll, *k.values()]]))
        camera = turn("z", -heading) @ turn("x", pitch) @ turn("y", roll)
        for p in POINTS:
            x, y, z = camera.T @ (p - centre)
            x, y = x / -z, -y / -z  # right and down
            r2 = x * x + y * y
            radial = 1 + k["k1"] * r2 + k["k2"] * r2**2 + k["k3"] * r2**3 + k["k4"] * r2**4
            xd = x * radial + 2 * k["t1"] * x * y + k["t2"] * (r2 + 2 * x * x)
            yd = y * radial + 2 * k["t2"] * x * y + k["t1"] * (r2 + 2 * y * y)
            side = max(W, H)
            pixels.append((name, W, H, *p, (k["f"] / 36 * xd + k["px"]) * side + W / 2,
                           (k["f"] / 36 * yd + k["py"]) * side + H / 2))
    put("realityscan", "cameras.csv", "\n".join(rows) + "\n")
    put("realityscan", "points.ply", ply(POINTS))
    put_pixels("realityscan", pixels)


def bundler():
    """Bundler's manual, section "Output format and scene representation"; the second photo is not registered."""
    f, k1, k2 = 60.25, -0.08, 0.03
    out, pixels, names = ["# Bundle file v0.3", "5 %d" % len(POINTS)], [], []
    for i in range(5):
        axes, centre = look(i)
        names.append("./shot_%d.png" % i + (" 0 %.2f" % f if i % 2 else ""))
        if i == 1:
            out += ["0 0 0"] * 5
            continue
        r = (axes @ OPENGL).T
        t = -r @ centre
        out += ["%.17g %.17g %.17g" % tuple(v) for v in [(f, k1, k2), *r, t]]
        for p in POINTS:
            x, y, z = r @ p + t
            x, y = -x / z, -y / z
            r2 = x * x + y * y
            radial = 1 + k1 * r2 + k2 * r2 * r2
            pixels.append(("shot_%d.png" % i, W, H, *p, W / 2 + f * radial * x, H / 2 - f * radial * y))
    for j, (p, c) in enumerate(zip(POINTS, COLOURS)):
        out += ["%.17g %.17g %.17g" % tuple(p), "%d %d %d" % tuple(c), "2 0 %d 1.5 -2.25 2 %d 0.5 3" % (j, j)]
    put("bundler", "bundle/bundle.out", "\n".join(out) + "\n")
    put("bundler", "list.txt", "\n".join(names) + "\n")
    put_pixels("bundler", pixels)


def polycam():
    """Polycam's README of polyform: the camera looks along -z with y up."""
    pixels = []
    for i in range(4):
        axes, centre = look(i)
        m = np.column_stack([axes @ OPENGL, centre])
        fx, fy, cx, cy = 58 + i, 59.5 + i, W / 2 + 0.75, H / 2 - 0.5
        stamp = "%d" % (1442008525605 + 250138 * i)
        camera = {"t_%d%d" % (r, c): m[r, c] for r in range(3) for c in range(4)}
        camera |= dict(fx=fx, fy=fy, cx=cx, cy=cy, width=W, height=H, blur_score=100.5 + i, neighbors=[])
        put("polycam", "keyframes/corrected_cameras/%s.json" % stamp, json.dumps(camera, indent=2) + "\n")
        camera |= dict(t_03=9.0, fx=1.0)
        put("polycam", "keyframes/cameras/%s.json" % stamp, json.dumps(camera, indent=2) + "\n")
        for p in POINTS:
            x, y, z = np.linalg.inv(np.vstack([m, [0, 0, 0, 1]]))[:3] @ [*p, 1]
            pixels.append((stamp + ".png", W, H, *p, cx + fx * x / -z, cy - fy * y / -z))
    put("polycam", "mesh_info.json", json.dumps({"faceCount": 0, "alignmentTransform": list(np.eye(4).ravel())}) + "\n")
    put_pixels("polycam", pixels)


def quaternion(matrix):
    """x, y, z, w of a rotation: the eigenvector of the quaternion's outer product (Bar-Itzhack 2000)."""
    m = matrix
    k = np.array([[m[0, 0] - m[1, 1] - m[2, 2], m[1, 0] + m[0, 1], m[2, 0] + m[0, 2], m[2, 1] - m[1, 2]],
                  [m[1, 0] + m[0, 1], m[1, 1] - m[0, 0] - m[2, 2], m[2, 1] + m[1, 2], m[0, 2] - m[2, 0]],
                  [m[2, 0] + m[0, 2], m[2, 1] + m[1, 2], m[2, 2] - m[0, 0] - m[1, 1], m[1, 0] - m[0, 1]],
                  [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], m[0, 0] + m[1, 1] + m[2, 2]]]) / 3
    return np.linalg.eigh(k)[1][:, -1]


def rotated(q, p):
    """p turned by the quaternion x, y, z, w."""
    v, w = q[:3], q[3]
    return p + 2 * np.cross(v, np.cross(v, p) + w * p)


def record3d():
    """Record3D's metadata: poses x y z w and position, intrinsics of each frame; photos of twice the size of w x h."""
    poses, lenses, pixels = [], [], []
    for i in range(4):
        axes, centre = look(i)
        q = quaternion(axes @ OPENGL)
        fx, fy, cx, cy = 28 + i / 2, 28.5 + i / 2, W / 4 + 0.25, H / 4 - 0.5
        poses.append([*q, *centre])
        lenses.append([fx, fy, cx, cy])
        for p in POINTS:
            x, y, z = rotated(np.array([*-q[:3], q[3]]), p - centre)
            pixels.append(("%d.png" % i, W, H, *p, 2 * (cx + fx * x / -z), 2 * (cy - fy * y / -z)))
    put("record3d", "metadata.json", json.dumps(
        {"w": W // 2, "h": H // 2, "fps": 60, "K": [28, 0, 0, 0, 28.5, 0, W / 4, H / 4, 1], "dw": 8, "dh": 6,
         "perFrameIntrinsicCoeffs": lenses, "poses": poses}) + "\n")
    put_pixels("record3d", pixels)


def opensfm():
    """OpenSfM's page "Geometric Models" (the tangential terms with the squares that its code has), pixels with the
    centre of the first at 0, to which 0.5 is added. The largest of two components counts."""
    side = max(W, H)
    cameras = {"v2 brown": dict(projection_type="brown", width=W, height=H, focal_x=0.94, focal_y=0.97, c_x=0.011,
                                c_y=-0.0075, k1=-0.1, k2=0.04, p1=0.002, p2=-0.003, k3=-0.01),
               "v2 perspective": dict(projection_type="perspective", width=W, height=H, focal=0.9, k1=-0.05, k2=0.02),
               "v2 fisheye": dict(projection_type="fisheye", width=W, height=H, focal=0.7, k1=0.03, k2=-0.01),
               "v2 opencv": dict(projection_type="fisheye_opencv", width=W, height=H, focal_x=0.7, focal_y=0.72,
                                 c_x=-0.01, c_y=0.005, k1=0.03, k2=-0.01, k3=0.004, k4=-0.001)}
    shots, pixels = {}, []
    for i, name in enumerate(["v2 brown", "v2 brown", "v2 perspective", "v2 fisheye", "v2 opencv"]):
        axes, centre = look(i)
        r = axes.T
        q = quaternion(r)
        angle = 2 * math.atan2(np.linalg.norm(q[:3]), q[3])
        t = -r @ centre
        photo = "DJI_%d.png" % i
        vector = angle * q[:3] / np.linalg.norm(q[:3])
        shots[photo] = dict(rotation=list(vector), translation=list(t), camera=name, orientation=1, capture_time=0.0,
                            gps_dop=15.0, vertices=[], faces=[])
        k = dict.fromkeys(["c_x", "c_y", "k1", "k2", "k3", "k4", "p1", "p2"], 0.0) | cameras[name]
        for p in POINTS:
            n, a = vector / angle, angle  # Rodrigues
            x, y, z = p * math.cos(a) + np.cross(n, p) * math.sin(a) + n * (n @ p) * (1 - math.cos(a)) + t
            fx, fy = k.get("focal_x", k.get("focal")), k.get("focal_y", k.get("focal"))
            if "fisheye" in name or "opencv" in name:
                rho = math.hypot(x, y)
                theta = math.atan2(rho, z)
                d = theta / rho * (1 + k["k1"] * theta**2 + k["k2"] * theta**4 + k["k3"] * theta**6 +
                                   k["k4"] * theta**8) if rho else 1 / z
                u, v = fx * d * x + k["c_x"], fy * d * y + k["c_y"]
            else:
                x, y = x / z, y / z
                r2 = x * x + y * y
                d = 1 + k["k1"] * r2 + k["k2"] * r2**2 + k["k3"] * r2**3
                u = fx * (d * x + 2 * k["p1"] * x * y + k["p2"] * (r2 + 2 * x * x)) + k["c_x"]
                v = fy * (d * y + 2 * k["p2"] * x * y + k["p1"] * (r2 + 2 * y * y)) + k["c_y"]
            pixels.append((photo, W, H, *p, side * u + (W - 1) / 2 + 0.5, side * v + (H - 1) / 2 + 0.5))
    points = {str(3 * j + 5): dict(color=[float(x) for x in c], coordinates=list(p))
              for j, (p, c) in enumerate(zip(POINTS, COLOURS))}
    small = dict(cameras=cameras, shots={"DJI_8.png": shots["DJI_0.png"]}, points={})
    put("opensfm", "reconstruction.json",
        json.dumps([small, dict(cameras=cameras, shots=shots, points=points, biases={}, rig_cameras={})], indent=1) +
        "\n")
    put_pixels("opensfm", pixels)


def opf():
    """The specification of OPF 1.0, and pyopf's compute_reprojection_error.py for the lens."""
    sensor = 2**64 - 1
    k = dict(type="perspective", principal_point_px=[W / 2 + 0.75, H / 2 - 1.25], focal_length_px=61.5,
             radial_distortion=[-0.1, 0.04, -0.01], tangential_distortion=[0.003, -0.002])
    cameras, photos, pixels = [], [], []
    for i in range(4):
        axes, centre = look(i)
        opk = angles(axes @ OPENGL, "xyz")
        cameras.append(dict(id=i, sensor_id=sensor, orientation_deg=list(opk), position=list(centre)))
        name = "IMG_%d.png" % i
        photos.append(dict(id=i, uri=["file:///c:/data/my%20photos/" + name, "my%20photos/" + name][i % 2]))
        camera = turn("x", opk[0]) @ turn("y", opk[1]) @ turn("z", opk[2])
        (k1, k2, k3), (t1, t2) = k["radial_distortion"], k["tangential_distortion"]
        for p in POINTS:
            x, y, z = camera.T @ (p - centre)
            x, y = x / -z, -y / -z
            r = x * x + y * y
            dr = 1 + r * k1 + r**2 * k2 + r**3 * k3
            xd = dr * x + 2 * t1 * x * y + t2 * (r + 2 * x * x)
            yd = dr * y + 2 * t2 * x * y + t1 * (r + 2 * y * y)
            cx, cy = k["principal_point_px"]
            pixels.append((name, W, H, *p, cx + k["focal_length_px"] * xd, cy + k["focal_length_px"] * yd))
    head = lambda kind: dict(format="application/opf-%s+json" % kind, version="1.0")
    text = lambda value: json.dumps(value, indent=1) + "\n"
    resource = lambda uri, kind: dict(uri=uri, format="application/opf-%s+json" % kind)
    put("opf", "calibrated-cameras.json",
        text(head("calibrated-cameras") | dict(cameras=cameras, sensors=[dict(id=sensor, internals=k)])))
    put("opf", "camera-list.json", text(head("camera-list") | dict(cameras=photos)))
    put("opf", "input-cameras.json", text(head("input-cameras") | dict(captures=[], sensors=[
        dict(id=sensor, name="any", bands=[], image_size_px=[W, H], pixel_size_um=2.4, internals=k,
             shutter_type="global")])))
    item = lambda kind, *resources: dict(id=kind, type=kind, resources=list(resources), sources=[])
    put("opf", "small.opf", text(head("project") | dict(
        id="caa7754e", name="small", description="", generator=dict(name="posefixtures", version="1"), items=[
            item("camera_list", resource("camera-list.json", "camera-list")),
            item("input_cameras", resource("input-cameras.json", "input-cameras")),
            item("calibration", resource("calibrated-cameras.json", "calibrated-cameras"),
                 dict(uri="tracks/tracks.gltf", format="model/gltf+json"),
                 dict(uri="tracks/positions.bin", format="application/gltf-buffer+bin"),
                 dict(uri="tracks/colors.bin", format="application/gltf-buffer+bin"))])))
    # Positions are those of the world, moved; the node moves them back and turns z up into glTF's y up.
    move = np.array([1.0, -2, 3])
    z_to_y = np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0.0]])
    node = np.eye(4)
    node[:3, :3], node[:3, 3] = z_to_y, z_to_y @ -move
    stored = (POINTS + move).astype("<f4")
    put("opf", "tracks/positions.bin", stored.tobytes())
    put("opf", "tracks/colors.bin", np.column_stack([COLOURS, np.full(len(POINTS), 255)]).astype("u1").tobytes())
    put("opf", "tracks/tracks.gltf", text(dict(
        asset=dict(version="2.0"), scene=0, scenes=[dict(nodes=[0])],
        nodes=[dict(mesh=0, matrix=list(node.T.ravel()))],
        meshes=[dict(primitives=[dict(mode=0, attributes=dict(POSITION=0, COLOR_0=1))])],
        accessors=[dict(bufferView=0, byteOffset=0, componentType=5126, count=len(POINTS), type="VEC3"),
                   dict(bufferView=1, byteOffset=0, componentType=5121, normalized=True, count=len(POINTS), type="VEC4")],
        bufferViews=[dict(buffer=0, byteOffset=0, byteLength=stored.nbytes),
                     dict(buffer=1, byteOffset=0, byteLength=4 * len(POINTS))],
        buffers=[dict(uri="positions.bin", byteLength=stored.nbytes),
                 dict(uri="colors.bin", byteLength=4 * len(POINTS))])))
    put_pixels("opf", pixels)


def llff():
    """LLFF's README, section "Using your own poses": rows of a matrix from camera to world [R | t | (h, w, f)], whose
    columns are down, right, backwards, and two depths. Photos of half of h x w, named so that capitals sort first."""
    rows, pixels = [], []
    for i, name in enumerate(["B.png", "IMG_10.png", "IMG_2.png", "a.png"]):
        axes, centre = look(i)
        matrix = np.column_stack([axes[:, 1], axes[:, 0], -axes[:, 2], centre, [2 * H, 2 * W, 120.5 + i // 2]])
        rows.append([*matrix.ravel(), 1.5 + i, 3.25 + i])
        for p in POINTS:
            down, right, back = matrix[:, :3].T @ (p - centre)
            f = matrix[2, 4] / 2
            pixels.append((name, W, H, *p, W / 2 + f * right / -back, H / 2 + f * down / -back))
    data = io.BytesIO()
    np.save(data, np.array(rows, "<f8"))
    put("llff", "poses_bounds.npy", data.getvalue())
    put_pixels("llff", pixels)


def colmap():
    """A model as Depth Anything 3 exports it by pycolmap 3.12: sparse/0 with rigs and frames beside the three files, a
    PINHOLE for each photo, calibrated at another size than the photo's; points with one observation or none."""
    cameras, images, pixels = struct.pack("<Q", 4), struct.pack("<Q", 4), []
    rigs, frames = struct.pack("<Q", 4), struct.pack("<Q", 4)
    for i in range(4):
        axes, centre = look(i)
        r, t = axes.T, -axes.T @ centre
        q = quaternion(r)
        pose = struct.pack("<7d", q[3], *q[:3], *t)
        fx, fy, cx, cy = 29 + i / 2, 29.5 + i / 2, W / 4 + 0.25, H / 4 - 0.5
        cameras += struct.pack("<IiQQ4d", i + 1, 1, W // 2, H // 2, fx, fy, cx, cy)
        seen = [(j, 1.5, 2.5) for j in range(len(POINTS)) if j % 4 == i and j != 5]
        images += struct.pack("<I", i + 1) + pose + struct.pack("<I", i + 1) + b"%04d.png\0" % i
        images += struct.pack("<Q", len(seen)) + b"".join(struct.pack("<ddq", x, y, j + 1) for j, x, y in seen)
        rigs += struct.pack("<IIiI", i + 1, 1, 0, i + 1)
        frames += struct.pack("<II", i + 1, i + 1) + pose + struct.pack("<IiIQ", 1, 0, i + 1, i + 1)
        for p in POINTS:
            x, y, z = rotated(q, p) + t
            pixels.append(("%04d.png" % i, W, H, *p, 2 * (fx * x / z + cx), 2 * (fy * y / z + cy)))
    points = struct.pack("<Q", len(POINTS))
    for j, (p, c) in enumerate(zip(POINTS, COLOURS)):
        track = [] if j == 5 else [(j % 4 + 1, j // 4)]
        points += struct.pack("<Q3d3BdQ", j + 1, *p, *(int(x) for x in c), 0, len(track))
        points += b"".join(struct.pack("<II", *t) for t in track)
    for name, data in dict(cameras=cameras, images=images, points3D=points, rigs=rigs, frames=frames).items():
        put("colmap", "sparse/0/%s.bin" % name, data)
    put("colmap", "sparse/0/project.ini", "[General]\ndatabase_path=database.db\nimage_path=../../images\n")
    put("colmap", "sparse/0/points3D.ply", ply(POINTS))
    put_pixels("colmap", pixels)


for write in [metashape, realityscan, bundler, polycam, record3d, opensfm, opf, llff, colmap]:
    write()
