"""Values that metricvalues_test.go compares with, from other people's implementations.

    python3 -m venv venv && venv/bin/pip install numpy scikit-image torch torchmetrics && venv/bin/python metrics.py

Printed with numpy 2.4.6, scikit-image 0.26.0, torch 2.15.0, torchmetrics 1.9.0. The two pictures are made of whole numbers, as the test makes them.
"""
import numpy as np
import torch
from skimage.metrics import peak_signal_noise_ratio, structural_similarity
from torch.nn.functional import conv2d
from torchmetrics.functional.image import structural_similarity_index_measure

W, H = 64, 48


def pictures():
    """A photo of bytes: gradients with noise, parts of it black and white. A rendering: that, with other gains and more noise."""
    state = 12345
    photo = np.zeros((H, W, 3), np.uint8)
    render = np.zeros((H, W, 3), np.float32)
    for y in range(H):
        for x in range(W):
            for c in range(3):
                state = (state * 1664525 + 1013904223) % 2**32
                value = 5 * x - 20 + (y * (c + 1)) // 2 + (state >> 26)
                photo[y, x, c] = min(max(value, 0), 255)
                state = (state * 1664525 + 1013904223) % 2**32
                value = (7 + c) * value // 9 + 3 * x // 10 + 8 * c + (state >> 27)
                # thousandths of a byte's step, so that quantising does something
                render[y, x, c] = np.float32(min(max(1000 * value + (state >> 16) % 1000, 0), 255000)) / np.float32(255000)
    return photo, render


def mask():
    m = np.ones((H, W), bool)
    m[10:30, 20:45] = False
    m[:, 60:] = False
    return m


def ssim_skimage(a, b):
    """Mean over the pixels whose window is inside the picture: scikit-image crops by half a window."""
    return structural_similarity(a, b, win_size=11, data_range=1.0, channel_axis=2, gaussian_weights=True, sigma=1.5, use_sample_covariance=False)


def ssim_torchmetrics(a, b):
    """Likewise, of torchmetrics' map. Its own mean takes in the rim, where it reflects the picture."""
    t = lambda v: torch.from_numpy(np.ascontiguousarray(v.transpose(2, 0, 1)))[None].double()
    return structural_similarity_index_measure(t(a), t(b), data_range=1.0, return_full_image=True)[1][..., 5:-5, 5:-5].mean().item()


def ssim_zeros(a, b, m=None):
    """Zeros outside the picture, the mean over all pixels (of the mask): by torch's convolution, from Wang et al. 2004, equation 13."""
    g = torch.exp(-(torch.arange(11, dtype=torch.float64) - 5) ** 2 / (2 * 1.5**2))
    g = g / g.sum()
    window = (g[:, None] * g[None, :]).expand(3, 1, 11, 11)
    f = lambda v: conv2d(v, window, padding=5, groups=3)
    t = lambda v: torch.from_numpy(np.ascontiguousarray(v.transpose(2, 0, 1)))[None].double()
    x, y = t(a), t(b)
    mx, my = f(x), f(y)
    xx, yy, xy = f(x * x) - mx * mx, f(y * y) - my * my, f(x * y) - mx * my
    s = (2 * mx * my + 0.01**2) * (2 * xy + 0.03**2) / ((mx**2 + my**2 + 0.01**2) * (xx + yy + 0.03**2))
    return (s.mean() if m is None else s[0][:, torch.from_numpy(m)].mean()).item()


def affine(render, photo, m):
    """Gain and offset photo -> rendering for each channel by numpy's least squares, and their inverse."""
    out = np.zeros_like(render)
    for c in range(3):
        x = photo[..., c][m]
        (gain, offset), *_ = np.linalg.lstsq(np.stack([x, np.ones_like(x)], 1), render[..., c][m], rcond=None)
        out[..., c] = np.clip((render[..., c] - offset) / gain, 0, 1)
    return out


def quadratic(render, photo, m):
    """Five rounds of polynomials of second degree, over what is not saturated, by numpy's least squares."""
    clear = lambda v: (v >= 0.5 / 255) & (v <= 1 - 0.5 / 255)
    first, now, ref, inside = render.reshape(-1, 3), render.reshape(-1, 3), photo.reshape(-1, 3), m.reshape(-1)
    for _ in range(5):
        r, g, b = now.T
        a = np.stack([r * r, r * g, r * b, g * g, g * b, b * b, r, g, b, np.ones_like(r)], 1)
        new = np.empty_like(now)
        for c in range(3):
            rows = inside & clear(first[:, c]) & clear(now[:, c]) & clear(ref[:, c])
            new[:, c] = np.clip(a @ np.linalg.lstsq(a[rows], ref[rows, c], rcond=None)[0], 0, 1)
        now = new
    return now.reshape(render.shape)


def main():
    bytes_, r = pictures()
    p, r = (bytes_.astype(np.float32) / np.float32(255)).astype(np.float64), r.astype(np.float64)
    m, every = mask(), np.ones((H, W), bool)
    q = np.floor(r * 255 + 0.5) / 255
    show = lambda name, value: print(f'\t"{name}": {value:.9f},')
    masked = lambda a, b: -10 * np.log10(np.mean((a[m] - b[m]) ** 2))
    cut = lambda v: v * m[..., None]
    show("gsplat PSNR", peak_signal_noise_ratio(p, r, data_range=1.0))
    show("gsplat SSIM", ssim_torchmetrics(r, p))
    assert abs(ssim_torchmetrics(r, p) - ssim_skimage(r, p)) < 1e-6
    show("inria PSNR", peak_signal_noise_ratio(p, q, data_range=1.0))
    show("inria SSIM", ssim_zeros(q, p))
    for name, fit in ("affine", affine), ("quadratic", quadratic):
        c = fit(r, p, every)
        show(f"gsplat {name} PSNR", peak_signal_noise_ratio(p, c, data_range=1.0))
        show(f"gsplat {name} SSIM", ssim_skimage(c, p))
        c = fit(q, p, every)
        show(f"inria {name} PSNR", peak_signal_noise_ratio(p, c, data_range=1.0))
        show(f"inria {name} SSIM", ssim_zeros(c, p))
        show(f"masked {name} PSNR", masked(p, fit(r, p, m)))
    show("masked PSNR", masked(p, r))
    show("masked inria SSIM", ssim_zeros(cut(q), cut(p), m))


if __name__ == "__main__":
    main()
