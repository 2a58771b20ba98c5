import { createViewer } from './index.js';

// Starts the viewer on the scene that the page describes: settings for the viewer, and what settings have no words for.
// It relies on these, beyond the viewer's documented interface: the model is the only entity with a component "gsplat"
// and is put below the root when it is loaded, before the viewer looks at its bounds; a field of view is that along the
// longer side of the canvas.

const scene = JSON.parse(document.getElementById('scene').textContent);

const tell = (text) => {
    const p = document.createElement('p');
    p.className = 'message';
    p.setAttribute('role', 'alert');
    p.textContent = text;
    document.body.append(p);
};

// The model: in this page, as base64, or beside it.
const load = async () => {
    const element = document.getElementById('model');
    if (!element) {
        const response = await fetch(scene.content);
        if (!response.ok) {
            throw new Error(`the server no longer serves the model (${response.status})`);
        }
        return response;
    }
    const text = atob(element.textContent);
    element.remove();
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) {
        bytes[i] = text.charCodeAt(i);
    }
    return new Response(bytes, { headers: { 'content-length': String(bytes.length) } });
};

// Degrees along the longer side of the window such that the photo's picture, wide and high at distance 1, is in it: all
// of it, but in an upright window, as a phone's. There its sides are cut off rather than that it becomes a strip.
const fieldOfView = ([wide, high]) => {
    const { innerWidth: width, innerHeight: height } = window;
    const scales = [wide / width, high / height];
    const most = height > width ? 1.6 * Math.min(...scales) : Infinity;
    const half = Math.min(Math.max(...scales), most) / 2 * Math.max(width, height);
    return 2 * Math.atan(half) * 180 / Math.PI;
};

// Lets the viewer's list of controls begin closed, because it hides a third of the scene. The viewer remembers what the
// user chooses, where it may.
const makeRoom = () => {
    const key = 'controlsPanelOpen';
    try {
        if (localStorage.getItem(key) === null) {
            localStorage.setItem(key, 'false');
        }
    } catch {
        // The browser keeps nothing for this page.
    }
};

// The way back to the page of vksplat open, which led here.
const linkBack = () => {
    const a = document.createElement('a');
    a.className = 'back';
    a.href = '../../';
    a.textContent = '‹ Runs';
    document.body.append(a);
};

const start = async () => {
    makeRoom();
    if (new URLSearchParams(location.search).has('desk')) {
        linkBack();
    }
    const background = scene.settings.background.color.map((c) => 255 * c);
    document.documentElement.style.background = `rgb(${background})`; // also where the canvas ends between two pixels
    const query = new URLSearchParams(location.search);
    scene.settings.cameras[0].initial.fov = fieldOfView(scene.picture);
    const filename = scene.content.split('/').pop();
    // The viewer itself fetches what a streamed model needs of it.
    const contents = filename === 'lod-meta.json' ? undefined : load();
    contents?.catch((err) => tell(`The model could not be loaded: ${err.message}.`));
    const viewer = await createViewer({
        container: document.body,
        settings: scene.settings,
        contentUrl: scene.content,
        contentFilename: filename,
        contents,
        renderer: query.has('webgl') ? 'webgl' : 'webgpu',
        ui: !query.has('noui'),
        aa: scene.antialiased,
        budget: scene.budget,
        noanim: true
    });
    // As vksplat render draws: by depth along the camera's axis, and small splats too.
    viewer.app.scene.gsplat.radialSorting = false;
    viewer.app.scene.gsplat.minContribution = 0;
    // The viewer turns models upside down, which is right for those whose up is -y.
    viewer.app.root.on('childinsert', (node) => {
        if (node.gsplat) {
            node.setLocalRotation(...scene.rotation);
        }
    });
    viewer.events.once('loaded:changed', () => {
        viewer.state.cameraMode = 'orbit';
        document.body.dataset.loaded = 'true';
    });
};

start().catch((err) => tell(`The viewer could not start: ${err.message}. It needs a browser with WebGL 2.`));
