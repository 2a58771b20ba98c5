import { announce, get, h, post, sentence, toast } from './parts.js';

// What is dropped on the page, or chosen: a file at a time, so that a connection that breaks costs one file.

let sent = null; // the request under way

const send = (file, folder, told) => new Promise((resolve, reject) => {
    const r = new XMLHttpRequest();
    sent = r;
    r.open('POST', `upload?${new URLSearchParams({ folder, file: file.name })}`);
    r.upload.onprogress = (e) => told(e.loaded);
    r.onload = () => {
        let said = {};
        try {
            said = JSON.parse(r.responseText);
        } catch {
            said = { error: `vksplat returned status ${r.status}` };
        }
        if (r.status === 200) {
            resolve(said.path);
        } else {
            reject(Object.assign(new Error(said.error), { hint: said.hint, status: r.status }));
        }
    };
    r.onerror = () => reject(new Error(`the upload of ${file.name} broke off: try again`));
    r.onabort = () => reject(new Error('the upload was cancelled'));
    r.send(file);
});

const bar = h('progress', { max: '1', value: '0', 'aria-label': 'upload' });
const text = h('span', {});
const cancel = h('button', { type: 'button' }, 'Cancel');
const sending = h('div', { id: 'sending', hidden: true }, text, bar, cancel);
document.body.append(sending);

let cancelled = false;
cancel.onclick = () => {
    cancelled = true;
    sent?.abort();
};

// The name of a folder that every system takes, after the first file.
const folderName = (files) => {
    const now = new Date().toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');
    const base = files.length === 1 ? files[0].name.replace(/\.[^.]*$/, '') : 'photos';
    return `${base.replace(/[^\p{L}\p{N}_-]+/gu, '_').replace(/^[_-]+/, '').slice(0, 30) || 'photos'}-${now}`;
};

// Sends files that are photos or videos, and returns the folder that they are in and the names of the others.
const sendAll = async (files, folder, sum) => {
    const left = [];
    let before = 0, path = '', why = null;
    for (const [i, file] of files.entries()) {
        if (cancelled) {
            throw new Error('the upload was cancelled');
        }
        text.textContent = files.length > 1 ? `Uploading ${i + 1} of ${files.length}` : `Uploading ${file.name}`;
        try {
            path = await send(file, folder, (n) => { bar.value = (before + n) / sum; });
        } catch (err) {
            if (err.status !== 400 && err.status !== 409) {
                throw err;
            }
            why = err;
            left.push(file.name);
        }
        before += file.size;
    }
    if (!path) {
        throw why;
    }
    return { path, left };
};

const done = ({ left }) => {
    const some = left.length > 3 ? `${left.slice(0, 3).join(', ')} and ${left.length - 3} more` : left.join(', ');
    const without = left.length ? ` Skipped, not photos or already there: ${some}.` : '';
    toast(`Uploaded. Looking for the cameras now.${without}`);
};

export const upload = async (list) => {
    const files = [...list];
    if (!files.length) {
        return;
    }
    if (!sending.hidden) {
        toast('Wait until the upload has ended, or cancel it.', true);
        return;
    }
    const folder = folderName(files), sum = files.reduce((s, f) => s + f.size, 0);
    cancelled = false;
    bar.value = 0;
    sending.hidden = false;
    announce(`Uploading ${files.length === 1 ? files[0].name : `${files.length} files`}.`);
    try {
        await get('room', { folder, bytes: sum, files: files.length }); // before any of it is sent
        const result = await sendAll(files, folder, sum || 1);
        await post('capture', { path: result.path });
        done(result);
        location.hash = '#/';
    } catch (err) {
        toast(sentence(err), true);
    } finally {
        sending.hidden = true;
    }
};

// ---- dropping

// The files of an entry of a drop: itself, or all that are in a folder.
const filesOf = async (entry) => {
    if (entry.isFile) {
        return [await new Promise((resolve, reject) => { entry.file(resolve, reject); })];
    }
    const reader = entry.createReader(), files = [];
    for (;;) {
        const some = await new Promise((resolve, reject) => { reader.readEntries(resolve, reject); });
        if (!some.length) {
            return files;
        }
        for (const e of some.filter((x) => !x.name.startsWith('.'))) {
            files.push(...await filesOf(e));
        }
    }
};

const dropped = async (data) => {
    const entries = [...data.items].map((i) => i.webkitGetAsEntry?.()).filter(Boolean), plain = [...data.files];
    try {
        upload(entries.length ? (await Promise.all(entries.map(filesOf))).flat() : plain);
    } catch {
        toast('The dropped items cannot be read.', true);
    }
};

const input = document.getElementById('files'), drop = document.getElementById('drop');
document.getElementById('upload').onclick = () => input.click();
window.addEventListener('choosefiles', () => input.click());
input.onchange = async () => {
    await upload(input.files);
    input.value = '';
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
        dropped(e.dataTransfer);
    }
});
