import { Box } from './box.js';
import { Brush } from './paint.js';

// Editing on the page of a finished model (view/edit.go): tools, what hands do with them, and what is asked of vksplat,
// which keeps the operations and draws what is left.

const element = (id) => document.getElementById(id);
const count = (n) => n.toLocaleString('en');

const post = async (name, body) => {
    const headers = { 'Content-Type': 'application/json' };
    const answer = await fetch(name, { method: 'POST', headers, body: JSON.stringify(body) });
    const said = await answer.json().catch(() => ({}));
    if (!answer.ok) {
        throw new Error([said.error || 'vksplat does not respond', said.hint].filter(Boolean).join(' — '));
    }
    return said;
};

export class Editor {
    // page: scene, camera, rect(), view(), look(), note(text), free(), opened(open).
    constructor(page) {
        this.page = page;
        this.state = { version: -1 };
        this.box = new Box(page.scene.edit.frame);
        this.brush = new Brush();
        this.tool = 'look';
        this.hand = null; // { what: 'face' or 'stroke', id of the pointer, ... }
        this.places = null; // of the floor, while they are clicked
        document.body.classList.add('edit');
        this.fillFaces();
        this.listen();
        this.told(page.scene.edit.state);
        this.choose('look');
    }

    get painting() { return this.tool === 'brush' && !this.places; }

    // ---- what vksplat says

    told(s) {
        if (s.version <= this.state.version) {
            return;
        }
        const before = this.state;
        this.state = s;
        element('left').textContent = s.splats === s.of ? `${count(s.of)} splats`
            : `${count(s.splats)} of ${count(s.of)} splats are left`;
        element('doing').textContent = `${count(s.splats)} splats`;
        element('undo').disabled = element('reset').disabled = !s.done;
        element('redo').disabled = !s.undone;
        if (String(before.up) !== String(s.up)) {
            this.page.camera.up = [...s.up];
            this.page.camera.look(this.page.camera.forward);
            this.box.axes = s.axes;
            this.fit();
            this.page.look();
        }
        this.showExport(s, before);
        document.body.dataset.edits = String(s.version);
    }

    showExport(s, before) {
        if (before.name !== s.name && (!before.name || element('name').value === before.name)) {
            element('name').value = s.name;
        }
        const { state, text } = s.export;
        const begins = { writing: 'Being written: ', saved: 'Written: ', failed: 'Not written: ' };
        element('exported').textContent = state && begins[state] + text;
        element('exported').hidden = !state;
        element('exported').classList.toggle('bad', state === 'failed');
        element('download').hidden = !s.file;
        const link = element('download').firstElementChild;
        link.href = `exported/${encodeURIComponent(s.file)}`;
        link.download = s.file;
        link.textContent = `Download ${s.file}`;
        element('export').disabled = state === 'writing';
    }

    async ask(body, name = 'edit') {
        try {
            this.told(await post(name, body));
            this.page.note('');
        } catch (err) {
            this.page.note(err.message);
        }
    }

    // ---- tools

    choose(tool) {
        this.tool = tool;
        this.places = null;
        this.hand = null;
        this.brush.path = [];
        this.brush.over = null;
        for (const b of element('tools').querySelectorAll('[data-tool]')) {
            b.setAttribute('aria-pressed', String(b.dataset.tool === tool));
        }
        element('boxed').hidden = tool !== 'box';
        element('brushed').hidden = tool !== 'brush';
        document.body.classList.toggle('painting', tool === 'brush');
        document.body.classList.remove('placing');
        if (tool === 'box') {
            this.page.free(); // the box is drawn for a camera without a lens of its own
            this.page.opened(true);
        }
        this.draw();
    }

    fit() {
        this.box.fit(this.state.box);
        this.showBox();
    }

    fillFaces() {
        this.faces = [];
        for (const axis of ['x', 'y', 'z']) {
            const line = document.createElement('div');
            line.className = 'line';
            line.append(axis);
            for (const end of ['least', 'greatest']) {
                const input = document.createElement('input');
                input.type = 'number';
                input.setAttribute('aria-label', `${end} ${axis}`);
                input.onchange = () => this.typed();
                this.faces.push(input);
                line.append(input);
            }
            element('faces').append(line);
        }
    }

    // Inputs are least and greatest of each axis; boxes have all the least first.
    typed() {
        const v = this.faces.map((f) => Number(f.value)), numbers = [0, 2, 4, 1, 3, 5].map((i) => v[i]);
        if (v.every(Number.isFinite) && [0, 1, 2].every((k) => numbers[k] <= numbers[3 + k])) {
            this.box.numbers = numbers;
        }
        this.showBox();
    }

    showBox() {
        const numbers = this.box.numbers;
        [0, 3, 1, 4, 2, 5].forEach((at, i) => {
            this.faces[i].value = String(numbers[at]);
            this.faces[i].step = String(Number(this.box.step.toPrecision(1)));
        });
        element('turn').value = String(this.box.turn);
        element('degrees').textContent = `${this.box.turn}°`;
        this.draw();
    }

    crop(keep) { return this.ask({ do: 'crop', keep, box: this.box.numbers, turn: this.box.turn }); }

    resize(by) {
        const input = element('radius');
        input.value = String(Number(input.value) + by);
        input.oninput();
    }

    setUp() {
        const up = element('up').value;
        if (up === 'floor') {
            this.choose('look');
            this.places = [];
            document.body.classList.add('placing');
            this.page.note('Click three places on the floor.');
            this.page.opened(window.innerWidth > 700);
            return;
        }
        this.ask(up === 'view' ? { do: 'up', up, view: this.page.view() } : { do: 'up', up });
    }

