import { Camera } from './camera.js';
import { draw } from './curves.js';

// The page of a training, or of a finished model. It asks for pictures of what its camera sees, and gets how the
// training goes, over one WebSocket (view/watch.go).

const scene = JSON.parse(document.getElementById('scene').textContent);
const element = (id) => document.getElementById(id);
const stage = element('stage'), picture = element('picture'), photo = element('photo'), share = element('share');

const camera = new Camera(scene.up);
let chosen = scene.cameras.length ? 0 : -1; // photo whose camera is looked through; -1: the free camera
let mode = 'picture';
let moving = 0;         // until when the camera counts as moving, ms
let shownSize = [16, 16];
let status = { paused: false };
let socket = null;
let over = false;       // the training has ended
const finished = Boolean(scene.splats); // a model: no training is running
let editor = null;      // of a model that is edited

if (chosen >= 0 || finished) {
    camera.pose(scene.cameras[chosen] || scene.start);
}

// ---- the connection

const ask = (what) => {
    if (socket && socket.readyState === WebSocket.OPEN) {
        socket.send(JSON.stringify(what));
    }
};

let connected = 0; // times
const connect = () => {
    const url = new URL('watch', location.href);
    url.protocol = url.protocol.replace('http', 'ws');
    url.search = '';
    socket = new WebSocket(url);
    socket.binaryType = 'blob';
    socket.onopen = () => {
        connected++;
        note('');
        if (finished) {
            document.body.dataset.connected = 'true';
            const splats = editor ? editor.state.splats : scene.splats;
            element('doing').textContent = `${splats.toLocaleString('en')} splats`;
        }
        look();
    };
    socket.onmessage = ({ data }) => (typeof data === 'string' ? told(JSON.parse(data)) : drawn(data));
    socket.onclose = ({ reason }) => {
        document.body.dataset.connected = 'false';
        if (over) {
            return; // showEnd has said it
        }
        element('doing').textContent = 'not connected';
        note(reason ||
            (connected ? 'Lost the connection to vksplat: it may have ended.' : 'vksplat does not respond.'));
        setTimeout(connect, 2000);
    };
};

const note = (text) => {
    element('note').textContent = text;
    element('note').hidden = !text;
};

// ---- pictures

// The largest rectangle of a shape in the part of the window that the panel leaves free.
const place = (aspect) => {
    const top = 48, open = document.body.classList.contains('open'), narrow = window.innerWidth <= 700;
    const width = window.innerWidth - (open && !narrow ? 330 : 0);
    const height = window.innerHeight - top - (open && narrow ? 0.45 * window.innerHeight : 0);
    const w = aspect ? Math.min(width, height * aspect) : width, h = aspect ? w / aspect : height;
    return { left: (width - w) / 2, top: top + (height - h) / 2, width: w, height: h };
};

const spread = (e, r) => {
    for (const side of ['left', 'top', 'width', 'height']) {
        e.style[side] = `${r[side]}px`;
    }
};

const rect = () => {
    const c = scene.cameras[chosen];
    return place(c ? c.width / c.height : 0);
};

const layout = () => {
    const r = rect();
    spread(picture, r);
    spread(photo, r);
    if (editor) {
        editor.draw();
    }
    return r;
};

let asked = 0; // animation frame, or 0
const look = () => {
    asked = asked || requestAnimationFrame(() => {
        asked = 0;
        send();
    });
};

let still = 0;
// What the picture shows now, as vksplat wants it.
const view = (r, scale = 1) => {
    const side = (n) => Math.min(Math.max(Math.round(n * scale), 16), 2560);
    const v = { camera: chosen, width: side(r.width), height: side(r.height), mode };
    const { quaternion, position, tangent } = camera;
    return chosen < 0 ? { ...v, quaternion, position, tangent } : v;
};

