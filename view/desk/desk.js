import { comparePage } from './compare.js';
import { announceJobs, live } from './jobs.js';
import { get } from './parts.js';
import { runPage } from './run.js';
import { runsPage } from './runs.js';
import { newPage } from './scenes.js';
import './upload.js';

// The page of vksplat open. The address after # names what is shown; each of these pages is a function that fills the
// main element and returns what is called with the state, every second.

const main = document.getElementById('main'), lost = document.getElementById('lost');
const pages = { '': runsPage, run: runPage, compare: comparePage, new: newPage };
const marked = { '': 'runs', run: 'runs', compare: 'compare', new: 'new' };

let state = null;
let shown = { update: () => {} };

// The title of the window says how far a training is, for those who look at another one meanwhile.
const entitle = () => {
    const job = state && state.jobs.find((j) => j.kind === 'train' && live(j) && j.total);
    const name = main.querySelector('h1')?.firstChild?.textContent;
    const percent = job ? `${Math.floor(100 * job.step / job.total)} % ${job.title}` : null;
    document.title = [percent, name, 'vksplat'].filter(Boolean).join(' – ');
};

const update = () => {
    shown.update(state);
    announceJobs(state.jobs);
    entitle();
};

// The path in an address, "" where it cannot be one.
const pathOf = (parts) => {
    try {
        return parts.map(decodeURIComponent).join('/');
    } catch {
        return '';
    }
};

const route = () => {
    const [, name = '', ...rest] = location.hash.split('/');
    const make = Object.hasOwn(pages, name) ? pages[name] : runsPage;
    main.replaceChildren();
    main.dataset.page = name || 'runs';
    window.scrollTo(0, 0);
    shown = { update: make(main, pathOf(rest), state) };
    for (const a of document.querySelectorAll('nav a[data-page]')) {
        if (a.dataset.page === marked[name]) {
            a.setAttribute('aria-current', 'page');
        } else {
            a.removeAttribute('aria-current');
        }
    }
    if (state) {
        update();
    }
};

const look = async () => {
    try {
        state = await get('state');
        lost.hidden = true;
        document.body.dataset.ready = 'true';
    } catch (err) {
        lost.textContent = err.status ? 'vksplat was restarted: open the address that it printed' : err.message;
        lost.hidden = false;
        return;
    }
    update();
};

let asking = 0;
const again = async () => {
    clearTimeout(asking);
    await look();
    clearTimeout(asking);
    asking = setTimeout(again, document.hidden ? 5000 : 1000);
};
window.addEventListener('visibilitychange', again);
window.addEventListener('asked', again); // a button did something
window.addEventListener('hashchange', () => {
    route();
    main.focus({ preventScroll: true }); // what had it is gone
    again();
});

route();
again();
