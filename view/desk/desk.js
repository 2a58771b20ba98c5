import { get, h, post, toast } from './parts.js';
import { comparePage, runPage, runsPage } from './runs.js';
import { newPage } from './scenes.js';

// The page of vksplat open. The address after # names what is shown; each of these pages is a function that fills the
// main element and returns what is called with the state, every second.

const main = document.getElementById('main');
const pages = { '': runsPage, run: runPage, compare: comparePage, new: newPage };
const marked = { '': 'runs', run: 'runs', compare: 'compare', new: 'new' };

let state = null;
let shown = { update: () => {} };

const route = () => {
    const [, name = '', ...rest] = location.hash.split('/');
    const make = pages[name] || runsPage;
    const path = rest.map(decodeURIComponent).join('/');
    main.replaceChildren();
    main.dataset.page = name || 'runs';
    window.scrollTo(0, 0);
    shown = { update: make(main, path, state) };
    for (const a of document.querySelectorAll('nav a')) {
        a.toggleAttribute('aria-current', a.dataset.page === marked[name]);
    }
    if (state) {
        shown.update(state);
    }
};

const look = async () => {
    try {
        state = await get('state');
        document.getElementById('lost').hidden = true;
        document.body.dataset.ready = 'true';
        shown.update(state);
    } catch {
        document.getElementById('lost').hidden = false;
    }
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
window.addEventListener('hashchange', route);

// ---- what is dropped on the page, or chosen

// One request for each file, so that a connection that breaks costs one file.
const send = (file, folder, told) => new Promise((resolve, reject) => {
    const r = new XMLHttpRequest();
    r.open('POST', `upload?${new URLSearchParams({ folder, file: file.name })}`);
    r.upload.onprogress = (e) => told(e.loaded);
    r.onload = () => {
        let said = {};
        try {
            said = JSON.parse(r.responseText);
        } catch {
            said = { error: `vksplat answers ${r.status}` };
        }
        if (r.status === 200) {
            resolve(said.path);
        } else {
            reject(new Error([said.error, said.hint].filter(Boolean).join(' — ')));
        }
    };
    r.onerror = () => reject(new Error('the upload broke off'));
    r.send(file);
});

const bar = h('progress', { max: '1', value: '0' });
const sending = h('div', { id: 'sending', role: 'status', hidden: true }, h('span', {}), bar);
document.body.append(sending);

const folderName = (files) => {
    const now = new Date().toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');
    return `${files.length === 1 ? files[0].name.replace(/\.[^.]*$/, '') : 'photos'}-${now}`;
};

const upload = async (list) => {
    const files = [...list];
    if (!files.length || !sending.hidden) {
        return;
    }
    const folder = folderName(files), sum = files.reduce((s, f) => s + f.size, 0) || 1;
    let before = 0, path = '';
    sending.hidden = false;
    try {
        for (const [i, file] of files.entries()) {
            sending.firstChild.textContent = files.length > 1 ? `Uploading ${i + 1} of ${files.length}` : `Uploading ${file.name}`;
            path = await send(file, folder, (n) => { bar.value = (before + n) / sum; });
            before += file.size;
        }
        await post('capture', { path });
        toast('Uploaded. Looking for the cameras now.');
        location.hash = '#/';
        await again();
    } catch (err) {
        toast(err.message, true);
    } finally {
        sending.hidden = true;
    }
};

const files = document.getElementById('files'), drop = document.getElementById('drop');
document.getElementById('upload').onclick = () => files.click();
window.addEventListener('choosefiles', () => files.click());
files.onchange = async () => {
    await upload(files.files);
    files.value = '';
};
const carries = (e) => [...(e.dataTransfer ? e.dataTransfer.types : [])].includes('Files');
window.addEventListener('dragover', (e) => {
    if (carries(e)) {
        e.preventDefault();
        drop.hidden = false;
    }
});
window.addEventListener('dragleave', (e) => { drop.hidden = drop.hidden || !e.relatedTarget; });
window.addEventListener('drop', (e) => {
    if (carries(e)) {
        e.preventDefault();
        drop.hidden = true;
        upload(e.dataTransfer.files);
    }
});

route();
again();
