// SPDX-License-Identifier: Apache-2.0
// What does the page of `kiln counters --html` do? Sums of a chosen metric by line; PTX; a warp.
"use strict";
(() => {
  const { byId: $, make, pressable } = kiln;
  const data = kiln.data();
  const ids = data.metrics.map(([id]) => id);
  const of = (counts, name) => counts[ids.indexOf(name)] || 0;
  const sum = (counts, names) => names.reduce((all, name) => all + of(counts, name), 0);
  const GLOBAL = ["global_ld", "global_st", "global_atom", "global_red"];
  const all = (suffix) => GLOBAL.map((name) => `${name}_${suffix}`);
  const ratio = (above, below) => (below ? above / below : 0);
  // Ratios beside the plain counts.
  const derived = {
    "sectors_per_request": (c) => ratio(sum(c, all("sectors")), sum(c, all("requests"))),
    "bytes_moved": (c) => 32 * sum(c, all("sectors")),
    "active_lanes": (c) => ratio(of(c, "thread_inst_executed"), of(c, "inst_executed")),
    "bank_conflicts": (c) => of(c, "shared_ld_conflicts") + of(c, "shared_st_conflicts"),
  };
  const value = (counts, name) => (derived[name] ? derived[name](counts) : of(counts, name));
  const shown = (number) =>
    number === 0 ? "" : Number.isInteger(number) ? number.toLocaleString("en") : number.toFixed(2);

  let launch = 0, metric = "inst_executed", chosen = null;
  const place = (at, line) => at || `PTX:${line}`;

  // counts by place, of the launch
  const sums = () => {
    const out = new Map();
    for (const [program, index, counts] of data.launches[launch].sites) {
      const [at, line] = data.programs[program].instructions[index];
      const key = place(at, line);
      if (!out.has(key)) out.set(key, new Array(ids.length).fill(0));
      const to = out.get(key);
      for (const [which, count] of counts) to[which] += count;
    }
    return out;
  };
  const dense = (counts) => {
    const out = new Array(ids.length).fill(0);
    for (const [which, count] of counts) out[which] = count;
    return out;
  };

  const fillMetrics = () => {
    const found = new Set();
    for (const counts of sums().values())
      for (const name of [...Object.keys(derived), ...ids]) if (value(counts, name)) found.add(name);
    const select = $("metric");
    select.replaceChildren();
    for (const name of [...Object.keys(derived), ...ids]) {
      if (!found.has(name)) continue;
      const option = make("option", "", name);
      option.title = (data.metrics.find(([id]) => id === name) || [])[1] || "";
      select.append(option);
    }
    if (!found.has(metric)) metric = select.value;
    select.value = metric;
  };

  const heatCell = (number, most) => {
    const cell = make("td", "heat", shown(number));
    cell.style.setProperty("--heat", most ? number / most : 0);
    return cell;
  };

  const drawSource = () => {
    const counts = sums();
    const most = Math.max(0, ...[...counts.values()].map((one) => value(one, metric)));
    const table = make("table", "code");
    const files = new Map();
    for (const key of counts.keys()) {
      const colon = key.lastIndexOf(":");
      const file = key.slice(0, colon);
      if (!files.has(file)) files.set(file, []);
      files.get(file).push(Number(key.slice(colon + 1)));
    }
    for (const [file, numbers] of files) {
      const head = make("tr"), cell = make("th", "", file);
      cell.colSpan = 3;
      head.append(cell);
      table.append(head);
      const text = data.sources[file];
      // Without the file, the lines that ran; with it, from some lines before the first.
      const first = Math.max(1, Math.min(...numbers) - 4);
      const last = text ? Math.min(text.length, Math.max(...numbers) + 3) : 0;
      const rows = text
        ? Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i)
        : [...numbers].sort((a, b) => a - b);
      for (const number of rows) {
        const key = `${file}:${number}`, one = counts.get(key);
        const row = make("tr", one ? "has" : "");
        row.dataset.at = key;
        row.append(heatCell(one ? value(one, metric) : 0, most), make("td", "number", number),
          make("td", "", text ? text[number - 1] : ""));
        if (one) pressable(row, () => choose(key));
        table.append(row);
      }
    }
    $("source").replaceChildren(table);
  };

  const choose = (key) => {
    chosen = key;
    for (const row of document.querySelectorAll("#source tr"))
      row.classList.toggle("chosen", row.dataset.at === key);
    drawPtx();
  };

  const drawPtx = () => {
    const table = make("table", "code"), rows = [];
    for (const [program, index, counts, sample] of data.launches[launch].sites) {
      const [at, line, ptx, outer] = data.programs[program].instructions[index];
      if (place(at, line) === chosen) rows.push([line, ptx, dense(counts), sample, outer]);
    }
    const most = Math.max(0, ...rows.map((row) => value(row[2], metric)));
    $("warp").replaceChildren();
    for (const [line, ptx, counts, sample, outer] of rows) {
      const row = make("tr", sample >= 0 ? "has" : "");
      row.append(heatCell(value(counts, metric), most), make("td", "number", line), make("td", "", ptx));
      if (outer) row.title = `inlined into ${outer}`;
      if (sample >= 0) pressable(row, () => {
        for (const other of table.rows) other.classList.toggle("chosen", other === row);
        drawWarp(data.samples[sample]);
      });
      table.append(row);
    }
    const title = make("h3", "", `${chosen || ""}: PTX`);
    $("ptx").replaceChildren(title, table);
    const first = rows.findIndex((row) => row[3] >= 0);
    if (first >= 0) table.rows[first].click();
  };

  // ---- a warp: each row is a sector of global memory, or a word of the banks
  const svg = (tag, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, one] of Object.entries(attributes)) node.setAttribute(name, one);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const drawWarp = (sample) => {
    const shared = sample.space === "shared";
    const unit = shared ? 128 : 32, cell = shared ? 22 : 44, left = 64, high = 22;
    const rows = [...new Set(sample.at.flatMap((at) => {
      if (at < 0) return [];
      const out = [];
      for (let one = Math.floor(at / unit); one <= Math.floor((at + sample.bytes - 1) / unit); ++one)
        out.push(one);
      return out;
    }))].sort((a, b) => a - b);
    // How many different words each bank has to give.
    const words = Array.from({ length: 32 }, () => new Set());
    for (const at of sample.at)
      for (let word = Math.floor(at / 4); at >= 0 && word <= Math.floor((at + sample.bytes - 1) / 4); ++word)
        words[word % 32].add(word);
    const units = unit / 4, width = left + units * cell + 8;
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${(rows.length + 1) * high + 6}`, role: "img",
      "aria-label": "addresses of a warp",
      // Its labels stay readable: the pane scrolls instead.
      style: `width:${width}px; max-width:none`,
    });
    for (let i = 0; i < units; ++i)
      if (shared) picture.append(svg("text", { x: left + i * cell + 4, y: 13 }, i));
    if (!shared) picture.append(svg("text", { x: left, y: 13 }, "32-byte sectors, lanes in them"));
    rows.forEach((row, r) => {
      const y = (r + 1) * high;
      picture.append(svg("text", { x: 2, y: y + 14 }, `+${row * unit}`));
      for (let i = 0; i < units; ++i) {
        const begin = row * unit + 4 * i, lanes = [];
        sample.at.forEach((at, lane) => {
          if (at >= 0 && at < begin + 4 && at + sample.bytes > begin) lanes.push(lane);
        });
        const crowded = shared && words[i].size > 1 && lanes.length;
        const kind = lanes.length ? `lane${crowded ? " two" : ""}` : "lane off";
        const box = svg("rect", { x: left + i * cell, y: y + 1, width: cell - 1, height: high - 2, class: kind });
        box.append(svg("title", {}, lanes.length ? `lanes ${lanes.join(" ")}` : "nobody"));
        picture.append(box);
        if (lanes.length)
          picture.append(svg("text", { x: left + i * cell + 3, y: y + 14 },
            lanes.length > 1 && cell > 30 ? `${lanes[0]}+${lanes.length - 1}` : lanes[0]));
      }
    });
    const most = Math.max(...words.map((one) => one.size));
    const title = make("h3", "", `${sample.space} ${sample.kind}, ${sample.bytes} bytes per lane: ` +
      (shared ? `up to ${most} word${most > 1 ? "s" : ""} in a bank` : `${rows.length} sectors`));
    $("warp").replaceChildren(title, picture);
  };

  const showLaunch = () => {
    for (const section of document.querySelectorAll(".launch"))
      section.hidden = Number(section.dataset.launch) !== launch;
    fillMetrics();
    drawSource();
    const counts = sums();
    let best = null;
    for (const [key, one] of counts)
      if (!best || value(one, metric) > value(counts.get(best), metric)) best = key;
    if (!counts.has(chosen)) chosen = best;
    if (chosen) choose(chosen);
  };
  data.launches.forEach((one, i) => {
    const option = make("option", "", one.name);
    option.value = i;
    $("launch").append(option);
  });
  $("launch").addEventListener("change", () => { launch = Number($("launch").value); showLaunch(); });
  $("metric").addEventListener("change", () => { metric = $("metric").value; showLaunch(); });
  if (data.launches.length) showLaunch();
  document.documentElement.dataset.ready = "yes";
})();
