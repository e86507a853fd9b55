// SPDX-License-Identifier: Apache-2.0
// What does the page of `kiln tune --html` do? A reader chooses the two axes of the heat map, and
// what colours it: the time, or without a GPU what is known from building and checking.
"use strict";
(() => {
  const { byId, make } = kiln;
  const data = kiln.data(), names = Object.keys(data.params);
  const rows = byId("rows"), columns = byId("columns"), by = byId("by"), place = byId("heat");
  const time = (us) => us < 1000 ? `${us.toPrecision(4)} us` : `${(us / 1000).toPrecision(4)} ms`;
  const fact = (name) => (outcome) => outcome.facts && outcome.facts[name];
  const percent = (share) => `${Math.round(100 * share)} %`;
  // name, value of an outcome, text, whether more is better
  const metrics = [
    ["time", (outcome) => outcome.us, time, false],
    ["occupancy", fact("occupancy"), percent, true],
    ["blocks per SM", fact("blocks"), String, true],
    ["spill bytes", fact("spill_bytes"), (n) => `${n} B spilled`, false],
    ["registers", fact("registers"), (n) => `${n} registers`, false],
    ["shared memory", fact("shared_bytes"), (n) => `${(n / 1024).toPrecision(3)} KiB`, false],
    ["build time", fact("build_s"), (n) => `${n.toPrecision(2)} s`, false],
  ].map(([name, value, text, more]) => {
    const usable = (outcome) =>
      ["timed", "checked"].includes(outcome.fate) && Number.isFinite(value(outcome));
    const all = data.outcomes.filter(usable).map(value);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    return { name, value, text, more, usable, count: all.length, low, high };
  }).filter((metric) => metric.count);
  // The first that tells variants apart: equal cells show nothing.
  // The time to build says nothing about a variant: nobody sees it unasked.
  let metric = metrics.find((one) => one.low < one.high && one.name !== "build time") ||
    metrics[0];
  const single = names.length === 1;  // then a row: a square would have values on its diagonal

  const heatOf = (value) => {
    if (metric.name === "time") return Math.max(0, 1 - (value / metric.low - 1));
    if (metric.low === metric.high) return 0.5;
    const share = (value - metric.low) / (metric.high - metric.low);
    return metric.more ? share : 1 - share;
  };
  const described = (outcome) =>
    `${outcome.text}: ${outcome.fate}${outcome.reason ? ` (${outcome.reason})` : ""}`;
  const note = (outcome, value, best) => {
    if (metric.name === "time") return best ? "fastest" : `${(value / metric.low).toFixed(2)}x`;
    return outcome.fate === "checked" ? "correct" : outcome.fate;
  };
  const cell = (found) => {
    const known = metric ? found.filter(metric.usable) : [];
    if (!known.length) {
      const right = found.some((outcome) => outcome.fate === "checked");
      const fates = [...new Set(found.map((outcome) => outcome.fate))].join(", ");
      const empty = make("td", "cell none", right ? "correct" : fates);
      empty.title = found.map(described).join("\n") || "not tried";
      return empty;
    }
    const direction = metric.more ? -1 : 1;
    known.sort((a, b) => direction * (metric.value(a) - metric.value(b)));
    const first = known[0], value = metric.value(first);
    const best = value === (metric.more ? metric.high : metric.low) && metric.low < metric.high;
    const timed = metric.name === "time";
    const node = make("td", `cell${timed && value === metric.low ? " best" : ""}`,
      metric.text(value));
    node.style.setProperty("--heat", heatOf(value).toFixed(3));
    node.append(make("small", "", note(first, value, best)));
    node.title = known.slice(0, 6).map((one) =>
      `${one.text}: ${metric.text(metric.value(one))}`).join("\n");
    return node;
  };
  const draw = () => {
    const y = rows.value, x = columns.value, table = make("table", "heat");
    const head = table.createTHead().insertRow();
    const axes = single ? x : `${y} by ${x}`;
    table.createCaption().textContent = metric ? `${metric.name}, ${axes}` : axes;
    head.append(make("th", "", single ? x : `${y} \\ ${x}`));
    for (const value of data.params[x]) {
      const top = make("th", "", value);
      top.scope = "col";
      head.append(top);
    }
    const body = table.createTBody();
    for (const v of single ? [""] : data.params[y]) {
      const row = body.insertRow(), side = make("th", "", single && metric ? metric.name : v);
      side.scope = "row";
      row.append(side);
      for (const w of data.params[x])
        row.append(cell(data.outcomes.filter((one) => (single || one.at[y] === v) &&
          one.at[x] === w)));
    }
    place.replaceChildren(table);
  };
  for (const [box, wanted] of [[rows, 0], [columns, Math.min(1, names.length - 1)]]) {
    names.forEach((name, i) => {
      const option = make("option", "", name);
      option.selected = i === wanted;
      box.append(option);
    });
    box.addEventListener("change", draw);
  }
  if (single) for (const box of [rows, columns]) box.parentElement.hidden = true;
  for (const one of metrics) by.append(make("option", "", one.name));
  if (metric) by.value = metric.name;
  by.addEventListener("change", () => {
    metric = metrics.find((one) => one.name === by.value);
    draw();
  });
  draw();
})();
