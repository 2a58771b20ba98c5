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

// Puts children into an element where what they are made of has changed, so that nothing moves under a hand.
export const refill = (e, made, make) => {
    const key = JSON.stringify(made);
    if (e.madeOf !== key) {
        e.madeOf = key;
        e.replaceChildren(...[make()].flat().filter(Boolean));
    }
    return e;
};

let fading = 0;
export const toast = (text, bad) => {
    const e = document.getElementById('toast');
    e.textContent = text;
    e.classList.toggle('bad', Boolean(bad));
    e.hidden = false;
    clearTimeout(fading);
    fading = setTimeout(() => { e.hidden = true; }, bad ? 9000 : 4000);
};

// The error of an answer, as a sentence or two.
const failed = async (answer) => {
    let said = {};
    try {
        said = await answer.json();
    } catch {
        said = { error: `vksplat answers ${answer.status}` };
    }
    const err = new Error(said.error || 'vksplat does not answer');
    err.hint = said.hint || '';
    return err;
};

export const get = async (name, query = {}) => {
    const answer = await fetch(`${name}?${new URLSearchParams(query)}`);
    if (!answer.ok) {
        throw await failed(answer);
    }
    return answer.json();
};

export const post = async (name, body) => {
    const answer = await fetch(name, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
    if (!answer.ok) {
        throw await failed(answer);
    }
    return answer.json();
};

// A button that asks for something and says what went wrong.
export const action = (text, work, props = {}) => {
    const b = h('button', props, text);
    b.onclick = async (e) => {
        e.stopPropagation();
        b.disabled = true;
        try {
            await work(b);
        } catch (err) {
            toast([err.message, err.hint].filter(Boolean).join(' — '), true);
        } finally {
            b.disabled = false;
        }
    };
    return b;
};

export const pathTo = (page, path) => `#/${page}/${path.split('/').map(encodeURIComponent).join('/')}`;

export const count = (n) => (n >= 1e6 ? `${(n / 1e6).toFixed(2)} M` : n >= 1e4 ? `${(n / 1e3).toFixed(0)} k` : Number(n || 0).toLocaleString('en'));
export const bytes = (n) => (n >= 1e9 ? `${(n / 1e9).toFixed(1)} GB` : n >= 1e6 ? `${(n / 1e6).toFixed(n >= 1e8 ? 0 : 1)} MB` : `${Math.max(1, Math.round(n / 1e3))} kB`);
export const time = (s) => {
    const n = Math.round(s);
    if (n >= 3600) {
        return `${Math.floor(n / 3600)} h ${Math.floor(n / 60) % 60} min`;
    }
    return n >= 60 ? `${Math.floor(n / 60)} min ${n % 60} s` : n >= 10 ? `${n} s` : `${Number(s).toFixed(1)} s`;
};
// A time that is only predicted.
export const about = (s) => (s >= 5400 ? `${(s / 3600).toFixed(1)} h` : s >= 90 ? `${Math.round(s / 60)} min` : `${Math.max(1, Math.round(s))} s`);
export const ago = (then, now) => {
    const s = Math.max(0, now - then);
    const [n, unit] = s < 90 ? [0, ''] : s < 5400 ? [Math.round(s / 60), 'minute'] : s < 129600 ? [Math.round(s / 3600), 'hour'] : [Math.round(s / 86400), 'day'];
    return n ? `${n} ${unit}${n > 1 ? 's' : ''} ago` : 'just now';
};

export const fact = (name, value, more) => h('div', { class: 'fact' }, h('dt', {}, name), h('dd', {}, value, more ? h('small', {}, more) : null));

export const presetNames = { default: 'Recommended', fast: 'Fast', '3dgs': 'Published', mcmc: 'One million', quality: 'Three million' };

// The picture of a run, or what stands for it.
export const picture = (run) => (run.picture
    ? h('img', { src: `picture?${new URLSearchParams({ run: run.path, at: run.picture })}`, alt: '', loading: 'lazy' })
    : h('div', { class: 'nopicture', 'aria-hidden': 'true' }, run.name.slice(0, 1).toUpperCase()));

// Opens the viewer of a model on this page, or the one that edits it.
export const openModel = async (path, edit = false) => {
    toast('The model is being prepared.');
    const { at } = await post('show', { path, edit });
    location.href = `${at}?desk`;
};
