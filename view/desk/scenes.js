import { about, action, bytes, count, fact, get, h, openModel, pathTo, post, presetNames, refill } from './parts.js';

const asked = () => window.dispatchEvent(new Event('asked'));

const marks = { folder: '▸', scene: '◆', footage: '▶', run: '●', model: '✦' };
const words = { folder: '', scene: 'scene', footage: 'video', run: 'run', model: 'model' };

// ---- the folder

const crumbs = (path, root) => {
    const parts = path ? path.split('/') : [];
    const links = [h('a', { href: '#/new/' }, root)];
    parts.forEach((p, i) => links.push(h('span', { 'aria-hidden': 'true' }, '/'), h('a', { href: pathTo('new', parts.slice(0, i + 1).join('/')) }, p)));
    return h('nav', { class: 'crumbs', 'aria-label': 'folder' }, links);
};

const row = (e) => {
    const inside = [h('span', { class: `mark ${e.kind}`, 'aria-hidden': 'true' }, marks[e.kind]), h('span', { class: 'name' }, e.name), h('small', {}, words[e.kind])];
    return h('a', { class: 'entry', href: pathTo(e.kind === 'run' ? 'run' : 'new', e.path) }, inside);
};

const modelRow = (e) => {
    const b = action('', () => openModel(e.path), { class: 'entry' });
    b.append(h('span', { class: 'mark model', 'aria-hidden': 'true' }, marks.model), h('span', { class: 'name' }, e.name), h('small', {}, 'open'));
    return b;
};

const listing = (l) => h('div', { class: 'list' },
    l.entries.length ? l.entries.map((e) => (e.kind === 'model' ? modelRow(e) : row(e))) : h('p', { class: 'dim' }, 'No folders in here.'),
    l.more ? h('p', { class: 'dim' }, `${l.more} more are not listed.`) : null);

// ---- the verdict

const severities = { fatal: 'error', warning: 'warning', note: 'note' };

const judgement = (report) => {
    const bad = report.problems.some((p) => p.severity === 'fatal'), doubtful = report.problems.some((p) => p.severity === 'warning');
    return bad ? ['bad', 'Cannot be trained'] : doubtful ? ['doubtful', 'Can be trained, but look at this'] : ['good', 'Ready to train'];
};

const problem = (p) => h('p', { class: severities[p.severity] || 'note' }, p.text + (p.names && p.names.length ? `: ${p.names.join(', ')}` : ''), p.remedy ? h('span', {}, p.remedy) : null);

const sizes = (list) => (list && list.length ? `${list[0].width} × ${list[0].height}${list.length > 1 ? ` and ${list.length - 1} more` : ''}` : '–');

const verdict = (c) => {
    if (!c.ready) {
        return [h('p', { class: 'wait' }, 'Looking at photos and cameras')];
    }
    if (c.error) {
        return [h('h3', { class: 'bad' }, 'Cannot be trained'), h('p', { class: 'error' }, c.error, c.hint ? h('span', {}, c.hint) : null)];
    }
    const r = c.report, [kind, text] = judgement(r);
    return [h('h3', { class: kind }, text),
        h('dl', { class: 'facts' }, fact('photos', String(r.photos), r.masks ? `${r.masks} with masks` : ''), fact('size', sizes(r.sizes)), fact('points', count(r.points)),
            fact('lens', (r.lenses || []).map((l) => l.lens.toLowerCase()).join(', ') || '–'), fact('format', r.format || '–')),
        ...r.problems.map(problem)];
};

// ---- the training

const presets = {
    default: 'Steps and splats are chosen for the capture.',
    fast: 'Nine tenths of the steps, one million splats at most.',
    mcmc: 'One million splats, moved and not grown by gradients.',
    quality: 'The same with three million splats.',
    '3dgs': 'The recipe of the paper, 30,000 steps, for comparisons.',
};
const limits = { 0: 'as long as it takes', 60: '1 minute', 300: '5 minutes', 900: '15 minutes', 3600: '1 hour' };

const need = (c) => {
    if (!c || !c.ready) {
        return h('p', { class: 'wait' }, 'Measuring this device with your photos');
    }
    if (c.error) {
        return h('p', { class: 'error' }, c.error, c.hint ? h('span', {}, c.hint) : null);
    }
    const p = c.plan, ram = p.host.process + p.host.cache + p.host.decode + p.host.readback;
    return h('dl', { class: 'facts' },
        p.prediction ? fact('takes about', about(p.prediction.seconds), `${p.prediction.steps.toLocaleString('en')} steps`) : fact('time', '–', p.busy ? 'the device is busy' : ''),
        fact('device memory', bytes(p.device.total), `of ${bytes(p.device.budget)}`), fact('RAM', bytes(ram)), fact('splats at most', count(p.ceiling)));
};

