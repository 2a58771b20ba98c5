import { draw } from './curves.js';
import { about, action, ago, bytes, count, fact, h, openModel, pathTo, picture, post, presetNames, refill, time } from './parts.js';

const asked = () => window.dispatchEvent(new Event('asked'));
const live = (j) => ['queued', 'running', 'stopping'].includes(j.state);

// ---- jobs

const kinds = { train: 'Training', capture: 'Finding cameras', export: 'Export', flight: 'Flight' };
const states = { queued: 'queued', running: '', stopping: 'saving', done: 'done', stopped: 'stopped', failed: 'failed' };

// What a job says of its progress in one line.
export const progressText = (j) => {
    if (j.state === 'queued') {
        return 'Waits for what is running now.';
    }
    if (j.state === 'stopping') {
        return 'Saves and stops.';
    }
    const parts = [];
    if (j.total && j.step && j.kind !== 'capture') {
        parts.push(`${j.kind === 'flight' ? 'picture' : 'step'} ${j.step.toLocaleString('en')} of ${j.total.toLocaleString('en')}`);
    }
    if (j.doing) {
        parts.push(j.doing);
    } else if (j.eta && j.state === 'running') {
        parts.push(`${about(j.eta)} left`);
    }
    if (j.splats) {
        parts.push(`${count(j.splats)} splats`);
    }
    if (!parts.length && j.state === 'running') {
        parts.push('Starting');
    }
    return parts.join(' · ');
};

const stopButton = (j) => action('Stop', async () => {
    await post('stop', { job: j.id });
    asked();
}, { title: j.kind === 'train' ? 'save and stop; it can be continued' : 'stop' });

const fileAddress = (path, save) => `file?${new URLSearchParams(save ? { path, save: '1' } : { path })}`;

const jobButtons = (j) => {
    const list = [];
    if (j.kind === 'train' && j.run) {
        list.push(h('a', { class: 'button', href: pathTo('run', j.run) }, live(j) ? 'Details' : 'Open run'));
    }
    if (j.watch) {
        list.push(h('a', { class: 'button primary', href: `show/${j.id}/?desk` }, 'Watch in 3D'));
    }
    if (live(j)) {
        list.push(j.state === 'stopping' ? null : stopButton(j));
        return list;
    }
    if (j.state === 'done' && j.kind === 'capture') {
        list.push(h('a', { class: 'button primary', href: pathTo('new', j.made) }, 'Check and train'));
    }
    if (j.state === 'done' && (j.kind === 'export' || j.kind === 'flight')) {
        list.push(h('a', { class: 'button primary', href: fileAddress(j.made, true), download: '' }, 'Download'));
    }
    if (j.state !== 'done' && j.kind === 'capture') {
        list.push(action(j.state === 'failed' ? 'Try again' : 'Continue', async () => {
            await post('capture', { path: j.scene });
            asked();
        }));
    }
    list.push(action('×', async () => {
        await post('dismiss', { job: j.id });
        asked();
    }, { class: 'quiet', title: 'remove from this list', 'aria-label': 'remove from this list' }));
    return list;
};

const complaint = (j) => (j.error ? h('p', { class: 'error' }, j.error, j.hint ? h('span', {}, j.hint) : null) : null);

// Makes the card of a job and returns it with what changes it.
const jobCard = (first) => {
    const numbers = h('p', { class: 'numbers' }), bar = h('progress', { max: '1', value: '0' }), buttons = h('div', { class: 'row' }), said = h('div', {});
    const chip = h('span', { class: 'chip' });
    const card = h('article', { class: 'job', 'data-job': first.id, 'data-kind': first.kind },
        h('div', { class: 'head' }, h('small', {}, kinds[first.kind]), h('strong', {}, first.title), chip), bar, numbers, said, buttons);
    const update = (j) => {
        card.dataset.state = j.state;
        chip.textContent = states[j.state];
        chip.hidden = !chip.textContent;
        numbers.textContent = j.state === 'done' ? '' : progressText(j);
        numbers.hidden = !numbers.textContent;
        bar.hidden = !live(j);
        if (j.total) {
            bar.value = j.step / j.total;
        } else {
            bar.removeAttribute('value');
        }
        card.classList.toggle('over', !live(j) && !j.error);
        refill(said, [j.error, j.hint], () => complaint(j));
        refill(buttons, [j.state, j.watch, j.run, j.made], () => jobButtons(j));
    };
    update(first);
    return { card, update };
};

// A list of jobs whose cards stay where they are.
export const jobList = () => {
    const cards = new Map(), box = h('div', { class: 'jobs' });
    const update = (jobs) => {
        for (const [id, c] of cards) {
            if (!jobs.some((j) => j.id === id)) {
                c.card.remove();
                cards.delete(id);
            }
        }
        jobs.forEach((j, i) => {
            if (!cards.has(j.id)) {
                cards.set(j.id, jobCard(j));
            }
            const { card, update: change } = cards.get(j.id);
            change(j);
            if (box.children[i] !== card) {
                box.insertBefore(card, box.children[i] || null);
            }
        });
        box.hidden = !jobs.length;
    };
    return { box, update };
};

