// The brush of an edit: what a hand paints over the picture. Places go from 0 at the left and the top to 1 at the right
// and at the bottom.

const MOST = 900; // places of a stroke

export class Brush {
    constructor() {
        this.radius = 0.05; // in heights of the picture
        this.path = [];
        this.over = null;   // where the mouse is, px
    }

    begin(r, x, y) {
        this.path = [];
        this.add(r, x, y);
    }

    // Takes in where the hand is; false where the stroke has become too long.
    add(r, x, y) {
        const clamp = (v) => Math.round(Math.min(Math.max(v, 0), 1) * 1e4) / 1e4;
        const p = [clamp(x / r.width), clamp(y / r.height)], last = this.path[this.path.length - 1];
        const far = last && Math.hypot((p[0] - last[0]) * r.width, (p[1] - last[1]) * r.height) / r.height;
        if (!last || far > this.radius / 4) {
            this.path.push(p);
        }
        return this.path.length < MOST;
    }

    get visible() { return this.path.length > 0 || this.over !== null; }

    draw(g, r) {
        const size = 2 * this.radius * r.height;
        g.lineCap = g.lineJoin = 'round';
        if (this.path.length) {
            g.strokeStyle = '#ff5a5a80';
            g.lineWidth = size;
            g.beginPath();
            const places = this.path.map(([x, y]) => [x * r.width, y * r.height]);
            g.moveTo(places[0][0] - 0.01, places[0][1]); // a touch is a dot
            places.forEach(([x, y]) => g.lineTo(x, y));
            g.stroke();
        }
        if (this.over) {
            for (const [colour, width] of [['#000', 3], ['#fff', 1.2]]) {
                g.strokeStyle = colour;
                g.lineWidth = width;
                g.beginPath();
                g.arc(this.over[0], this.over[1], size / 2, 0, 2 * Math.PI);
                g.stroke();
            }
        }
    }
}
