// Curves over steps, with the colours of the page.

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Draws points [step, value] on a canvas. With `log`, values above 0 on a logarithmic scale.
export const draw = (canvas, points, log) => {
    const scale = window.devicePixelRatio || 1;
    const width = canvas.clientWidth * scale, height = canvas.clientHeight * scale;
    if (!width || !height) {
        return;
    }
    canvas.width = width;
    canvas.height = height;
    const g = canvas.getContext('2d');
    const list = points.filter(([, v]) => Number.isFinite(v) && (!log || v > 0))
        .map(([s, v]) => [s, log ? Math.log(v) : v]);
    if (list.length < 2) {
        return;
    }
    const values = list.map(([, v]) => v);
    let low = Math.min(...values), high = Math.max(...values);
    if (high - low < 1e-9) {
        high += 1;
        low -= 1;
    }
    const first = list[0][0], last = list[list.length - 1][0];
    const text = (v) => {
        const n = log ? Math.exp(v) : v;
        return n >= 1000 ? Math.round(n).toLocaleString('en') : n.toPrecision(3);
    };
    g.font = `${11 * scale}px system-ui, sans-serif`;
    const pad = 4 * scale, left = 2 * pad + Math.max(...[high, low].map((v) => g.measureText(text(v)).width));
    const x = (s) => left + (width - left - pad) * (s - first) / Math.max(last - first, 1);
    const y = (v) => height - pad - (height - 2 * pad) * (v - low) / (high - low);
    g.lineWidth = 1.5 * scale;
    g.strokeStyle = colour('--accent');
    g.beginPath();
    list.forEach(([s, v], i) => (i ? g.lineTo(x(s), y(v)) : g.moveTo(x(s), y(v))));
    g.stroke();
    g.fillStyle = colour('--dim');
    g.textBaseline = 'top';
    g.fillText(text(high), pad, pad);
    g.textBaseline = 'bottom';
    g.fillText(text(low), pad, height - pad);
};