// ---- runs

const chosen = new Set(); // paths of runs to compare

const stateOf = (run, jobs) => {
    const j = jobs.find((x) => x.run === run.path && x.kind === 'train' && live(x));
    if (j) {
        return j.state === 'queued' ? 'queued' : 'training';
    }
    if (run.resumable) {
        return 'unfinished';
    }
    return run.total && run.step >= run.total ? '' : run.step || run.has_model ? 'ended early' : 'just begun'; // perhaps by another program
};

const runCard = (run, jobs, now) => {
    const state = stateOf(run, jobs);
    const box = h('input', { type: 'checkbox', 'aria-label': `compare ${run.name}`, title: 'compare' });
    box.checked = chosen.has(run.path);
    box.onchange = () => (box.checked ? chosen.add(run.path) : chosen.delete(run.path));
    return h('article', { class: 'run', 'data-run': run.path },
        h('a', { href: pathTo('run', run.path) }, h('div', { class: 'frame' }, picture(run), state ? h('span', { class: `chip ${state === 'training' ? 'on' : ''}` }, state) : null),
            h('strong', {}, run.name),
            h('small', {}, [run.psnr ? `${run.psnr.toFixed(2)} dB` : null, run.splats ? `${count(run.splats)} splats` : null, run.seconds ? time(run.seconds) : null]
                .filter(Boolean).join(' · ') || `step ${run.step.toLocaleString('en')} of ${run.total.toLocaleString('en')}`),
            h('small', { class: 'dim' }, run.changed ? ago(run.changed, now) : '')),
        h('label', { class: 'pick' }, box));
};

const welcome = () => h('section', { class: 'welcome' },
    h('h1', {}, 'From photos to a model'),
    h('p', {}, 'Drop a video or photos anywhere on this page, or choose a folder that is on this machine already.'),
    h('div', { class: 'row' },
        h('a', { class: 'button primary large', href: '#/new/' }, 'Choose a folder'),
        h('button', { class: 'large', onclick: () => window.dispatchEvent(new Event('choosefiles')) }, 'Upload a video or photos')));

export const runsPage = (main) => {
    const list = jobList(), grid = h('div', { class: 'grid' }), hello = h('div', {});
    const compare = h('a', { class: 'button', href: '#/compare' }, 'Compare');
    const title = h('div', { class: 'line' }, h('h2', {}, 'Runs'), compare);
    main.append(hello, list.box, title, grid);
    grid.addEventListener('change', () => { compare.textContent = `Compare ${chosen.size || ''}`; });
    return (s) => {
        refill(hello, [!s.runs.length && !s.jobs.length], () => (s.runs.length || s.jobs.length ? null : welcome()));
        list.update(s.jobs.filter((j) => j.kind !== 'train' || live(j) || j.state === 'failed')); // others are runs below
        compare.textContent = `Compare ${chosen.size || ''}`;
        title.hidden = !s.runs.length;
        const minute = Math.floor(s.now / 60);
        refill(grid, [s.runs, minute, s.runs.map((r) => stateOf(r, s.jobs))], () => s.runs.map((r) => runCard(r, s.jobs, s.now)));
    };
};

// ---- one run

const formats = [['.spz', 'SPZ, small, for the web'], ['.sog', 'SOG, smallest, for the web'], ['.html', 'a web page that works offline'], ['.ply', 'PLY, nothing is lost'],
    ['.compressed.ply', 'compressed PLY'], ['.splat', '.splat'], ['.glb', 'GLB (glTF)']];
const flights = [['ellipse', 'around the scene'], ['orbit', 'in a circle'], ['spiral', 'in a spiral'], ['interp', 'from photo to photo']];

// list has pairs of a value and its text: keys of an object that are numbers would lose their order.
const choice = (list, name) => h('select', { 'aria-label': name }, list.map(([value, text]) => h('option', { value }, text)));

const exportCard = (path) => {
    const format = choice(formats, 'format'), box = () => h('input', { type: 'checkbox' });
    const upright = box(), clean = box(), few = choice([[0, 'all splats'], [2000000, '2 M splats'], [1000000, '1 M splats'], [500000, '500 k splats'], [200000, '200 k splats']], 'splats');
    const options = h('div', { class: 'row options' }, h('label', { title: 'turn the photos’ up to that of viewers' }, upright, 'upright'),
        h('label', { title: 'leave out isolated splats' }, clean, 'without outliers'), few);
    format.onchange = () => { options.hidden = format.value === '.html'; };
    return h('section', { class: 'card' }, h('h3', {}, 'Export'), options, h('div', { class: 'row' }, format, action('Export', async () => {
        const page = format.value === '.html';
        await post('export', { path, format: format.value, upright: !page && upright.checked, clean: !page && clean.checked, splats: page ? 0 : Number(few.value) });
        asked();
    }, { class: 'primary' })));
};

