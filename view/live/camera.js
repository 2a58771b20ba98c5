// A free camera that turns about a point and flies. World axes are those of the training; the camera's are x right, y
// down, z forward.

const add = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => { const n = Math.hypot(...a) || 1; return a.map((x) => x / n); };

// Turns a about the unit vector `axis`.
const turn = (a, axis, angle) => {
    const c = Math.cos(angle), s = Math.sin(angle);
    return add(add(a.map((x) => x * c), cross(axis, a), s), axis, dot(axis, a) * (1 - c));
};

// The steepest look, as the cosine of the angle with up: at the pole left and right have no meaning.
const STEEPEST = 0.995;

export class Camera {
    constructor(up) {
        this.up = unit(up);
        this.position = [0, 0, 0];
        this.forward = unit(cross(this.up, Math.abs(this.up[0]) < 0.9 ? [1, 0, 0] : [0, 1, 0]));
        this.distance = 1;
        this.tangent = 0.6;
    }

    // Takes over the pose of a photo's camera. Its roll is lost.
    pose(photo) {
        this.position = [...photo.position];
        this.look(unit(photo.rotation.slice(6)));
        this.tangent = photo.tangent;
    }

    look(forward) {
        const rise = dot(forward, this.up);
        if (Math.abs(rise) > STEEPEST) {
            const level = unit(add(forward, this.up, -rise));
            const flat = Math.sqrt(1 - STEEPEST * STEEPEST);
            forward = add(level.map((x) => x * flat), this.up, Math.sign(rise) * STEEPEST);
        }
        this.forward = unit(forward);
    }

    get right() { return unit(cross(this.forward, this.up)); }
    get down() { return cross(this.forward, this.right); }

    // Turns about what is looked at.
    orbit(yaw, pitch) {
        const target = add(this.position, this.forward, this.distance);
        this.look(turn(turn(this.forward, this.up, -yaw), this.right, -pitch));
        this.position = add(target, this.forward, -this.distance);
    }

    // Moves in the picture's plane, in parts of its height.
    pan(x, y) {
        const reach = 2 * this.tangent * this.distance;
        this.position = add(add(this.position, this.right, -x * reach), this.down, -y * reach);
    }

    // Comes closer by a factor.
    zoom(factor) {
        const next = Math.min(Math.max(this.distance / factor, 0.01), 1000);
        this.position = add(this.position, this.forward, this.distance - next);
        this.distance = next;
    }

    fly(right, up, forward) {
        this.position = add(add(add(this.position, this.right, right), this.up, up), this.forward, forward);
    }

    // Camera to world, x, y, z, w.
    get quaternion() {
        const x = this.right, y = this.down, z = this.forward;
        const m = [x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]];
        const trace = m[0] + m[4] + m[8];
        if (trace > 0) {
            const s = 2 * Math.sqrt(trace + 1);
            return [(m[7] - m[5]) / s, (m[2] - m[6]) / s, (m[3] - m[1]) / s, s / 4];
        }
        if (m[0] > m[4] && m[0] > m[8]) {
            const s = 2 * Math.sqrt(1 + m[0] - m[4] - m[8]);
            return [s / 4, (m[1] + m[3]) / s, (m[2] + m[6]) / s, (m[7] - m[5]) / s];
        }
        if (m[4] > m[8]) {
            const s = 2 * Math.sqrt(1 + m[4] - m[0] - m[8]);
            return [(m[1] + m[3]) / s, s / 4, (m[5] + m[7]) / s, (m[2] - m[6]) / s];
        }
        const s = 2 * Math.sqrt(1 + m[8] - m[0] - m[4]);
        return [(m[2] + m[6]) / s, (m[5] + m[7]) / s, s / 4, (m[3] - m[1]) / s];
    }
}