const send = () => {
    const r = layout();
    const busy = performance.now() < moving;
    const scale = Math.min(window.devicePixelRatio || 1, 1.5) * (busy ? 0.5 : 1);
    const most = busy ? 960 : 1600;
    const fit = Math.min(1, most / (scale * Math.max(r.width, r.height)));
    ask({ view: { ...view(r, scale * fit), still: !busy } });
    clearTimeout(still);
    if (busy) {
        still = setTimeout(look, 250); // once more, sharp
    }
};

const drawn = async (blob) => {
    try {
        const bitmap = await createImageBitmap(blob);
        if (shownSize[0] !== bitmap.width || shownSize[1] !== bitmap.height) {
            shownSize = [picture.width, picture.height] = [bitmap.width, bitmap.height];
        }
        picture.getContext('2d').drawImage(bitmap, 0, 0);
        bitmap.close();
        document.body.dataset.frames = String(Number(document.body.dataset.frames || 0) + 1);
    } finally {
        ask({ shown: 1 });
    }
};

// ---- what is shown

const choose = (id) => {
    if (over) {
        return; // nobody draws
    }
    chosen = id;
    const c = scene.cameras[id];
    if (c) {
        camera.pose(c);
        if (!finished) {
            photo.src = `photo?camera=${id}`;
        }
        element('caption').textContent = c.name + (c.held ? ' (held out)' : '');
    } else if (mode === 'error') {
        setMode('picture');
    }
    photo.hidden = element('slider').hidden = !c || finished;
    element('caption').hidden = !c;
    for (const row of element('views').rows) {
        row.classList.toggle('chosen', Number(row.dataset.camera) === id);
    }
    element('modes').querySelector('[data-mode=error]').disabled = !c;
    slide();
    look();
};

const slide = () => { photo.style.clipPath = `inset(0 ${100 - share.value}% 0 0)`; };

const setMode = (name) => {
    mode = name;
    for (const b of element('modes').children) {
        b.setAttribute('role', 'radio');
        b.setAttribute('aria-checked', String(b.dataset.mode === name));
    }
    look();
};

const freed = () => {
    moving = performance.now() + 200;
    if (chosen >= 0) {
        choose(-1);
    }
    look();
};

const step = (by) => {
    const n = scene.cameras.length;
    if (n) {
        choose(chosen < 0 ? 0 : (chosen + by + n) % n);
    }
};

// ---- how it goes

const hms = (s) => {
    if (s >= 3600) {
        return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
    }
    return s >= 60 ? `${Math.floor(s / 60)} min ${Math.round(s) % 60} s` : `${Math.round(s)} s`;
};

const told = (m) => {
    document.body.dataset.connected = 'true';
    if (m.error) {
        note(m.error);
        setTimeout(() => note(''), 6000);
    }
    if (m.status) {
        showStatus(m.status);
    }
    if (m.edits && editor) {
        editor.told(m.edits);
    }
    if (m.history) {
        moments = m.history;
        drawCurves();
    }
    if (m.losses) {
        showLosses(m.losses);
    }
};

let moments = [];

// A panel that is closed has no room: the curves are drawn when it opens, too.
const drawCurves = () => {
    const points = (key) => moments.map((h) => [h.step, h[key]]);
    draw(element('losses'), points('loss'), true);
    draw(element('psnrs'), points('psnr'), false);
    draw(element('splats'), points('splats'), false);
    const last = moments[moments.length - 1];
    if (last) {
        element('psnr').textContent = `${last.psnr.toFixed(2)} dB`;
    }
};

const showSave = (s) => {
    const texts = {
        writing: 'A checkpoint is being written.',
        saved: `Step ${s.step.toLocaleString('en')} is saved: ${s.text}`,
        failed: `Not saved: ${s.text}`,
    };
    const e = element('saved');
    e.textContent = texts[s.state] || '';
    e.hidden = !e.textContent;
    e.classList.toggle('bad', s.state === 'failed');
};

const endings = { finished: 'Training finished.', stopped: 'Training was stopped.', failed: 'Training failed.' };

