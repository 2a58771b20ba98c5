import { about, action, asked, bytes, choice, complaint, count, fact, get, h, number, openModel, pathTo, post,
    presetNames, refill } from './parts.js';

// The page of what can be trained: a folder, and beside it what it holds.

const marks = { folder: '▸', scene: '◆', footage: '▶', run: '●', model: '✦' };
const words = { folder: '', scene: 'scene', footage: 'video', run: 'run', model: 'model' };

// What cameras are to be found of: 24 photos, 1 video.
const some = (n, thing) => (n ? `${number(n)} ${thing}${n > 1 ? 's' : ''}` : '');
const footage = (l) => [some(l.photos, 'photo'), some(l.videos, 'video')].filter(Boolean).join(' and ');

// ---- the folder

const crumbs = (path, root) => {
    const parts = path ? path.split('/') : [];
    const links = [h('a', { href: '#/new/' }, root)];
    parts.forEach((p, i) => links.push(h('span', { 'aria-hidden': 'true' }, '/'),
        h('a', { href: pathTo('new', parts.slice(0, i + 1).join('/')) }, p)));
    links.at(-1).setAttribute('aria-current', 'page');
    return h('nav', { class: 'crumbs', 'aria-label': 'folder' }, links);
};

const inside = (e, word) => [h('span', { class: `mark ${e.kind}`, 'aria-hidden': 'true' }, marks[e.kind]),
    h('span', { class: 'name' }, e.name), h('small', {}, word)];

const row = (e) => h('a', { class: 'entry', href: pathTo(e.kind === 'run' ? 'run' : 'new', e.path) },
    inside(e, footage(e) || words[e.kind]));

const modelRow = (e) => {
    const b = action('', () => openModel(e.path), { class: 'entry' });
    b.append(...inside(e, 'open'));
    return b;
};

const listing = (l) => h('div', { class: 'list' },
    l.entries.length ? l.entries.map((e) => (e.kind === 'model' ? modelRow(e) : row(e)))
        : h('p', { class: 'dim' }, 'No folders in here.'),
    l.more ? h('p', { class: 'dim' }, `${l.more} more are not listed.`) : null);

// ---- the verdict

const severities = { fatal: 'error', warning: 'warning', note: 'note' };

const judgement = (report) => {
    const has = (severity) => report.problems.some((p) => p.severity === severity);
    if (has('fatal')) {
        return ['bad', 'Cannot be trained'];
    }
    return has('warning') ? ['doubtful', 'Can be trained, with warnings'] : ['good', 'Ready to train'];
};

const problem = (p) => h('p', { class: severities[p.severity] || 'note' },
    p.text + (p.names && p.names.length ? `: ${p.names.join(', ')}` : ''), p.remedy ? h('span', {}, p.remedy) : null);

const sizes = (list) => {
    if (!list || !list.length) {
        return '–';
    }
    return `${list[0].width} × ${list[0].height}${list.length > 1 ? ` and ${list.length - 1} more` : ''}`;
};

const verdict = (c) => {
    if (!c.ready) {
        return [h('p', { class: 'wait' }, 'Checking photos and cameras')];
    }
    if (c.error) {
        return [h('h2', { class: 'bad' }, 'Cannot be trained'), complaint(c.error, c.hint)];
    }
    const r = c.report, [kind, text] = judgement(r);
    const lenses = (r.lenses || []).map((l) => l.lens.toLowerCase()).join(', ');
    return [h('h2', { class: kind }, text),
        h('dl', { class: 'facts' }, fact('photos', String(r.photos), r.masks ? `${r.masks} with masks` : ''),
            fact('size', sizes(r.sizes)), fact('points', count(r.points)), fact('lens', lenses || '–'),
            fact('format', r.format || '–')),
        ...r.problems.map(problem)];
};

// ---- the training

const presets = {
    default: 'Steps and number of splats follow the capture.',
    mcmc: 'Exactly one million splats, moved to where they are needed (MCMC).',
    quality: 'The same with three million: more detail, more memory.',
    '3dgs': 'The recipe of the 3DGS paper, 30,000 steps, for comparisons.',
};
const limits = [[0, 'no limit'], [60, '1 minute'], [300, '5 minutes'], [900, '15 minutes'], [3600, '1 hour']];

// A time for people: of more than a day nobody wants hours.
const lasts = (s) => (s > 86400 ? 'more than a day' : about(s));

