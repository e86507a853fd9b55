// SPDX-License-Identifier: Apache-2.0
// How is a timeline zoomed? It is drawn anew for each zoom, in a box that scrolls: ticks stay round
// and names keep their shape.
"use strict";
for (const box of document.querySelectorAll(".timeline")) {
  const picture = box.querySelector("svg"), view = picture.viewBox.baseVal;
  const end = Number(picture.dataset.end), left = Number(picture.dataset.left), letter = 6.8;
  const high = view.height, least = parseFloat(getComputedStyle(picture).minWidth) || 0;
  let zoom = 1;
  // As src/report/charts/timeline.cpp writes it.
  const name = (us) => {
    const text = (number) => String(Number(number.toPrecision(4)));
    if (us === 0) return "0";
    if (us >= 1e6) return text(us / 1e6) + " s";
    if (us >= 1e3) return text(us / 1e3) + " ms";
    return us >= 1 ? text(us) + " us" : text(us * 1e3) + " ns";
  };
  const svg = (tag, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, one] of Object.entries(attributes)) node.setAttribute(key, one);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const ticks = (wide, scale) => {
    const raw = end / Math.max(4, (wide - left) / 110), power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => raw <= one);
    const nodes = [];
    for (let i = 0; i * step <= end * (1 + 1e-9); ++i) {
      const x = left + i * step * scale, last = x > wide - 40;
      nodes.push(svg("line", { class: "axis", x1: x, x2: x, y1: 16, y2: high }),
        svg("text", { x, y: 11, "text-anchor": i === 0 ? "start" : last ? "end" : "middle" },
          name(i * step)));
    }
    picture.querySelector(".ticks").replaceChildren(...nodes);
  };
  const draw = () => {
    const wide = Math.max(box.clientWidth, least) * zoom, scale = (wide - left - 10) / end;
    picture.setAttribute("viewBox", `0 0 ${wide} ${high}`);
    picture.style.width = `${wide}px`;
    picture.style.height = `${high}px`;
    picture.dataset.zoom = zoom;
    ticks(wide, scale);
    for (const span of picture.querySelectorAll(".span")) {
      const x = left + span.dataset.begin * scale, width = Math.max(1, span.dataset.us * scale);
      const bar = span.querySelector("rect"), label = span.querySelector("text");
      bar.setAttribute("x", x);
      bar.setAttribute("width", width);
      if (!label) continue;
      const room = Math.floor((width - 8) / letter), full = label.dataset.name;
      label.setAttribute("x", x + 4);
      label.textContent =
        room < 4 ? "" : full.length > room ? full.slice(0, room - 1) + "\u2026" : full;
    }
  };
  const set = (next, at) => {
    const part = (box.scrollLeft + at) / (picture.clientWidth || 1);
    zoom = Math.min(500, Math.max(1, next));
    draw();
    box.scrollLeft = part * picture.clientWidth - at;
  };
  const middle = () => box.clientWidth / 2;
  for (const button of box.previousElementSibling.querySelectorAll("[data-zoom]"))
    button.addEventListener("click", () =>
      set(button.dataset.zoom === "0" ? 1 : zoom * Number(button.dataset.zoom), middle()));
  box.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;  // else nobody could scroll past the picture
    event.preventDefault();
    set(zoom * (event.deltaY < 0 ? 1.25 : 0.8), event.clientX - box.getBoundingClientRect().left);
  }, { passive: false });
  box.addEventListener("keydown", (event) => {
    const factor = { "+": 2, "=": 2, "-": 0.5, "0": 1 / zoom }[event.key];
    if (!factor || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    set(zoom * factor, middle());
  });
  let from = null;
  box.addEventListener("pointerdown", (event) => {
    from = { x: event.clientX, left: box.scrollLeft };
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", (event) => {
    if (from) box.scrollLeft = from.left - (event.clientX - from.x);
  });
  for (const kind of ["pointerup", "pointercancel"])
    box.addEventListener(kind, () => { from = null; });
  addEventListener("resize", draw);
  draw();
}
