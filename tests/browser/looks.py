# SPDX-License-Identifier: Apache-2.0
"""Can a page be read in every look: light, dark, and in a window 700 px wide?

KILN_SCREENSHOTS=FOLDER keeps a picture of the whole page in each of them.
"""

from __future__ import annotations

import os
from pathlib import Path

from devtools import Browser

LOOKS = (("light", 0), ("dark", 0), ("narrow", 700))  # and how wide: 0 as the window is

# What sticks out of the page.
WIDE = """(() => {
  if (document.documentElement.scrollWidth <= window.innerWidth) return [];
  return [...document.querySelectorAll('body *')]
    .filter((n) => n.getBoundingClientRect().right > window.innerWidth + 1)
    .map((n) => `${n.tagName}.${n.className} ${n.textContent.slice(0, 40)}`).slice(0, 5);
})()"""

# Labels that stick out of their chart: it cuts them.
CUT = """[...document.querySelectorAll('svg text')].filter((n) => {
  const chart = n.ownerSVGElement.getBoundingClientRect(), label = n.getBoundingClientRect();
  return label.width && (label.left < chart.left - 1 || label.right > chart.right + 1 ||
    label.top < chart.top - 1 || label.bottom > chart.bottom + 1);
}).map((n) => n.textContent)"""

# Labels that shrank with their chart until nobody can read them: below 9 px.
SMALL = """[...document.querySelectorAll('svg text')].filter((n) => {
  const {a, b, c, d} = n.getScreenCTM(), scale = Math.sqrt(Math.abs(a * d - b * c));
  return n.getClientRects().length && parseFloat(getComputedStyle(n).fontSize) * scale < 9;
}).map((n) => n.textContent)"""

# Text that is too like what is behind it, by WCAG 2.1: a contrast of 4.5 can be read. Behind it are
# the backgrounds of what it is in, and in a chart the last bar that is drawn under it.
PALE = """(() => {
  const canvas = document.createElementNS('http://www.w3.org/1999/xhtml', 'canvas');
  const pen = canvas.getContext('2d', {willReadFrequently: true});
  const parts = (color) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = color;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const light = (color) => {
    const [r, g, b] = color.map((c) => c / 255).map(
      (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const over = (top, below, opacity = 1) => {
    const share = (top.length > 3 ? top[3] : 1) * opacity;
    return [0, 1, 2].map((i) => top[i] * share + below[i] * (1 - share));
  };
  const behind = (n) => {
    const layers = [];
    for (let at = n; at; at = at.parentElement)
      layers.unshift(getComputedStyle(at).backgroundColor);
    return layers.map(parts).reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const bar_under = (n) => {
    const box = n.getBoundingClientRect(), x = box.left + 2, y = (box.top + box.bottom) / 2;
    return [...n.ownerSVGElement.querySelectorAll('rect')].filter((r) => {
      const b = r.getBoundingClientRect();
      return b.left <= x && x <= b.right && b.top <= y && y <= b.bottom;
    }).pop();
  };
  const out = new Set();
  for (const n of document.querySelectorAll('body *, svg text')) {
    const own = [...n.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim());
    const style = getComputedStyle(n), is_label = n.tagName === 'text';
    if (!own || !n.getClientRects().length || style.visibility === 'hidden') continue;
    if (n.closest('svg') && !is_label) continue;
    let ground = behind(is_label ? n.ownerSVGElement : n);
    const bar = is_label && bar_under(n);
    if (bar) {
      const look = getComputedStyle(bar);
      ground = over(parts(look.fill), ground, look.fillOpacity * look.opacity);
    }
    const text = over(parts(is_label ? style.fill : style.color), ground, style.opacity);
    const [low, high] = [light(ground), light(text)].sort((a, b) => a - b);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < 4.5)
      out.add(`${n.tagName} ${n.className.baseVal ?? n.className}, contrast ` +
              `${contrast.toFixed(1)}: ${n.textContent.slice(0, 30)}`);
  }
  return [...out].slice(0, 8);
})()"""

CHECKS = {"too wide": WIDE, "cut": CUT, "too small": SMALL, "pale": PALE}


def faults_of_look(browser: Browser) -> list[str]:
    """Of the page as it is shown now: what is wrong, and where."""
    return [f"{what}: {text}" for what, script in CHECKS.items() for text in browser.run(script)]


def check_looks(browser: Browser, name: str) -> None:
    """Leaves the browser in the light theme, as wide as it was."""
    folder = os.environ.get("KILN_SCREENSHOTS")
    faults = []
    for look, width in LOOKS:
        browser.theme("dark" if look == "dark" else "light")
        browser.width(width)
        faults += [f"{name}, {look}: {fault}" for fault in faults_of_look(browser)]
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            browser.screenshot(Path(folder) / f"{name}-{look}.png")
    browser.width(0)
    browser.theme("light")
    assert not faults, "\n".join(faults)
