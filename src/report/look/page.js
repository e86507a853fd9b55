// SPDX-License-Identifier: Apache-2.0
// What can every page do? Sort a table by the heads of its columns, with a mouse or a keyboard.
"use strict";
const kiln = (() => {
  const byId = (id) => document.getElementById(id);
  const make = (tag, kind, text) => {
    const node = document.createElement(tag);
    if (kind) node.className = kind;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const data = () => JSON.parse(byId("data").textContent);

  // Numbers first, by value; then words.
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    if (!cell) return [2, ""];
    const marked = cell.dataset.value === undefined ? cell.querySelector("[data-value]") : cell;
    const text = marked ? marked.dataset.value : cell.textContent.replace(/(\d),(?=\d{3})/g, "$1");
    const number = parseFloat(text);
    return text === "" ? [2, ""] : isNaN(number) ? [1, text.toLowerCase()] : [0, number];
  };
  const inOrder = (rows, rowOf, column, direction) => rows
    .map((row) => [keyOf(rowOf(row), column), row])
    .sort(([[kindA, a]], [[kindB, b]]) =>
      kindA - kindB || direction * (a < b ? -1 : a > b ? 1 : 0))
    .map(([, row]) => row);
  // A table with several bodies has groups: the first row of each is its sum.
  const sortBy = (table, column, direction) => {
    const bodies = [...table.tBodies];
    if (bodies.length === 1) {
      bodies[0].append(...inOrder([...bodies[0].rows], (row) => row, column, direction));
      return;
    }
    table.append(...inOrder(bodies, (body) => body.rows[0], column, direction));
    for (const body of bodies)
      body.append(...inOrder([...body.rows].slice(1), (row) => row, column, direction));
  };
  const sortable = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (!head.textContent.trim()) return;
      const button = make("button", "sort");
      button.type = "button";
      button.append(...head.childNodes);
      if (head.title) button.title = head.title;
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of heads)
          if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        sortBy(table, column, up ? 1 : -1);
      });
    });
  };
  for (const table of document.querySelectorAll("table.sortable")) sortable(table);

  // A link to a section that is folded opens it.
  const open = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  addEventListener("hashchange", open);
  open();

  // What reacts to a click reacts to Enter and the space bar too.
  const pressable = (node, act) => {
    node.tabIndex = 0;
    node.addEventListener("click", act);
    node.addEventListener("keydown", (event) => {
      if (event.target !== node || (event.key !== "Enter" && event.key !== " ")) return;
      event.preventDefault();
      act(event);
    });
  };
  return { byId, make, data, sortable, pressable };
})();