const flightCard = (path) => {
    const way = choice(flights, 'path'), seconds = choice([[10, '10 s'], [5, '5 s'], [20, '20 s'], [60, '60 s']], 'duration'), size = choice([[720, '720p'], [1080, '1080p'], [480, '480p']], 'size');
    return h('section', { class: 'card flight' }, h('h3', {}, 'Flight'), h('div', { class: 'row' }, way, seconds, size, action('Render', async () => {
        await post('flight', { run: path, path: way.value, seconds: Number(seconds.value), height: Number(size.value) });
        asked();
    }, { class: 'primary' })));
};

// What can be done with a run now.
const runButtons = (run, job) => {
    if (job) {
        return [job.watch ? h('a', { class: 'button primary', href: `show/${job.id}/?desk` }, 'Watch in 3D') : null,
            job.state === 'stopping' ? null : stopButton(job),
            job.state === 'stopping' ? action('End now', async () => {
                if (window.confirm('End it without saving? What was trained since the last checkpoint is lost.')) {
                    await post('stop', { job: job.id, now: true });
                    asked();
                }
            }, { class: 'quiet' }) : null];
    }
    return [run.has_model ? action('Open model', () => openModel(run.path), { class: 'primary' }) : null,
        run.has_model ? action('Edit', () => openModel(run.path, true),
            { title: 'remove parts of the model, choose which way is up, export a new file' }) : null,
        run.resumable ? action('Continue training', async () => {
            await post('resume', { path: run.path });
            asked();
        }, run.has_model ? {} : { class: 'primary' }) : null];
};

const runFacts = (run, job) => {
    const j = job && job.total ? job : null, step = j ? j.step : run.step, total = j ? j.total : run.total;
    const psnr = j ? j.heldPsnr : run.psnr, seconds = j ? j.seconds : run.seconds;
    return [fact('steps', step.toLocaleString('en'), total ? `of ${total.toLocaleString('en')}` : ''),
        j && j.rate ? fact('speed', `${j.rate.toFixed(1)}`, 'steps a second') : null,
        j && j.eta ? fact('left', about(j.eta)) : null,
        psnr ? fact('held-out photos', `${psnr.toFixed(2)} dB`, run.ssim && !j ? `SSIM ${run.ssim.toFixed(3)}` : '') : null,
        (j || run).splats ? fact('splats', count((j || run).splats)) : null,
        seconds ? fact('trained for', time(seconds)) : null,
        (j ? j.device : run.device_bytes) ? fact('device memory', bytes(j ? j.device : run.device_bytes)) : null,
        run.model_bytes && !j ? fact('file', bytes(run.model_bytes)) : null,
        run.preset ? fact('recipe', presetNames[run.preset] || run.preset) : null,
        run.scene ? fact('scene', run.scene) : null,
        run.photos ? fact('photos', String(run.photos), run.resolution || '') : null,
        run.device ? fact('device', run.device) : null];
};

const curves = () => {
    const one = (name, key, log) => ({ key, log, canvas: h('canvas', { height: '90', role: 'img', 'aria-label': name }), name });
    const list = [one('loss', 'loss', true), one('PSNR of trained photos, dB', 'psnr', false), one('splats', 'splats', false)];
    const box = h('div', { class: 'curves' }, list.map((c) => h('figure', {}, c.canvas, h('figcaption', {}, c.name))));
    const fill = (c) => {
        box.hidden = c.steps.length < 2;
        for (const one of list) {
            draw(one.canvas, c.steps.map((s, i) => [s, c[one.key][i]]), one.log);
        }
    };
    box.hidden = true;
    return { box, fill };
};

