// SPDX-License-Identifier: Apache-2.0
// What does the page of `kiln inspect --html` do? Tables from the data in it; source, PTX and SASS linked by line.
"use strict";
(() => {
  const { byId: $, make, pressable, sortable } = kiln;
  const data = kiln.data();

  // ---- light and dark
  const root = document.documentElement;
  const dark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  $("theme").addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; });

  // ---- kernels: a body of the table for each function, whose instances fold
  const span = ([low, high]) => (low === high ? `${high}` : `${low} to ${high}`);
  const percents = (range) => `${span(range)} %`;
  const total = ([, high]) => high;
  // title, meaning, text of an instance, text of a group, key to sort by, kind
  const columns = [
    ["arch", "", (k) => k.arch, (g) => g.archs, (k) => k.arch, (g) => g.archs, "text"],
    ["regs", "registers per thread", (k) => k.registers, (g) => span(g.registers),
      (k) => k.registers, (g) => total(g.registers)],
    ["occupancy", "blocks that fit on a multiprocessor x threads per block, and what limits them",
      (k) => k.occupancy, (g) => percents(g.occupancy), (k) => parseFloat(k.occupancy) || 0,
      (g) => g.occupancy[0], "text"],
    ["bounds", "__launch_bounds__: threads per block, least blocks per multiprocessor",
      (k) => k.bounds, () => "", (k) => k.bounds, () => "", "text"],
    ["shared", "static shared memory, bytes: the kernel's + the driver's",
      (k) => (k.reserved ? `${k.shared} + ${k.reserved}` : `${k.shared}`), (g) => span(g.shared),
      (k) => k.shared, (g) => total(g.shared)],
    ["stack", "bytes per thread", (k) => k.stack, (g) => span(g.stack), (k) => k.stack,
      (g) => total(g.stack)],
    ["spills", "bytes of spill stores / loads", (k) => `${k.stores} / ${k.loads}`,
      (g) => span(g.spills), (k) => k.stores + k.loads, (g) => total(g.spills)],
    ["const", "bytes of constant bank 0", (k) => k.constant, () => "", (k) => k.constant, () => ""],
    ["params", "bytes of parameters", (k) => k.parameters_bytes, () => "",
      (k) => k.parameters_bytes, () => ""],
    ["bar", "barriers", (k) => k.barriers, () => "", (k) => k.barriers, () => ""],
    ["instr", "instructions", (k) => k.instructions, (g) => span(g.instructions),
      (k) => k.instructions, (g) => total(g.instructions)],
    ["mix", "instructions by class", (k) => k.mix, () => "", (k) => k.mix, () => "", "text mix soft"],
  ];
  const KEYS = ["arguments", "parameters", "listing", "arch", "registers", "occupancy", "bounds",
    "shared", "reserved", "stack", "stores", "loads", "constant", "parameters_bytes", "barriers",
    "instructions", "mix"];
  const kernels = [];  // {row, body, text, kernel}
  const cells = (row, of, which, key) => {
    for (const column of columns) {
      const cell = make("td", column[6] || "", String(column[which](of)));
      cell.dataset.value = column[key](of);
      cell.dataset.label = column[0];
      row.append(cell);
    }
  };
  // A break is allowed where a reader would make one.
  const nameOf = (name, kernel) => {
    const cell = make("td", "name");
    cell.append(make("b", "", name), make("span", "soft", kernel.arguments),
      make("span", "soft", kernel.parameters));
    cell.dataset.value = name + kernel.arguments;
    return cell;
  };
  const instanceRow = (group, kernel, kind) => {
    const row = make("tr", kernel.listing >= 0 ? `row ${kind}` : kind);
    row.append(nameOf(kind ? "" : group.name, kernel));
    cells(row, kernel, 2, 4);
    if (kernel.listing >= 0)
      pressable(row, () => { show(kernel.listing); $("code").open = true; });
    kernels.push({ row, kernel,
      text: `${group.name}${kernel.arguments}${kernel.parameters} ${kernel.arch}`.toLowerCase() });
    return row;
  };
  const fold = (body, open) => {
    const button = body.rows[0].querySelector("button.fold");
    if (button) button.setAttribute("aria-expanded", open);
    body.classList.toggle("folded", !open);
  };
  const groupBody = (group) => {
    const body = make("tbody");
    const rows = group.rows.map((row) => Object.fromEntries(row.map((one, i) => [KEYS[i], one])));
    if (group.count === 1) {
      body.append(instanceRow(group, rows[0], ""));
      return body;
    }
    const head = make("tr", "group"), name = make("td", "name"), button = make("button", "fold");
    button.type = "button";
    button.append(make("b", "", group.name), make("span", "soft", ` ${group.count} instances`));
    button.addEventListener("click", () => fold(body, body.classList.contains("folded")));
    name.append(button);
    name.dataset.value = group.name;
    head.append(name);
    cells(head, group.sums, 3, 5);
    body.append(head, ...rows.map((kernel) => instanceRow(group, kernel, "instance")));
    if (rows.length < group.count) {
      const more = make("tr", "instance rest"), cell = make("td", "name soft",
        `${group.count - rows.length} more: kiln inspect --kernels --kernel TEXT`);
      cell.colSpan = columns.length + 1;
      more.append(cell);
      body.append(more);
    }
    fold(body, data.groups.length === 1 && rows.length <= 40);
    return body;
  };
  const fillKernels = () => {
    const table = $("kernels");
    if (!table) return;
    const head = make("tr");
    head.append(make("th", "name", "kernel"));
    for (const [title, meaning, , , , , kind] of columns) {
      const cell = make("th", kind ? "text" : "", title);
      cell.title = meaning;
      head.append(cell);
    }
    for (const cell of head.cells) cell.scope = "col";
    table.createTHead().append(head);
    table.append(...data.groups.map(groupBody));
    sortable(table);
    const archs = new Set(kernels.map(({ kernel }) => kernel.arch));
    for (const arch of [...archs].sort()) $("arch").append(make("option", "", arch));
    for (const id of ["filter", "arch", "spilling"]) $(id).addEventListener("input", filterKernels);
  };
  const filterKernels = () => {
    if (!$("kernels")) return;
    const words = [$("search").value, $("filter").value].map((word) => word.toLowerCase());
    const arch = $("arch").value, spilling = $("spilling").checked;
    const asked = words.some(Boolean) || arch || spilling;
    let shown = 0;
    for (const { row, kernel, text } of kernels) {
      const fits = words.every((word) => text.includes(word)) && (!arch || kernel.arch === arch) &&
        (!spilling || kernel.stores + kernel.loads > 0);
      row.classList.toggle("hidden", !fits);
      shown += fits;
    }
    for (const body of $("kernels").tBodies) {
      const some = [...body.rows].some((row) =>
        !row.classList.contains("hidden") && !row.matches(".group, .rest"));
      body.classList.toggle("hidden", !some);
      // What was found is shown, also in a group that was folded.
      if (asked && words.some(Boolean) && some && body.rows[0].matches(".group")) {
        const name = body.rows[0].textContent.toLowerCase();
        if (!words.every((word) => name.includes(word))) fold(body, true);
      }
    }
    $("matches").textContent = asked ? `${shown} shown` : "";
  };

  // ---- source, PTX, SASS
  let shown = -1, pinned = null;
  const hint = "Hover: what belongs together lights up. Click: it stays lit, and the other panes scroll there.";
  const byKey = new Map();  // "s3:17" -> lines of all panes that belong to source line 17 of file 3
  const hue = (key) => { let h = 0; for (const c of key) h = (h * 31 + c.charCodeAt(0)) % 3600; return (h * 137.5) % 360; };
  const link = (line, keys) => {
    if (!keys.length) return;
    line.classList.add("linked");
    line.style.setProperty("--hue", hue(keys[0]).toFixed(0));
    line.keys = keys;
    for (const key of keys) {
      if (!byKey.has(key)) byKey.set(key, []);
      byKey.get(key).push(line);
    }
  };
  const mark = (keys, kind, on) => {
    for (const key of keys) for (const line of byKey.get(key) || []) line.classList.toggle(kind, on);
  };
  const stackText = (code, frames) => (frames || []).map(([file, line, name]) =>
    `${data.files[file].path}:${line}${name === undefined ? "" : " in " + data.names[name]}`).join("  called from  ");
  const reveal = (keys, except) => {
    for (const pane of ["source", "ptx", "sass"]) {
      const box = $(pane);
      if (box === except) continue;
      const first = keys.flatMap((key) => byKey.get(key) || []).find((line) => box.contains(line));
      if (first) box.scrollTop = first.offsetTop - box.offsetTop - box.clientHeight / 3;
    }
  };
  const listen = (box) => {
    const at = (event) => event.target.closest(".line.linked");
    box.addEventListener("mouseover", (event) => { const line = at(event); if (line) mark(line.keys, "lit", true); });
    box.addEventListener("mouseout", (event) => { const line = at(event); if (line) mark(line.keys, "lit", false); });
    box.addEventListener("click", (event) => {
      if (event.target.classList.contains("target")) {
        event.preventDefault();
        const to = document.getElementById("label" + event.target.dataset.label);
        if (to) box.scrollTop = to.offsetTop - box.offsetTop - 20;
        return;
      }
      const line = at(event);
      if (!line) return;
      if (pinned) mark(pinned, "pinned", false);
      pinned = pinned === line.keys ? null : line.keys;
      if (!pinned) { $("stack").textContent = hint; return; }
      mark(pinned, "pinned", true);
      $("stack").textContent = line.stack || "\u00a0";
      reveal(pinned, box);
    });
  };

  const controlText = (bits) => {
    const wait = [0, 1, 2, 3, 4, 5].map((i) => ((bits >> (11 + i)) & 1 ? i : "-")).join("");
    const barrier = (n) => (n === 7 ? "-" : n);
    return `B${wait}:R${barrier((bits >> 8) & 7)}:W${barrier((bits >> 5) & 7)}:${(bits >> 4) & 1 ? "-" : "Y"}:S${String(bits & 15).padStart(2, "0")}`;
  };
  const keysOf = (frames) => (frames || []).map(([file, line]) => `s${file}:${line}`);

  const showSource = (code, used) => {
    const box = $("source");
    box.replaceChildren();
    const chosen = Number($("file").value);
    const file = data.files[chosen];
    if (!file || !file.lines) {
      box.append(make("div", "soft", file ? `${file.path}: ${file.why}` : "no line information: build with -lineinfo"));
      return;
    }
    file.lines.forEach((text, i) => {
      const line = make("div", "line");
      line.append(make("span", "number", i + 1), make("span", "", text));
      const key = `s${chosen}:${i + 1}`;
      if (used.has(key)) link(line, [key]);
      line.id = `source-${chosen}-${i + 1}`;
      box.append(line);
    });
  };
  const showPtx = (code) => {
    const box = $("ptx");
    box.replaceChildren();
    if (!code.ptx.length) { box.append(make("div", "soft", "no PTX for this image")); return; }
    const sources = new Map();  // PTX line -> keys, by way of the SASS
    for (const [, , , frames, ptx] of code.lines) {
      if (!ptx) continue;
      if (!sources.has(ptx)) sources.set(ptx, new Set());
      for (const key of keysOf(code.frames[frames])) sources.get(ptx).add(key);
    }
    code.ptx.forEach((text, i) => {
      const number = code.ptx_first + i + 1;
      const line = make("div", "line");
      line.append(make("span", "number", number), make("span", "", text));
      const keys = sources.get(number);
      if (keys && keys.size) link(line, [...keys]);
      box.append(line);
    });
  };
  const showSass = (code) => {
    const box = $("sass");
    box.replaceChildren();
    const labels = new Map(code.labels);
    code.lines.forEach(([text, control, live, frames], i) => {
      if (labels.has(i)) {
        const label = make("div", "line label", labels.get(i) + ":");
        label.id = "label" + labels.get(i);
        box.append(label);
      }
      const line = make("div", "line");
      line.append(make("span", "live", live < 0 ? "" : live), make("span", "control", controlText(control)),
        make("span", "number", (code.first + i * 16).toString(16).padStart(4, "0")));
      const target = /`\(([^)]*)\)/.exec(text);
      if (target) {
        const link_ = make("a", "target", target[1]);
        link_.href = "#";
        link_.dataset.label = target[1];
        line.append(make("span", "", text.slice(0, target.index)), link_, make("span", "", text.slice(target.index + target[0].length)));
      } else {
        line.append(make("span", "", text));
      }
      line.stack = stackText(code, code.frames[frames]);
      if (line.stack) line.title = line.stack;
      link(line, keysOf(code.frames[frames]));
      box.append(line);
    });
  };
  const draw = () => {
    const code = data.code[shown];
    byKey.clear();
    pinned = null;
    $("stack").textContent = hint;
    const used = new Set(code.frames.flatMap(keysOf));
    showSource(code, used);
    showPtx(code);
    showSass(code);
  };
  const show = (index) => {
    shown = index;
    const code = data.code[index];
    $("pick").value = String(index);
    for (const { row, kernel } of kernels) row.classList.toggle("chosen", kernel.listing === index);
    const files = [...new Set(code.frames.flatMap((frames) => frames.map(([file]) => file)))];
    $("file").replaceChildren(...files.map((file) => {
      const option = make("option", "", data.files[file].path);
      option.value = String(file);
      return option;
    }));
    const counts = new Map();
    for (const [, , , frames] of code.lines) for (const [file] of (code.frames[frames] || []).slice(-1)) counts.set(file, (counts.get(file) || 0) + 1);
    const best = [...counts].sort((a, b) => b[1] - a[1])[0];
    if (best) $("file").value = String(best[0]);
    draw();
  };

  // ---- search: kernels whose name has it, lines of code that have it
  const search = () => {
    const word = $("search").value.toLowerCase();
    filterKernels();
    let first = null;
    for (const line of document.querySelectorAll(".lines .line")) {
      const found = word.length > 1 && line.textContent.toLowerCase().includes(word);
      line.classList.toggle("found", found);
      if (found && !first) first = line;
    }
    for (const row of document.querySelectorAll("tr.symbol"))
      row.classList.toggle("hidden", word !== "" && !row.textContent.toLowerCase().includes(word));
    if (first) first.parentElement.scrollTop = first.offsetTop - first.parentElement.offsetTop - 60;
  };

  fillKernels();
  if (data.code.length) {
    data.code.forEach((code, i) => {
      const option = make("option", "", `${code.arch}  ${code.name}`);
      option.value = String(i);
      $("pick").append(option);
    });
    $("pick").addEventListener("change", () => show(Number($("pick").value)));
    $("file").addEventListener("change", draw);
    for (const pane of ["source", "ptx", "sass"]) listen($(pane));
    show(0);
  }
  $("search").addEventListener("input", search);
  root.dataset.ready = "yes";
})();
