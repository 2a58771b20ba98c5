// The box of an edit: where it stands, how it is drawn over the picture, and how its faces are dragged. Numbers are in
// the frame of an export, whose up is -y once it is chosen.

const add = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];

const NEAR = 0.01;     // what is nearer is not drawn
const REACH = 22;      // px around a handle, for fingers
const axisNames = ['x', 'y', 'z'];

// Where a camera shows a point of its frame: px in a rectangle, and the depth.
export const project = (camera, r, p) => {
    const d = add(p, camera.position, -1), z = dot(d, camera.forward);
    const f = r.height / 2 / camera.tangent / Math.max(z, NEAR);
    return [r.width / 2 + f * dot(d, camera.right), r.height / 2 + f * dot(d, camera.down), z];
};

export class Box {
    // frame is where the camera's lies to the file's.
    constructor(frame) {
        this.frame = frame;
        this.axes = [1, 0, 0, 0, 1, 0, 0, 0, 1]; // of an export in the file, rows
        this.middle = [0, 0, 0];
        this.half = [1, 1, 1];
        this.turn = 0; // degrees about y
    }

    // Numbers are as short as a thousandth of the box allows.
    get step() { return 10 ** (Math.floor(Math.log10(Math.max(...this.half, 1e-6) * 2)) - 3); }

    get numbers() {
        const round = (x) => Number((Math.round(x / this.step) * this.step).toPrecision(12));
        return [-1, 1].flatMap((side) => this.middle.map((m, k) => round(m + side * this.half[k])));
    }

    set numbers(v) {
        this.middle = [0, 1, 2].map((k) => (v[k] + v[3 + k]) / 2);
        this.half = [0, 1, 2].map((k) => Math.abs(v[3 + k] - v[k]) / 2);
    }

    // Puts the box around what is there, with some room.
    fit(numbers) {
        this.numbers = numbers;
        const least = Math.max(...this.half, 1e-3) / 1000;
        this.half = this.half.map((h) => Math.max(1.1 * h, least));
        this.turn = 0;
    }

    // A direction of the box itself, turned.
    direction([x, y, z]) {
        const c = Math.cos(this.turn * Math.PI / 180), s = Math.sin(this.turn * Math.PI / 180);
        return [c * x + s * z, y, c * z - s * x];
    }

    // A direction of an export in the camera's frame, and back; lengths are the camera's.
    out(v) {
        const row = (i) => this.axes[i] * v[0] + this.axes[3 + i] * v[1] + this.axes[6 + i] * v[2];
        return [0, 1, 2].map((i) => this.frame.scale * row(i));
    }

    back(v) { return [0, 1, 2].map((i) => dot(this.axes.slice(3 * i, 3 * i + 3), v) / this.frame.scale); }

    // The place of a corner, or of a face's middle: each number is -1, 0 or 1.
    at(corner) {
        const p = add(this.middle, this.direction(corner.map((s, k) => s * this.half[k])));
        return add(this.out(p), this.frame.center, -this.frame.scale);
    }

    // Handles: of the faces, and of the middle.
    handles() {
        const list = [{ corner: [0, 0, 0], axis: -1 }];
        for (let axis = 0; axis < 3; axis++) {
            for (const side of [-1, 1]) {
                const corner = [0, 0, 0];
                corner[axis] = side;
                list.push({ corner, axis, side });
            }
        }
        return list;
    }

    // The handle under a finger.
    grab(camera, r, x, y) {
        let best = null, least = REACH;
        for (const h of this.handles()) {
            const [px, py, z] = project(camera, r, this.at(h.corner));
            const d = Math.hypot(px - x, py - y) + (h.axis < 0 ? REACH / 3 : 0);
            if (z > NEAR && d < least) {
                [best, least] = [h, d];
            }
        }
        return best;
    }

    // Moves a handle by px.
    drag(camera, r, h, dx, dy) {
        const here = this.at(h.corner), [x, y, z] = project(camera, r, here);
        if (h.axis < 0) {
            const unit = 2 * camera.tangent * z / r.height;
            const by = add(camera.right.map((v) => v * dx * unit), camera.down, dy * unit);
            this.middle = add(this.middle, this.back(by));
            return;
        }
        const along = [0, 0, 0];
        along[h.axis] = h.side;
        const way = this.direction(along), some = 0.01 * Math.max(...this.half);
        const [tx, ty] = project(camera, r, add(here, this.out(way), some));
        const vx = tx - x, vy = ty - y, length = vx * vx + vy * vy;
        if (length < 1e-3) {
            return; // seen from its end
        }
        const by = Math.max(some * (dx * vx + dy * vy) / length, -1.98 * this.half[h.axis]);
        this.half[h.axis] += by / 2;
        this.middle = add(this.middle, way, by / 2);
    }

    draw(g, camera, r, held) {
        const line = (from, to) => {
            let a = project(camera, r, this.at(from)), b = project(camera, r, this.at(to));
            if (a[2] <= NEAR && b[2] <= NEAR) {
                return;
            }
            if (a[2] <= NEAR || b[2] <= NEAR) { // one end is behind the camera
                const t = (2 * NEAR - a[2]) / (b[2] - a[2]), p = this.at(from), q = this.at(to);
                const cut = project(camera, r, add(p, add(q, p, -1), t));
                [a, b] = a[2] <= NEAR ? [cut, b] : [a, cut];
            }
            g.moveTo(a[0], a[1]);
            g.lineTo(b[0], b[1]);
        };
        for (const [colour, width] of [['#000a', 4], ['#ffd24a', 1.8]]) {
            g.strokeStyle = colour;
            g.lineWidth = width;
            g.beginPath();
            for (let axis = 0; axis < 3; axis++) {
                for (const [u, v] of [[-1, -1], [-1, 1], [1, -1], [1, 1]]) {
                    const end = (side) => { const c = [u, v]; c.splice(axis, 0, side); return c; };
                    line(end(-1), end(1));
                }
            }
            g.stroke();
        }
        g.font = '11px system-ui, sans-serif';
        g.textAlign = 'center';
        g.textBaseline = 'middle';
        for (const h of this.handles()) {
            const [x, y, z] = project(camera, r, this.at(h.corner));
            if (z <= NEAR) {
                continue;
            }
            const is = held && held.axis === h.axis && held.side === h.side;
            g.fillStyle = h.axis < 0 ? '#fff' : is ? '#fff' : '#ffd24a';
            g.strokeStyle = '#000';
            g.lineWidth = 1;
            g.beginPath();
            g.arc(x, y, h.axis < 0 ? 5 : 9, 0, 2 * Math.PI);
            g.fill();
            g.stroke();
            if (h.axis >= 0) {
                g.fillStyle = '#000';
                g.fillText(axisNames[h.axis], x, y);
            }
        }
    }
}
