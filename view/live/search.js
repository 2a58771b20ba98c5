import { Camera } from './camera.js';
import { project } from './box.js';

// The page of a search for cameras. It asks now and then how far that is, and draws the cameras and points that are
// found. When the training begins, the server has another page at this address.

const EVERY = 500;  // ms between two questions
const POINT = 15;   // bytes: x, y, z as float32, and red, green, blue
const FRUSTUM = 0.04; // length of a camera that is drawn, in distances of the eye from the middle

const element = (id) => document.getElementById(id);
const stage = element('stage'), picture = element('picture');
const camera = new Camera([0, -1, 0]);
let model = null;     // the newest
let points = [];      // of it
let version = 0;
let steered = false;  // by the user: the camera stays where it is

const seconds = (s) => {
    if (s >= 3600) {
        return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
    }
    return s >= 60 ? `${Math.floor(s / 60)} min ${Math.round(s) % 60} s` : `${Math.round(s)} s`;
};

// ---- what is drawn

const unpacked = (text) => {
    const bytes = Uint8Array.from(atob(text || ''), (c) => c.charCodeAt(0)), data = new DataView(bytes.buffer);
    return Array.from({ length: bytes.length / POINT }, (_, i) => {
        const at = i * POINT;
        return { at: [0, 4, 8].map((k) => data.getFloat32(at + k, true)), colour: bytes.slice(at + 12, at + 15) };
    });
};

// Draws points as squares, the nearest in front, and cameras as pyramids over them.
const draw = () => {
    const r = picture.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
    const size = { width: Math.round(r.width * scale), height: Math.round(r.height * scale) };
    [picture.width, picture.height] = [size.width, size.height];
    if (!model || !size.width || !size.height) {
        return;
    }
    const g = picture.getContext('2d');
    drawPoints(g, size, Math.max(2, Math.round(1.5 * scale)));
    g.lineWidth = 1.2 * scale;
    g.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue('--accent').trim();
    const length = FRUSTUM * Math.hypot(...model.eye.map((x, k) => x - model.middle[k]));
    for (const c of model.cameras || []) {
        drawCamera(g, size, c, length);
    }
};

const drawPoints = (g, { width, height }, side) => {
    const image = g.createImageData(width, height), pixels = image.data;
    const depth = new Float32Array(width * height).fill(Infinity);
    for (const p of points) {
        const [px, py, z] = project(camera, { width, height }, p.at);
        const x = Math.round(px), y = Math.round(py);
        if (z <= 0 || x < 0 || y < 0 || x + side > width || y + side > height) {
            continue;
        }
        for (let k = 0; k < side * side; k++) {
            const at = (y + Math.floor(k / side)) * width + x + k % side;
            if (z < depth[at]) {
                depth[at] = z;
                pixels.set(p.colour, 4 * at);
                pixels[4 * at + 3] = 255;
            }
        }
    }
    g.putImageData(image, 0, 0);
};

const drawCamera = (g, size, c, length) => {
    const high = c.tangent * length, wide = high * c.width / c.height;
    const world = (v) => [0, 1, 2].map((k) => c.position[k] +
        v[0] * c.rotation[k] + v[1] * c.rotation[3 + k] + v[2] * c.rotation[6 + k]);
    const seen = [[0, 0, 0], [-wide, -high, length], [wide, -high, length], [wide, high, length],
        [-wide, high, length]].map((v) => project(camera, size, world(v)));
    if (seen.some(([, , z]) => z <= 0)) {
        return;
    }
    g.beginPath();
    for (let k = 1; k < 5; k++) {
        for (const p of [seen[0], seen[k], seen[k % 4 + 1]]) {
            (p === seen[0] ? g.moveTo(p[0], p[1]) : g.lineTo(p[0], p[1]));
        }
    }
    g.stroke();
};

let asked = 0; // animation frame, or 0
const look = () => {
    asked = asked || requestAnimationFrame(() => {
        asked = 0;
        draw();
    });
};

const show = (m) => {
    model = m;
    points = unpacked(m.points);
    if (!steered) {
        const ahead = m.middle.map((x, k) => x - m.eye[k]);
        camera.up = m.up;
        camera.position = m.eye;
        camera.distance = Math.hypot(...ahead);
        camera.look(ahead.map((x) => x / camera.distance));
    }
    document.body.dataset.cameras = String((m.cameras || []).length);
    document.body.dataset.points = String(points.length);
    look();
};

// ---- how far it is

const row = (s) => {
    const li = document.createElement('li'), name = document.createElement('b');
    name.textContent = s.stage;
    li.classList.toggle('done', Boolean(s.done));
    li.append(name, ` ${s.text || ''}`);
    return li;
};

const told = (m) => {
    const s = m.stages && m.stages[m.stages.length - 1];
    if (s) {
        element('doing').textContent = s.stage;
        element('numbers').textContent = s.done || s.eta_s === null ? s.text : `${s.text}, ${seconds(s.eta_s)} left`;
        if (s.total) {
            element('progress').value = s.step / s.total;
        } else {
            element('progress').removeAttribute('value');
        }
        element('progress').hidden = Boolean(s.done);
        element('stages').replaceChildren(...m.stages.map(row));
    }
    if (m.model) {
        version = m.version;
        show(m.model);
    }
    if (m.end) {
        element('doing').textContent = 'ended';
        element('numbers').textContent = '';
        element('progress').hidden = true;
        element('end').textContent = m.end;
        element('end').hidden = false;
    }
    return !m.end;
};

const note = (text) => {
    element('note').textContent = text;
    element('note').hidden = !text;
};

const poll = async () => {
    let more = true;
    try {
        const answer = await fetch(`search?version=${version}`);
        if (!answer.ok) {
            throw new Error(answer.statusText);
        }
        const m = await answer.json();
        if (m.trains) {
            location.reload();
            return;
        }
        note('');
        more = told(m);
    } catch {
        note('Lost the connection to vksplat: it may have ended.');
    }
    if (more) {
        setTimeout(poll, EVERY);
    }
};

// ---- hands

const pointers = new Map();
stage.addEventListener('pointerdown', (e) => {
    stage.setPointerCapture(e.pointerId);
    pointers.set(e.pointerId, e);
});
stage.addEventListener('pointermove', (e) => {
    const before = pointers.get(e.pointerId);
    if (!before) {
        return;
    }
    const h = window.innerHeight, dx = (e.clientX - before.clientX) / h, dy = (e.clientY - before.clientY) / h;
    const other = [...pointers.values()].find((p) => p.pointerId !== e.pointerId);
    if (other) {
        const apart = (p) => Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY) || 1;
        camera.zoom(apart(e) / apart(before));
        camera.pan(dx / 2, dy / 2);
    } else if (e.shiftKey || e.buttons & 6) {
        camera.pan(dx, dy);
    } else {
        camera.orbit(3 * dx, 3 * dy);
    }
    pointers.set(e.pointerId, e);
    steered = true;
    look();
});
for (const name of ['pointerup', 'pointercancel']) {
    stage.addEventListener(name, (e) => pointers.delete(e.pointerId));
}
stage.addEventListener('contextmenu', (e) => e.preventDefault());
stage.addEventListener('wheel', (e) => {
    e.preventDefault();
    camera.zoom(Math.exp(-Math.max(-100, Math.min(100, e.deltaY)) / 400));
    steered = true;
    look();
}, { passive: false });
window.addEventListener('resize', look);
window.matchMedia('(prefers-color-scheme: light)').addEventListener('change', look);
element('back').hidden = !new URLSearchParams(location.search).has('desk'); // vksplat open leads here
poll();
