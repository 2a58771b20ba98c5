import { draw } from './curves.js';
import { fileAddress, jobList, live, progressText, showProgress, stopButton, watchLink } from './jobs.js';
import { about, action, asked, bytes, choice, complaint, count, fact, get, h, number, openModel, picture, post,
    presetNames, refill, time } from './parts.js';
import { stateOf } from './runs.js';

// The page of one run.

const formats = [['.spz', 'SPZ, small, for the web'], ['.sog', 'SOG, smallest, for the web'],
    ['.html', 'a web page that works offline'], ['.ply', 'PLY, nothing is lost'], ['.compressed.ply', 'compressed PLY'],
    ['.splat', '.splat'], ['.glb', 'GLB (glTF)'], ['.usdz', 'USDZ (OpenUSD)']];
const amounts = [[0, 'all splats'], [2000000, '2 M splats'], [1000000, '1 M splats'], [500000, '500 k splats'],
    [200000, '200 k splats']];
const flights = [['ellipse', 'around the scene'], ['orbit', 'in a circle'], ['spiral', 'in a spiral'],
    ['interp', 'from photo to photo']];

const exportCard = (path) => {
    const format = choice(formats, 'format'), few = choice(amounts, 'splats');
    const box = () => h('input', { type: 'checkbox' }), upright = box(), clean = box();
    const options = h('div', { class: 'row options' },
        h('label', { title: 'turn the photos’ up to that of viewers' }, upright, 'upright'),
        h('label', { title: 'leave out isolated splats' }, clean, 'without outliers'), few);
    format.onchange = () => { options.hidden = format.value === '.html'; };
    const write = action('Export', async () => {
        const page = format.value === '.html', splats = page ? 0 : Number(few.value);
        await post('export', { path, format: format.value, upright: !page && upright.checked,
            clean: !page && clean.checked, splats });
        asked();
    }, { class: 'primary' });
    return h('section', { class: 'card' }, h('h2', {}, 'Export'), options, h('div', { class: 'row' }, format, write));
};

const flightCard = (path) => {
    const way = choice(flights, 'path'), size = choice([[720, '720p'], [1080, '1080p'], [480, '480p']], 'size');
    const seconds = choice([[10, '10 s'], [5, '5 s'], [20, '20 s'], [60, '60 s']], 'duration');
    const render = action('Render', async () => {
        const height = Number(size.value);
        await post('flight', { run: path, path: way.value, seconds: Number(seconds.value), height });
        asked();
    }, { class: 'primary' });
    return h('section', { class: 'card flight' }, h('h2', {}, 'Flight'),
        h('div', { class: 'row' }, way, seconds, size, render));
};

const endNow = (job) => action('End now', async () => {
    if (window.confirm('End it without saving? Training since the last checkpoint will be lost.')) {
        await post('stop', { job: job.id, now: true });
        asked();
    }
}, { class: 'quiet' });