const showEnd = (end) => {
    over = true;
    element('doing').textContent = end.state;
    const e = element('end');
    const line = (text) => { const p = document.createElement('p'); p.textContent = text; return p; };
    e.replaceChildren(...[endings[end.state], end.model && `Model: ${end.model}`, end.text].filter(Boolean).map(line));
    e.hidden = false;
    note('');
    for (const b of element('panel').querySelectorAll('button')) {
        b.disabled = true;
    }
};

const showStatus = (s) => {
    status = s;
    element('doing').textContent = s.doing;
    element('progress').value = s.steps ? s.step / s.steps : 0;
    const left = s.rate > 0 && !s.end ? `, ${hms((s.steps - s.step) / s.rate)} left` : '';
    const held = s.heldStep ? `, held-out photos ${s.heldPsnr.toFixed(2)} dB at step ${s.heldStep}` : '';
    const [step, steps] = [s.step, s.steps].map((n) => n.toLocaleString('en'));
    element('numbers').textContent = `step ${step} of ${steps}, ${s.rate.toFixed(1)} steps/s${left}${held}`;
    element('loss').textContent = s.loss.toPrecision(4);
    element('count').textContent = s.splats.toLocaleString('en');
    element('pause').textContent = s.paused ? 'Resume' : 'Pause';
    showSave(s.save);
    if (s.end) {
        showEnd(s.end);
        return;
    }
    for (const id of ['pause', 'save', 'stop']) {
        element(id).disabled = s.doing !== 'training' && !s.paused;
    }
};

const showLosses = (list) => {
    const worst = list.filter((l) => l.step).sort((a, b) => b.loss - a.loss).slice(0, 200);
    element('views').replaceChildren(
        ...worst.map((l) => rowOf(l.camera, l.loss.toFixed(4), l.step.toLocaleString('en'))));
};

// A photo's row of the table.
const rowOf = (id, ...cells) => {
    const row = document.createElement('tr');
    row.dataset.camera = String(id);
    row.classList.toggle('chosen', id === chosen);
    row.tabIndex = 0;
    for (const text of [scene.cameras[id].name, ...cells]) {
        row.insertCell().textContent = text;
    }
    row.title = scene.cameras[id].name;
    return row;
};

// ---- hands

const pointers = new Map();
stage.addEventListener('pointerdown', (e) => {
    if (e.target.closest('#slider')) {
        return;
    }
    stage.setPointerCapture(e.pointerId);
    pointers.set(e.pointerId, e);
    stage.focus();
    if (editor) {
        editor.down(e, pointers.size);
    }
});
stage.addEventListener('pointermove', (e) => {
    const before = pointers.get(e.pointerId);
    if (editor && editor.move(e)) {
        pointers.set(e.pointerId, e);
        return;
    }
    if (!before) {
        return;
    }
    const h = window.innerHeight, dx = (e.clientX - before.clientX) / h, dy = (e.clientY - before.clientY) / h;
    if (!dx && !dy) {
        return;
    }
    if (pointers.size >= 2) {
        const other = [...pointers.values()].find((p) => p.pointerId !== e.pointerId);
        const apart = (p) => Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY) || 1;
        camera.zoom(apart(e) / apart(before));
        camera.pan(dx / 2, dy / 2);
    } else if (e.shiftKey || e.buttons & 6 && !(editor && editor.painting)) { // the left button paints
        camera.pan(dx, dy);
    } else {
        camera.orbit(3 * dx, 3 * dy);
    }
    pointers.set(e.pointerId, e);
    freed();
});
for (const name of ['pointerup', 'pointercancel']) {
    stage.addEventListener(name, (e) => {
        pointers.delete(e.pointerId);
        if (editor) {
            (name === 'pointerup' ? editor.up(e) : editor.drop());
        }
    });
}
stage.addEventListener('contextmenu', (e) => e.preventDefault());
stage.addEventListener('wheel', (e) => {
    e.preventDefault();
    camera.zoom(Math.exp(-Math.max(-100, Math.min(100, e.deltaY)) / 400));
    freed();
}, { passive: false });

