import { about, action, announce, asked, complaint, count, h, number, pathTo, post, refill } from './parts.js';

// Jobs: what runs, waits or has run, as cards that stay where they are.

export const live = (j) => ['queued', 'running', 'stopping'].includes(j.state);

const kinds = { train: 'Training', capture: 'Finding cameras', export: 'Export', flight: 'Flight' };
const states = { queued: 'queued', running: '', stopping: 'saving', done: 'done', stopped: 'stopped',
    failed: 'failed' };
const news = { running: 'has begun', stopping: 'saves and stops', done: 'is done', stopped: 'has stopped',
    failed: 'failed' };

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
        parts.push(`${j.kind === 'flight' ? 'picture' : 'step'} ${number(j.step)} of ${number(j.total)}`);
    }
    if (j.doing) {
        parts.push(j.doing);
    }
    if (j.eta && j.state === 'running' && (!j.doing || j.kind === 'capture')) {
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

export const showProgress = (bar, j) => {
    if (j.total) {
        bar.value = j.step / j.total;
    } else {
        bar.removeAttribute('value');
    }
};

export const stopButton = (j) => action('Stop', async () => {
    await post('stop', { job: j.id });
    asked();
}, { title: j.kind === 'train' ? 'save and stop; you can continue it later' : 'stop' });

export const watchLink = (j) => h('a', { class: 'button primary', href: `show/${j.id}/?desk` }, 'Watch in 3D');

export const fileAddress = (path, save) => `file?${new URLSearchParams(save ? { path, save: '1' } : { path })}`;

// What can be done with a job that is over.
const lastButtons = (j) => {
    const list = [];
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
    }, { class: 'quiet', title: 'remove from this list', 'aria-label': `remove ${j.title} from this list` }));
    return list;
};

const jobButtons = (j) => {
    const list = [];
    if (j.kind === 'train' && j.run) {
        list.push(h('a', { class: 'button', href: pathTo('run', j.run) }, live(j) ? 'Details' : 'Open run'));
    }
    if (j.watch) {
        list.push(watchLink(j));
    }
    if (!live(j)) {
        return list.concat(lastButtons(j));
    }
    if (j.state !== 'stopping') {
        list.push(stopButton(j));
    }
    return list;
};

// Makes the card of a job and returns it with what changes it.
const jobCard = (first) => {
    const bar = h('progress', { max: '1', value: '0', 'aria-label': `progress of ${first.title}` });
    const numbers = h('p', { class: 'numbers' }), buttons = h('div', { class: 'row' }), said = h('div', {});
    const chip = h('span', { class: 'chip' });
    const head = h('div', { class: 'head' }, h('small', {}, kinds[first.kind]), h('strong', {}, first.title), chip);
    const card = h('article', { class: 'job', 'data-job': first.id, 'data-kind': first.kind,
        'aria-label': first.title }, head, bar, numbers, said, buttons);
    const update = (j) => {
        card.dataset.state = j.state;
        chip.textContent = states[j.state];
        chip.hidden = !chip.textContent;
        numbers.textContent = j.state === 'done' ? '' : progressText(j);
        numbers.hidden = !numbers.textContent;
        bar.hidden = !live(j);
        showProgress(bar, j);
        card.classList.toggle('over', !live(j) && !j.error);
        refill(said, [j.error, j.hint], () => (j.error ? complaint(j.error, j.hint) : null));
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

const before = new Map(); // states of jobs, by their ids

// Says which jobs have begun and ended, on whatever page.
export const announceJobs = (jobs) => {
    const first = !before.size;
    const said = jobs.filter((j) => before.get(j.id) !== j.state && news[j.state])
        .map((j) => `${kinds[j.kind]} ${j.title} ${news[j.state]}${j.error ? `: ${j.error}` : ''}.`);
    before.set('', '');
    jobs.forEach((j) => before.set(j.id, j.state));
    if (said.length && !first) {
        announce(said.join(' '));
    }
};