const trainCard = (path) => {
    let preset = 'default', timer = 0, gone = false;
    const costs = h('div', { class: 'costs' }), score = h('input', { type: 'checkbox', id: 'score' }), limit = h('select', { 'aria-label': 'time' }, Object.entries(limits).map(([v, t]) => h('option', { value: v }, t)));
    score.checked = true;
    const ask = async () => {
        clearTimeout(timer);
        const wanted = { path, preset };
        if (score.checked) {
            wanted.score = '1';
        }
        let c = null;
        try {
            c = await get('plan', wanted);
        } catch (err) {
            c = { ready: true, error: err.message, hint: err.hint };
        }
        if (wanted.preset !== preset || Boolean(wanted.score) !== score.checked || gone) {
            return;
        }
        refill(costs, c, () => need(c));
        if (!costs.isConnected) {
            gone = true;
        } else if (!c.ready || c.plan && c.plan.busy) {
            timer = setTimeout(ask, c.ready ? 15000 : 700);
        }
    };
    const radios = Object.entries(presets).map(([name, text]) => {
        const r = h('input', { type: 'radio', name: 'preset', value: name });
        r.checked = name === preset;
        r.onchange = () => {
            preset = name;
            refill(costs, null, () => need(null));
            ask();
        };
        return h('label', { class: 'preset' }, r, h('strong', {}, presetNames[name]), h('small', {}, text));
    });
    score.onchange = ask;
    refill(costs, null, () => need(null));
    setTimeout(ask);
    return h('section', { class: 'card' }, h('h3', {}, 'Train'), h('div', { class: 'presets' }, radios), costs,
        h('div', { class: 'row options' }, h('label', {}, score, 'hold out every 8th photo and score'), h('label', {}, 'may take ', limit)),
        h('div', { class: 'row' }, action('Start training', async () => {
            await post('train', { scene: path, preset, score: score.checked, limit: Number(limit.value), name: '' });
            asked();
            location.hash = '#/';
        }, { class: 'primary large', id: 'start' })));
};

// ---- what stands beside the listing

const aboutScene = (box, path) => {
    const said = h('section', { class: 'card verdict' });
    const form = h('div', {});
    box.append(said, form);
    const ask = async () => {
        let c = null;
        try {
            c = await get('verdict', { path });
        } catch (err) {
            c = { ready: true, error: err.message, hint: err.hint };
        }
        if (!said.isConnected && c.ready) {
            return;
        }
        refill(said, c, () => verdict(c));
        if (!c.ready) {
            setTimeout(ask, 500);
        } else if (!c.error && judgement(c.report)[0] !== 'bad') {
            form.replaceChildren(trainCard(path));
        }
    };
    refill(said, null, () => verdict({ ready: false }));
    ask();
};

const aboutFootage = (box, l) => box.append(h('section', { class: 'card' }, h('h3', {}, l.photos ? `${l.photos.toLocaleString('en')} photos or videos` : 'A video'),
    h('p', {}, 'The cameras are not known yet. COLMAP finds them, which takes minutes; you can leave this page meanwhile.'),
    h('div', { class: 'row' }, action('Find the cameras', async () => {
        await post('capture', { path: l.path });
        asked();
        location.hash = '#/';
    }, { class: 'primary large' }))));

export const newPage = (main, path) => {
    const list = h('div', {}), side = h('div', {});
    main.append(h('h1', { class: 'title' }, 'New training'), h('div', { class: 'split browse' }, h('section', { class: 'card' }, list), side));
    let root = '/';
    const fill = async () => {
        try {
            const l = await get('folder', { path });
            list.replaceChildren(crumbs(path, root), listing(l));
            if (l.kind === 'scene') {
                aboutScene(side, path);
            } else if (l.kind === 'footage') {
                aboutFootage(side, l);
            } else if (l.kind === 'run') {
                side.append(h('section', { class: 'card' }, h('h3', {}, 'A run'), h('a', { class: 'button primary', href: pathTo('run', path) }, 'Open run')));
            } else {
                side.append(h('section', { class: 'card' }, h('h3', {}, 'Choose a folder'),
                    h('p', {}, 'A folder of photos or with a video, or a scene whose cameras are known: from COLMAP, nerfstudio, instant-ngp or Blender.'),
                    h('p', { class: 'dim' }, 'Or drop photos or a video on this page.')));
            }
        } catch (err) {
            list.replaceChildren(crumbs(path, root), h('p', { class: 'error' }, err.message, err.hint ? h('span', {}, err.hint) : null));
        }
    };
    let begun = false;
    return (s) => {
        root = s.name;
        if (!begun) {
            begun = true;
            fill();
        }
    };
};