// What can be done with a run now.
const runButtons = (run, job) => {
    if (job) {
        return [job.watch ? watchLink(job) : null, job.state === 'stopping' ? endNow(job) : stopButton(job)];
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
    const device = j ? j.device : run.device_bytes, { splats } = j || run;
    const ssim = run.ssim && !j ? `SSIM ${run.ssim.toFixed(3)}` : '';
    return [fact('steps', number(step), total ? `of ${number(total)}` : ''),
        j && j.rate ? fact('speed', `${j.rate.toFixed(1)}`, 'steps a second') : null,
        j && j.eta ? fact('left', about(j.eta)) : null,
        psnr ? fact('held-out photos', `${psnr.toFixed(2)} dB`, ssim) : null,
        splats ? fact('splats', count(splats)) : null,
        seconds ? fact('trained for', time(seconds)) : null,
        device ? fact('device memory', bytes(device)) : null,
        run.model_bytes && !j ? fact('file', bytes(run.model_bytes)) : null,
        run.preset ? fact('recipe', presetNames[run.preset] || run.preset) : null,
        run.scene ? fact('scene', run.scene) : null,
        run.photos ? fact('photos', String(run.photos), run.resolution || '') : null,
        run.device ? fact('device', run.device) : null];
};

const curves = () => {
    const list = [['loss', 'loss', true], ['PSNR of trained photos, dB', 'psnr', false], ['splats', 'splats', false]]
        .map(([name, key, log]) => ({ name, key, log, canvas: h('canvas', { height: '90', role: 'img' }) }));
    const box = h('div', { class: 'curves' }, list.map((c) => h('figure', {}, c.canvas, h('figcaption', {}, c.name))));
    const fill = (c) => {
        box.hidden = c.steps.length < 2;
        for (const one of list) {
            const last = c[one.key].at(-1) || 0;
            one.canvas.setAttribute('aria-label', `${one.name}: ${last.toLocaleString('en')} at the last step`);
            draw(one.canvas, c.steps.map((s, i) => [s, c[one.key][i]]), one.log);
        }
    };
    box.hidden = true;
    return { box, fill };
};

// The curves of a run, which are asked for now and then.
const plotOf = (path) => {
    const plot = curves();
    let asking = false, asksAt = 0, ran = false;
    const read = async () => {
        asking = true;
        try {
            plot.fill(await get('curve', { run: path }));
        } catch {
            // The next try is a moment away.
        } finally {
            asking = false;
        }
    };
    const update = (runs) => {
        if (!asking && (Date.now() > asksAt || ran !== runs)) {
            ran = runs;
            asksAt = Date.now() + (runs ? 3000 : 30000);
            read();
        }
    };
    return { box: plot.box, update };
};

const film = (path) => h('video', { src: fileAddress(path), controls: true, playsinline: true, preload: 'metadata',
    'aria-label': `flight ${path.split('/').pop()}` });

const shotOf = (run, job) => {
    const first = job && !run.picture ? h('p', { class: 'dim' }, 'The first picture will appear in a moment.') : null;
    return [picture(run, `the newest picture of ${run.name}`), first];
};

export const runPage = (main, path) => {
    const name = path.split('/').pop(), plot = plotOf(path), list = jobList(), chip = h('span', { class: 'chip' });
    const shot = h('div', { class: 'shot' }), facts = h('dl', { class: 'facts' }), buttons = h('div', { class: 'row' });
    const bar = h('progress', { max: '1', value: '0', 'aria-label': `progress of ${name}` });
    const said = h('div', {}), numbers = h('p', { class: 'numbers' }), more = h('div', { class: 'pair' });
    const videos = h('div', {});
    main.append(h('h1', { class: 'title' }, name, chip), h('div', { class: 'split one' },
        h('div', {}, shot, plot.box, videos),
        h('div', {}, h('section', { class: 'card now' }, buttons, bar, numbers, said, facts), more, list.box)));
    return (s) => {
        const last = s.jobs.find((j) => j.run === path && j.kind === 'train'), job = last && live(last) ? last : null;
        const run = (s.runs || []).find((r) => r.path === path) || { path, name, step: 0, total: 0 };
        const used = run.has_model && !job;
        chip.textContent = stateOf(run, s.jobs);
        chip.hidden = !chip.textContent || !run.total && !job;
        refill(shot, [run.picture, run.name, Boolean(job)], () => shotOf(run, job));
        refill(buttons, [job && [job.id, job.state, job.watch], run.has_model, run.resumable],
            () => runButtons(run, job));
        bar.hidden = numbers.hidden = !job;
        if (job) {
            numbers.textContent = progressText(job);
            showProgress(bar, job);
        }
        refill(said, last ? [last.error, last.hint, last.warnings] : [], () => (last ? [
            last.error ? complaint(last.error, last.hint) : null,
            ...(last.warnings || []).map((w) => h('p', { class: 'warning' }, w))] : null));
        refill(facts, [run, job], () => runFacts(run, job));
        refill(more, [used], () => (used ? [exportCard(path), flightCard(path)] : null));
        const others = s.jobs.filter((j) => j.run === path && j.kind !== 'train');
        list.update(others);
        const films = others.filter((j) => j.kind === 'flight' && j.state === 'done').map((j) => j.made);
        refill(videos, films, () => films.map(film));
        plot.update(Boolean(job));
    };
};