const held = new Set();
let flying = 0;
const fly = (now) => {
    const axis = ([plus, minus]) => (held.has(plus) ? 1 : 0) - (held.has(minus) ? 1 : 0);
    if (!held.size) {
        flying = 0;
        return;
    }
    const speed = (flying ? Math.min(now - flying, 100) : 16) / 1000;
    camera.fly(...flyKeys.map((keys) => axis(keys) * speed));
    flying = now;
    freed();
    requestAnimationFrame(fly);
};
// Right and left, up and down, forward and back; the letters are tools where there are some.
const flyKeys = scene.edit ? [['ArrowRight', 'ArrowLeft'], ['PageUp', 'PageDown'], ['ArrowUp', 'ArrowDown']]
    : [['KeyD', 'KeyA'], ['KeyE', 'KeyQ'], ['KeyW', 'KeyS']];
const modes = ['picture', 'depth', 'centres', 'ellipsoids', 'error'];
window.addEventListener('keydown', (e) => {
    if (e.target.matches('select, input:not([type=range], [type=checkbox])') || editor && editor.key(e)) {
        return;
    }
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.tagName === 'INPUT') {
        return;
    }
    if (flyKeys.flat().includes(e.code)) {
        held.add(e.code);
        if (!flying) {
            requestAnimationFrame(fly);
        }
        return;
    }
    const number = Number(e.key) - 1;
    if (modes[number] && (modes[number] !== 'error' || chosen >= 0 && !finished)) {
        setMode(modes[number]);
    } else if (e.key === '[') {
        step(-1);
    } else if (e.key === ']') {
        step(1);
    } else if (e.key === 'f') {
        choose(-1);
    } else if (e.key === 'p') {
        element('pause').click();
    } else if (e.key === 'Enter' && e.target.dataset.camera) {
        choose(Number(e.target.dataset.camera));
    }
});
window.addEventListener('keyup', (e) => held.delete(e.code));
window.addEventListener('blur', () => held.clear());

// ---- buttons

element('pause').onclick = () => ask({ command: status.paused ? 'resume' : 'pause' });
element('save').onclick = () => ask({ command: 'save' });
element('stop').onclick = () => {
    if (window.confirm('Stop the training after this step? It is saved and evaluated.')) {
        ask({ command: 'stop' });
    }
};
element('before').onclick = () => step(-1);
element('next').onclick = () => step(1);
element('free').onclick = () => choose(-1);
element('modes').onclick = (e) => { if (e.target.dataset.mode) { setMode(e.target.dataset.mode); } };
element('views').onclick = (e) => {
    const row = e.target.closest('tr');
    if (row) {
        choose(Number(row.dataset.camera));
    }
};
share.oninput = slide;
const again = () => {
    drawCurves();
    look();
};
const opened = (open) => {
    document.body.classList.toggle('open', open);
    element('toggle').setAttribute('aria-expanded', String(open));
    again();
};
element('toggle').onclick = () => opened(!document.body.classList.contains('open'));
window.addEventListener('resize', again);
window.matchMedia('(prefers-color-scheme: light)').addEventListener('change', drawCurves);
opened(window.innerWidth > 700);
element('back').hidden = !new URLSearchParams(location.search).has('desk'); // vksplat open leads here
if (finished) {
    document.body.classList.add('finished');
    element('pause').disabled = true;
    element('views').replaceChildren(...scene.cameras.map((_, id) => rowOf(id)));
}
setMode('picture');
choose(chosen);
if (scene.edit) {
    const { Editor } = await import('./edit.js');
    editor = new Editor({ scene, camera, rect, look, note, opened, view: () => view(rect()), free: () => choose(-1) });
}
connect();