const need = (c) => {
    if (!c || !c.ready) {
        return h('p', { class: 'wait' }, 'Timing this device on your photos');
    }
    if (c.error) {
        return complaint(c.error, c.hint);
    }
    const p = c.plan, ram = p.host.process + p.host.cache + p.host.decode + p.host.readback;
    const takes = p.prediction ? fact('takes about', lasts(p.prediction.seconds), `${number(p.prediction.steps)} steps`)
        : fact('time', '–', p.busy ? 'the device is busy' : '');
    return h('dl', { class: 'facts' }, takes,
        fact('device memory', bytes(p.device.total), `of ${bytes(p.device.budget)}`), fact('RAM', bytes(ram)),
        fact('splats at most', count(p.ceiling)));
};

// What a training takes, asked for again until it is known. wanted gives what is chosen, and known gets the answer.
const costsOf = (wanted, known) => {
    const box = h('div', { class: 'costs', 'aria-live': 'polite' });
    let timer = 0, last = 0;
    const ask = async () => {
        clearTimeout(timer);
        const turn = ++last;
        let c = null;
        try {
            c = await get('plan', wanted());
        } catch (err) {
            c = { ready: true, error: err.message, hint: err.hint };
        }
        if (turn !== last || !box.isConnected) {
            return;
        }
        if (c.ready && known(c)) {
            anew(); // of another size
            return;
        }
        refill(box, c, () => need(c));
        if (!c.ready || c.plan && c.plan.busy) {
            timer = setTimeout(ask, c.ready ? 15000 : 700);
        }
    };
    function anew() {
        refill(box, null, () => need(null));
        ask();
    }
    refill(box, null, () => need(null));
    setTimeout(ask);
    return { box, anew };
};

const presetChoices = (chosen, change) => Object.entries(presets).map(([name, text]) => {
    const r = h('input', { type: 'radio', name: 'preset', value: name });
    r.checked = name === chosen;
    r.onchange = () => change(name);
    return h('label', { class: 'preset' }, r, h('strong', {}, presetNames[name]), h('small', {}, text));
});

// ---- the size of photos

const patience = 1800; // seconds that a training should take at most, if nobody asks for more
const smallest = 64, wide = 1600; // pixels: of a side that shows something, and what is detail enough

// Sizes of photos to train on: by how much each is shrunk. Until a person chooses one, the largest is chosen that this
// device trains on in reasonable time. The smallest is measured first, which is quick on any device; from there on, a
// larger one as long as it will not take for ever. What is not measured lies between those that are.
const sizesOf = (full, change) => {
    const side = Math.min(full.width, full.height);
    const list = [1, 2, 4, 8].filter((n) => n === 1 || side / n >= smallest), last = list.at(-1);
    const most = list.find((n) => full.width / n <= wide) || last;
    const took = new Map(), texts = new Map();
    let now = last, chosen = false;
    const say = () => {
        for (const [n, text] of texts) {
            const less = list.find((k) => k > n && took.has(k));
            const more = list.findLast((k) => k < n && took.has(k));
            const time = took.has(n) ? lasts(took.get(n))
                : less && `over ${lasts(took.get(less))}` || more && `under ${lasts(took.get(more))}`;
            text.textContent = [`${Math.round(full.width / n)} × ${Math.round(full.height / n)}`, time].filter(Boolean)
                .join('\n');
        }
    };
    const inputs = list.map((n) => {
        const r = h('input', { type: 'radio', name: 'size', value: String(n) }), text = h('small', {});
        texts.set(n, text);
        r.onchange = () => {
            [now, chosen] = [n, true];
            change();
        };
        return [n, r, h('label', { class: 'preset' }, r, h('strong', {}, `1/${n}`), text)];
    });
    const choose = (n) => {
        now = n;
        inputs.forEach(([k, r]) => { r.checked = k === n; });
    };
    // Takes in what is known of the size that was asked for, and says whether another is to be asked for.
    const known = (c) => {
        const before = now;
        if (c.plan && c.plan.prediction) {
            took.set(now, c.plan.prediction.seconds);
        }
        say();
        if (chosen) {
            return false;
        }
        const measured = list.filter((n) => took.has(n)), good = measured.find((n) => took.get(n) <= patience);
        if (!measured.length) { // the device is busy, or nothing can be trained
            choose(most);
        } else if (!good) {
            choose(last);
        } else if (good > most) {
            const quick = took.get(good) * (good / most) ** 2 <= patience && !took.has(most);
            const next = quick ? most : list[list.indexOf(good) - 1];
            choose(took.has(next) ? good : next);
        } else {
            choose(good);
        }
        return now !== before;
    };
    const forget = () => {
        took.clear();
        if (!chosen) {
            choose(last);
        }
        say();
    };
    forget();
    const box = h('fieldset', { class: 'presets sizes' }, h('legend', {}, 'size of photos'),
        inputs.map(([, , label]) => label));
    return { box, known, forget, size: () => String(now) };
};

