import { jobList, live } from './jobs.js';
import { ago, count, h, number, pathTo, picture, refill, time } from './parts.js';

// The first page: jobs and all runs.

export const chosen = new Set(); // paths of runs to compare

export const stateOf = (run, jobs) => {
    const j = jobs.find((x) => x.run === run.path && x.kind === 'train' && live(x));
    if (j) {
        return j.state === 'queued' ? 'queued' : 'training';
    }
    if (run.resumable) {
        return 'unfinished';
    }
    if (run.total && run.step >= run.total) {
        return '';
    }
    return run.step || run.has_model ? 'ended early' : 'just begun'; // perhaps by another program
};

const summary = (run) => {
    const known = [run.psnr ? `${run.psnr.toFixed(2)} dB` : null, run.splats ? `${count(run.splats)} splats` : null,
        run.seconds ? time(run.seconds) : null].filter(Boolean);
    return known.length ? known.join(' · ') : `step ${number(run.step)} of ${number(run.total)}`;
};

const runCard = (run, jobs, now) => {
    const state = stateOf(run, jobs);
    const box = h('input', { type: 'checkbox', 'aria-label': `compare ${run.name}`, title: 'compare' });
    box.checked = chosen.has(run.path);
    box.onchange = () => (box.checked ? chosen.add(run.path) : chosen.delete(run.path));
    const chip = state ? h('span', { class: `chip ${state === 'training' ? 'on' : ''}` }, state) : null;
    return h('article', { class: 'run', 'data-run': run.path },
        h('a', { href: pathTo('run', run.path) }, h('div', { class: 'frame' }, picture(run), chip),
            h('strong', {}, run.name), h('small', {}, summary(run)),
            h('small', { class: 'dim' }, run.changed ? ago(run.changed, now) : '')),
        h('label', { class: 'pick' }, box));
};

const steps = [
    ['Photos or a video', 'Sharp, overlapping, from all around. 50 to 300 photos work well.'],
    ['Check', 'Camera positions are found, and problems are reported before training.'],
    ['Train', 'Watch the model grow, stop and continue, then look around in it and share it.'],
];

const welcome = () => [
    h('section', { class: 'welcome' },
        h('h1', {}, 'From photos to a model'),
        h('p', {}, 'Drop a video or photos anywhere on this page, or choose a folder that is on this machine already.'),
        h('div', { class: 'row' },
            h('a', { class: 'button primary large', href: '#/new/' }, 'Choose a folder'),
            h('button', { type: 'button', class: 'large', onclick: () => window.dispatchEvent(new Event('choosefiles')),
            }, 'Upload a video or photos'))),
    h('ol', { class: 'steps' }, steps.map(([name, text]) => h('li', {}, h('strong', {}, name), h('span', {}, text)))),
];

export const runsPage = (main) => {
    const list = jobList(), grid = h('div', { class: 'grid' }), hello = h('div', {});
    const compare = h('a', { class: 'button', href: '#/compare' }, 'Compare');
    const title = h('div', { class: 'line' }, h('h1', { class: 'small' }, 'Runs'), compare);
    const reading = h('p', { class: 'wait' }, 'Loading runs');
    title.hidden = true;
    main.append(hello, list.box, reading, title, grid);
    const mark = () => { compare.textContent = `Compare ${chosen.size || ''}`; };
    grid.addEventListener('change', mark);
    return (s) => {
        const runs = s.runs || [], empty = s.runs && !runs.length && !s.jobs.length;
        refill(hello, empty, () => (empty ? welcome() : null));
        // Trainings that have ended well are runs below.
        list.update(s.jobs.filter((j) => j.kind !== 'train' || live(j) || j.state === 'failed'));
        mark();
        reading.hidden = Boolean(s.runs);
        title.hidden = !runs.length;
        const minute = Math.floor(s.now / 60);
        refill(grid, [runs, minute, runs.map((r) => stateOf(r, s.jobs))],
            () => runs.map((r) => runCard(r, s.jobs, s.now)));
    };
};
