import { bytes, count, h, number, pathTo, picture, refill, time } from './parts.js';
import { chosen } from './runs.js';

// Runs side by side.

// Rows of the table: name, value, text, whether more is better (undefined: neither).
const rows = [
    ['PSNR', (r) => r.psnr, (v) => `${v.toFixed(2)} dB`, true],
    ['SSIM', (r) => r.ssim, (v) => v.toFixed(4), true],
    ['trained for', (r) => r.seconds, time, false],
    ['splats', (r) => r.splats, count, undefined],
    ['file', (r) => r.model_bytes, bytes, false],
    ['device memory', (r) => r.device_bytes, bytes, false],
    ['steps', (r) => r.step, number, undefined],
];

const line = (runs, [name, value, text, more]) => {
    const values = runs.map(value), known = values.filter(Boolean), most = Math.max(...known, 1e-9);
    let best = null;
    if (more !== undefined && known.length > 1) {
        best = more ? Math.max(...known) : Math.min(...known);
    }
    return h('tr', {}, h('th', { scope: 'row' }, name), values.map((v) => {
        const bar = h('i', { 'aria-hidden': 'true' }), wins = v && v === best;
        bar.style.width = `${v ? Math.max(2, 100 * v / most) : 0}%`;
        return h('td', { class: wins ? 'best' : '' }, v ? text(v) : '–',
            wins ? h('span', { class: 'unseen' }, ' (best)') : null, bar);
    }));
};

const heading = (r) => h('th', { scope: 'col' }, h('a', { href: pathTo('run', r.path) },
    h('div', { class: 'frame' }, picture(r)), h('strong', {}, r.name), h('small', {}, r.scene || '')));

const table = (runs) => h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'runs side by side' },
    h('table', { class: 'compare' }, h('thead', {}, h('tr', {}, h('td', {}), runs.map(heading))),
        h('tbody', {}, rows.map((r) => line(runs, r)))));

export const comparePage = (main) => {
    const picks = h('div', { class: 'picks', role: 'group', 'aria-label': 'runs to compare' }), box = h('div', {});
    main.append(h('h1', { class: 'title' }, 'Compare'), picks, box);
    let newest = [], begun = false;
    const fill = () => {
        const runs = newest.filter((r) => chosen.has(r.path));
        const text = newest.length ? 'Choose runs above.' : 'There are no runs yet.';
        refill(box, runs, () => (runs.length ? table(runs) : h('p', { class: 'dim' }, text)));
    };
    const pick = (r) => {
        const b = h('button', { type: 'button', class: 'pill', 'aria-pressed': String(chosen.has(r.path)) }, r.name);
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
        newest = s.runs || [];
        if (!begun && s.runs) {
            begun = true;
            if (!newest.some((r) => chosen.has(r.path))) {
                newest.filter((r) => r.has_model).slice(0, 3).forEach((r) => chosen.add(r.path));
            }
        }
        refill(picks, newest.map((r) => r.path), () => newest.map(pick));
        fill();
    };
};