const trainCard = (path, full) => {
    let preset = 'default';
    const score = h('input', { type: 'checkbox', id: 'score' }), limit = choice(limits, 'time limit');
    const name = h('input', { type: 'text', id: 'name', maxlength: '120', autocomplete: 'off', spellcheck: 'false' });
    const title = () => { name.placeholder = `${path.split('/').pop() || 'scene'}-${preset}`; };
    score.checked = true;
    title();
    const sizes = sizesOf(full, () => costs.anew());
    const costs = costsOf(() => ({ path, preset, size: sizes.size(), ...(score.checked ? { score: '1' } : {}) }),
        sizes.known);
    const again = () => {
        sizes.forget();
        costs.anew();
    };
    score.onchange = again;
    const choices = presetChoices(preset, (p) => {
        preset = p;
        title();
        again();
    });
    const start = action('Start training', async () => {
        await post('train', { scene: path, preset, score: score.checked, size: Number(sizes.size()),
            limit: Number(limit.value), name: name.value.trim() });
        asked();
        location.hash = '#/';
    }, { class: 'primary large', id: 'start' });
    return h('section', { class: 'card' }, h('h2', {}, 'Train'),
        h('fieldset', { class: 'presets' }, h('legend', { class: 'unseen' }, 'recipe'), choices),
        sizes.box, costs.box,
        h('div', { class: 'row options' }, h('label', {}, score, 'hold out every 8th photo to measure quality'),
            h('label', {}, 'time limit ', limit), h('label', {}, 'name ', name)),
        h('div', { class: 'row' }, start));
};

// ---- what stands beside the listing

const aboutScene = (box, path) => {
    const said = h('section', { class: 'card verdict', 'aria-live': 'polite' }), form = h('div', {});
    box.append(said, form);
    const ask = async () => {
        let c = null;
        try {
            c = await get('verdict', { path });
        } catch (err) {
            c = { ready: true, error: err.message, hint: err.hint };
        }
        if (!said.isConnected) {
            return; // another page is shown
        }
        refill(said, c, () => verdict(c));
        if (!c.ready) {
            setTimeout(ask, 500);
        } else if (!c.error && judgement(c.report)[0] !== 'bad') {
            form.replaceChildren(trainCard(path, c.report.sizes[0]));
        }
    };
    refill(said, null, () => verdict({ ready: false }));
    ask();
};

const aboutFootage = (box, l) => box.append(h('section', { class: 'card' },
    h('h2', {}, footage(l)),
    h('p', {}, 'The cameras are not known yet. To find them takes seconds to minutes; you can leave this page ' +
        'meanwhile.'),
    h('div', { class: 'row' }, action('Find the cameras', async () => {
        await post('capture', { path: l.path });
        asked();
        location.hash = '#/';
    }, { class: 'primary large' }))));

const aboutRun = (box, path) => box.append(h('section', { class: 'card' }, h('h2', {}, 'A run'),
    h('a', { class: 'button primary', href: pathTo('run', path) }, 'Open run')));

const aboutFolder = (box) => box.append(h('section', { class: 'card' }, h('h2', {}, 'Choose a folder'),
    h('p', {}, 'A folder of photos or with a video, or a scene whose cameras another program has found, such ' +
        'as COLMAP, Metashape or nerfstudio.'),
    h('p', { class: 'dim' }, 'Or drop photos or a video on this page.')));

const beside = { scene: (box, l, path) => aboutScene(box, path), footage: aboutFootage,
    run: (box, l, path) => aboutRun(box, path) };

export const newPage = (main, path) => {
    const list = h('div', {}), side = h('div', {});
    main.append(h('h1', { class: 'title' }, 'New training'),
        h('div', { class: 'split browse' }, h('section', { class: 'card' }, list), side));
    let root = '/';
    const fill = async () => {
        try {
            const l = await get('folder', { path });
            list.replaceChildren(crumbs(path, root), listing(l));
            (beside[l.kind] || aboutFolder)(side, l, path);
        } catch (err) {
            list.replaceChildren(crumbs(path, root), complaint(err.message, err.hint));
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