    listen() {
        for (const b of element('tools').querySelectorAll('[data-tool]')) {
            b.onclick = () => this.choose(b.dataset.tool);
        }
        element('undo').onclick = () => this.ask({ do: 'undo' });
        element('redo').onclick = () => this.ask({ do: 'redo' });
        element('reset').onclick = () => this.ask({ do: 'reset' });
        element('inside').onclick = () => this.crop('inside');
        element('outside').onclick = () => this.crop('outside');
        element('fit').onclick = () => this.fit();
        element('turn').oninput = () => {
            this.box.turn = Number(element('turn').value);
            this.showBox();
        };
        element('radius').oninput = () => {
            this.brush.radius = 10 ** Number(element('radius').value);
            this.draw();
        };
        element('upright').onclick = () => this.setUp();
        element('export').onclick = () => this.ask({ name: element('name').value, format: element('format').value },
            'export');
        element('up').querySelector('[value=photos]').hidden = !this.page.scene.cameras.length;
        element('stage').addEventListener('pointerleave', () => {
            this.brush.over = null;
            this.draw();
        });
        element('up').value = this.page.scene.cameras.length ? 'photos' : 'view';
        element('format').replaceChildren(...this.page.scene.edit.formats.map((f) => new Option(f.ending, f.name)));
        element('folder').textContent = `A new file in ${this.page.scene.edit.folder}`;
    }

    // ---- hands: each says whether it was meant for a tool

    at(e) {
        const r = this.page.rect();
        return [r, e.clientX - r.left, e.clientY - r.top];
    }

    down(e, fingers) {
        const [r, x, y] = this.at(e);
        if (fingers > 1) {
            this.drop();
            return false;
        }
        if (e.button !== 0 || x < 0 || y < 0 || x > r.width || y > r.height) {
            return false;
        }
        if (this.places) {
            this.place(x / r.width, y / r.height);
            this.hand = { what: 'place', id: e.pointerId };
        } else if (this.tool === 'box') {
            const face = this.box.grab(this.page.camera, r, x, y);
            this.hand = face && { what: 'face', id: e.pointerId, face, x, y };
        } else if (this.painting) {
            this.brush.begin(r, x, y);
            this.hand = { what: 'stroke', id: e.pointerId };
        }
        this.draw();
        return Boolean(this.hand);
    }

    move(e) {
        const [r, x, y] = this.at(e);
        if (this.painting && e.pointerType === 'mouse') {
            this.brush.over = [x, y];
            this.draw();
        }
        const hand = this.hand;
        if (!hand || hand.id !== e.pointerId) {
            return false;
        }
        if (hand.what === 'face') {
            this.box.drag(this.page.camera, r, hand.face, x - hand.x, y - hand.y);
            Object.assign(hand, { x, y });
            this.showBox();
        } else if (hand.what === 'stroke') {
            if (!this.brush.add(r, x, y)) {
                this.up(e);
            }
            this.draw();
        }
        return true;
    }

    up(e) {
        const hand = this.hand;
        if (!hand || hand.id !== e.pointerId) {
            return;
        }
        if (hand.what === 'stroke' && this.brush.path.length) {
            const { path, radius } = this.brush;
            this.ask({ do: 'brush', view: this.page.view(), path, radius, through: element('through').checked });
        }
        this.drop();
    }

    // What a hand began is not done.
    drop() {
        this.hand = null;
        this.brush.path = [];
        this.draw();
    }

    place(x, y) {
        this.places.push([x, y]);
        if (this.places.length < 3) {
            return;
        }
        const path = this.places;
        this.choose('look');
        this.ask({ do: 'floor', view: this.page.view(), path });
    }

    key(e) {
        if ((e.ctrlKey || e.metaKey) && e.code === 'KeyZ' && !e.altKey) {
            e.preventDefault();
            this.ask({ do: e.shiftKey ? 'redo' : 'undo' });
            return true;
        }
        if (e.ctrlKey || e.metaKey || e.altKey) {
            return false;
        }
        const tool = { KeyB: 'box', KeyD: 'brush', Escape: 'look' }[e.code];
        if (tool) {
            this.choose(tool);
            return true;
        }
        if (this.painting && (e.key === '[' || e.key === ']')) {
            this.resize(e.key === '[' ? -0.1 : 0.1);
            return true;
        }
        return false;
    }

    // ---- over the picture

    draw() {
        const canvas = element('overlay'), r = this.page.rect(), scale = window.devicePixelRatio || 1;
        for (const k of ['left', 'top', 'width', 'height']) {
            canvas.style[k] = `${r[k]}px`;
        }
        const [width, height] = [r.width, r.height].map((n) => Math.max(1, Math.round(n * scale)));
        if (canvas.width !== width || canvas.height !== height) {
            [canvas.width, canvas.height] = [width, height];
        }
        const g = canvas.getContext('2d');
        g.setTransform(scale, 0, 0, scale, 0, 0);
        g.clearRect(0, 0, r.width + 1, r.height + 1);
        // Chromium may go on showing what a canvas that is only cleared showed before.
        canvas.hidden = this.tool !== 'box' && !(this.painting && this.brush.visible) && !(this.places || []).length;
        if (this.tool === 'box') {
            this.box.draw(g, this.page.camera, r, this.hand && this.hand.face);
        } else if (this.painting) {
            this.brush.draw(g, r);
        }
        for (const [x, y] of this.places || []) {
            g.fillStyle = '#ffd24a';
            g.beginPath();
            g.arc(x * r.width, y * r.height, 5, 0, 2 * Math.PI);
            g.fill();
        }
    }
}