export const runPage = (main, path) => {
    const name = path.split('/').pop();
    const shot = h('div', { class: 'shot' }), facts = h('dl', { class: 'facts' }), buttons = h('div', { class: 'row' }), said = h('div', {});
    const bar = h('progress', { max: '1', value: '0' }), numbers = h('p', { class: 'numbers' }), more = h('div', { class: 'pair' }), list = jobList(), videos = h('div', {});
    const plot = curves();
    const chip = h('span', { class: 'chip' });
    main.append(h('h1', { class: 'title' }, name, chip),
        h('div', { class: 'split' }, h('div', {}, shot, plot.box, videos),
            h('div', {}, h('section', { class: 'card' }, buttons, bar, numbers, said, facts), more, list.box)));
    let asking = false, asksAt = 0, ran = false;
    const readCurve = async () => {
        asking = true;
        try {
            plot.fill(await (await fetch(`curve?${new URLSearchParams({ run: path })}`)).json());
        } catch {
            // The next try is a moment away.
        } finally {
            asking = false;
        }
    };
    return (s) => {
        const job = s.jobs.find((j) => j.run === path && j.kind === 'train' && live(j));
        const last = s.jobs.find((j) => j.run === path && j.kind === 'train');
        const run = s.runs.find((r) => r.path === path) || { path, name, step: 0, total: 0, has_model: false };
        chip.textContent = stateOf(run, s.jobs);
        chip.hidden = !chip.textContent || !run.total && !job;
        refill(shot, [run.picture, run.name], () => picture(run));
        refill(buttons, [job && [job.id, job.state, job.watch], run.has_model, run.resumable], () => runButtons(run, job));
        bar.hidden = numbers.hidden = !job;
        if (job) {
            numbers.textContent = progressText(job);
            if (job.total) {
                bar.value = job.step / job.total;
            } else {
                bar.removeAttribute('value');
            }
        }
        refill(said, last ? [last.error, last.warnings] : [], () => (last ? [complaint(last),
            ...(last.warnings || []).map((w) => h('p', { class: 'warning' }, w))] : null));
        refill(facts, [run, job], () => runFacts(run, job));
        refill(more, [run.has_model && !job], () => (run.has_model && !job ? [exportCard(path), flightCard(path)] : null));
        const others = s.jobs.filter((j) => j.run === path && j.kind !== 'train');
        list.update(others);
        const films = others.filter((j) => j.kind === 'flight' && j.state === 'done').map((j) => j.made);
        refill(videos, films, () => films.map((f) => h('video', { src: fileAddress(f), controls: true, playsinline: true, preload: 'metadata' })));
        if (!asking && (Date.now() > asksAt || ran !== Boolean(job))) {
            ran = Boolean(job);
            asksAt = Date.now() + (job ? 3000 : 30000);
            readCurve();
        }
    };
};

// ---- side by side

// Rows of the table: name, value, text, whether more is better (undefined: neither).
const rows = [
    ['PSNR', (r) => r.psnr, (v) => `${v.toFixed(2)} dB`, true],
    ['SSIM', (r) => r.ssim, (v) => v.toFixed(4), true],
    ['trained for', (r) => r.seconds, time, false],
    ['splats', (r) => r.splats, count, undefined],
    ['file', (r) => r.model_bytes, bytes, false],
    ['device memory', (r) => r.device_bytes, bytes, false],
    ['steps', (r) => r.step, (v) => v.toLocaleString('en'), undefined],
];

const table = (runs) => {
    const line = ([name, value, text, more]) => {
        const values = runs.map(value), known = values.filter(Boolean), best = more === undefined || known.length < 2 ? null : more ? Math.max(...known) : Math.min(...known);
        const most = Math.max(...known, 1e-9);
        return h('tr', {}, h('th', { scope: 'row' }, name), values.map((v) => {
            const bar = h('i', {});
            bar.style.width = `${v ? Math.max(2, 100 * v / most) : 0}%`;
            return h('td', { class: v && v === best ? 'best' : '' }, v ? text(v) : '–', bar);
        }));
    };
    return h('div', { class: 'scroll' }, h('table', { class: 'compare' }, h('thead', {}, h('tr', {}, h('th', {}),
        runs.map((r) => h('th', { scope: 'col' }, h('a', { href: pathTo('run', r.path) }, h('div', { class: 'frame' }, picture(r)), h('strong', {}, r.name), h('small', {}, r.scene || '')))))),
    h('tbody', {}, rows.map(line))));
};

export const comparePage = (main) => {
    const picks = h('div', { class: 'picks' }), box = h('div', {});
    main.append(h('h1', { class: 'title' }, 'Compare'), picks, box);
    let newest = null, begun = false;
    const fill = () => {
        const runs = newest.runs.filter((r) => chosen.has(r.path));
        refill(box, runs, () => (runs.length ? table(runs) : h('p', { class: 'dim' }, newest.runs.length ? 'Choose runs above.' : 'There are no runs yet.')));
    };
    const pick = (r) => {
        const b = h('button', { class: 'pill', 'aria-pressed': String(chosen.has(r.path)) }, r.name);
        b.onclick = () => {
            if (!chosen.delete(r.path)) {
                chosen.add(r.path);
            }
            b.setAttribute('aria-pressed', String(chosen.has(r.path)));
            fill();
        };
        return b;
    };
    return (s) => {
        newest = s;
        if (!begun) {
            begun = true;
            if (!s.runs.some((r) => chosen.has(r.path))) {
                s.runs.filter((r) => r.has_model).slice(0, 3).forEach((r) => chosen.add(r.path));
            }
        }
        refill(picks, s.runs.map((r) => r.path), () => s.runs.map(pick));
        fill();
    };
};
