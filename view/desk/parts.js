// What the pages are made of: elements, requests, words for numbers.

// An element. Properties that begin with "on" are listeners, others are attributes; children are elements or texts.
export const h = (tag, props = {}, ...children) => {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(props)) {
        if (name.startsWith('on')) {
            e[name] = value;
        } else if (value === true) {
            e.setAttribute(name, '');
        } else if (value !== false && value !== null && value !== undefined) {
            e.setAttribute(name, value);
        }
    }
    e.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
    return e;
};

const reachable = 'a[href], button, input, select, video';
const nameOf = (e) => e.getAttribute('aria-label') || e.textContent || e.tagName;

// Puts children into an element where what they are made of has changed, so that nothing moves under a hand. The focus
// goes to what has the same name, so that whoever works with the keyboard stays where they are.
export const refill = (e, made, make) => {
    const key = JSON.stringify(made);
    if (e.madeOf === key) {
        return e;
    }
    const held = e.contains(document.activeElement) ? nameOf(document.activeElement) : null;
    e.madeOf = key;
    e.replaceChildren(...[make()].flat().filter(Boolean));
    if (held !== null) {
        const list = [...e.querySelectorAll(reachable)], same = list.find((x) => nameOf(x) === held);
        (same || list[0] || document.getElementById('main')).focus({ preventScroll: true });
    }
    return e;
};

// Says something to those who hear the page.
export const announce = (text) => { document.getElementById('said').textContent = text; };

let fading = 0;
const box = document.getElementById('toast');
const hush = () => { box.hidden = true; };
document.getElementById('hush').onclick = hush;
window.addEventListener('keydown', (e) => {
    if (e.key === 'Escape') {
        hush();
    }
});

// Shows a message. One of an error stays until it is closed.
export const toast = (text, bad) => {
    box.firstElementChild.textContent = text;
    box.classList.toggle('bad', Boolean(bad));
    box.hidden = false;
    clearTimeout(fading);
    if (!bad) {
        fading = setTimeout(hush, 5000);
    }
};

export const sentence = (err) => [err.message, err.hint].filter(Boolean).join(' — ');

// The error of an answer, as a sentence or two.
const failed = async (answer) => {
    let said = {};
    try {
        said = await answer.json();
    } catch {
        said = { error: `vksplat returned status ${answer.status}` };
    }
    const err = new Error(said.error || 'vksplat does not respond');
    err.hint = said.hint || '';
    err.status = answer.status;
    return err;
};

const ask = async (address, options) => {
    let answer = null;
    try {
        answer = await fetch(address, options);
    } catch {
        throw new Error('vksplat does not respond: is it still running?');
    }
    if (!answer.ok) {
        throw await failed(answer);
    }
    return answer.json();
};

export const get = (name, query = {}) => ask(`${name}?${new URLSearchParams(query)}`);

export const post = (name, body) => ask(name,
    { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });

// Tells the page that a button did something.
export const asked = () => window.dispatchEvent(new Event('asked'));

// A button that asks for something and says what went wrong. It keeps the focus while it waits.
export const action = (text, work, props = {}) => {
    const b = h('button', { type: 'button', ...props }, text);
    b.onclick = async (e) => {
        e.stopPropagation();
        if (b.getAttribute('aria-disabled')) {
            return;
        }
        b.setAttribute('aria-disabled', 'true');
        try {
            await work(b);
        } catch (err) {
            toast(sentence(err), true);
        } finally {
            b.removeAttribute('aria-disabled');
        }
    };
    return b;
};

// An error with its remedy.
export const complaint = (text, hint) => h('p', { class: 'error' }, text, hint ? h('span', {}, hint) : null);

export const pathTo = (page, path) => `#/${page}/${path.split('/').map(encodeURIComponent).join('/')}`;

export const number = (n) => Number(n || 0).toLocaleString('en');

export const count = (n) => {
    if (n >= 1e6) {
        return `${(n / 1e6).toFixed(2)} M`;
    }
    return n >= 1e4 ? `${(n / 1e3).toFixed(0)} k` : number(n);
};

export const bytes = (n) => {
    if (n >= 1e9) {
        return `${(n / 1e9).toFixed(1)} GB`;
    }
    return n >= 1e6 ? `${(n / 1e6).toFixed(n >= 1e8 ? 0 : 1)} MB` : `${Math.max(1, Math.round(n / 1e3))} kB`;
};

export const time = (s) => {
    const n = Math.round(s);
    if (n >= 3600) {
        return `${Math.floor(n / 3600)} h ${Math.floor(n / 60) % 60} min`;
    }
    if (n >= 60) {
        return `${Math.floor(n / 60)} min ${n % 60} s`;
    }
    return n >= 10 ? `${n} s` : `${Number(s).toFixed(1)} s`;
};

// A time that is only predicted.
export const about = (s) => {
    if (s >= 5400) {
        return `${(s / 3600).toFixed(1)} h`;
    }
    return s >= 90 ? `${Math.round(s / 60)} min` : `${Math.max(1, Math.round(s))} s`;
};

const units = [[5400, 60, 'minute'], [129600, 3600, 'hour'], [Infinity, 86400, 'day']];

export const ago = (then, now) => {
    const s = Math.max(0, now - then);
    if (s < 90) {
        return 'just now';
    }
    const [, length, unit] = units.find(([most]) => s < most);
    const n = Math.round(s / length);
    return `${n} ${unit}${n > 1 ? 's' : ''} ago`;
};

export const fact = (name, value, more) => h('div', { class: 'fact' },
    h('dt', {}, name), h('dd', {}, value, more ? h('small', {}, more) : null));

// A choice from a list of pairs of a value and its text: keys of an object that are numbers would lose their order.
export const choice = (list, name) => h('select', { 'aria-label': name },
    list.map(([value, text]) => h('option', { value }, text)));

export const presetNames = {
    default: 'Recommended', '3dgs': 'Published', mcmc: 'One million',
};

// The picture of a run, or what stands for it.
export const picture = (run, alt = '') => (run.picture
    ? h('img', { src: `picture?${new URLSearchParams({ run: run.path, at: run.picture })}`, alt, loading: 'lazy' })
    : h('div', { class: 'nopicture', 'aria-hidden': 'true' }, run.name.slice(0, 1).toUpperCase()));

// Opens the viewer of a model on this page, or the one that edits it.
export const openModel = async (path, edit = false) => {
    toast('The model is being prepared.');
    const { at } = await post('show', { path, edit });
    location.href = `${at}?desk`;
};
