// SPDX-License-Identifier: Apache-2.0
// What does the page of `kiln tune --html` do? A reader chooses two axes; tables sort by a click.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const rows = document.getElementById('rows'), columns = document.getElementById('columns');
  const names = Object.keys(data.params), place = document.getElementById('heat');
  const best = Math.min(...data.outcomes.filter(o => o.us).map(o => o.us));
  const text = us => us < 1000 ? us.toPrecision(4) + ' us' : (us / 1000).toPrecision(4) + ' ms';
  const element = (tag, words, kind) => {
    const e = document.createElement(tag);
    e.textContent = words;
    if (kind) e.className = kind;
    return e;
  };
  function cell(found) {
    const timed = found.filter(o => o.us).sort((a, b) => a.us - b.us);
    if (!timed.length) {
      const right = found.some(o => o.fate === 'checked');
      const fates = [...new Set(found.map(o => o.fate))].join(', ');
      const e = element('td', right ? 'correct' : fates, 'cell none');
      const fate = o => o.text + ': ' + o.fate + (o.reason ? ' (' + o.reason + ')' : '');
      e.title = found.map(fate).join('\n') || 'not tried';
      return e;
    }
    const first = timed[0], slowest = timed[timed.length - 1];
    const e = element('td', text(first.us), 'cell' + (first.us === best ? ' best' : ''));
    e.style.setProperty('--heat', Math.max(0, 1 - (first.us / best - 1)).toFixed(3));
    e.append(element('small', first.us === best ? 'fastest' : (first.us / best).toFixed(2) + 'x'));
    e.title = first.text + ': ' + text(first.us);
    if (timed.length > 1) e.title += '\nslowest here ' + text(slowest.us);
    return e;
  }
  function draw() {
    const y = rows.value, x = columns.value, table = document.createElement('table');
    table.className = 'heat';
    const head = table.createTHead().insertRow();
    head.append(element('th', y + ' \\ ' + x));
    data.params[x].forEach(v => head.append(element('th', v)));
    const body = table.createTBody();
    data.params[y].forEach(v => {
      const row = body.insertRow();
      row.append(element('th', v));
      for (const w of data.params[x])
        row.append(cell(data.outcomes.filter(o => o.at[y] === v && o.at[x] === w)));
    });
    place.replaceChildren(table);
  }
  for (const [box, wanted] of [[rows, 0], [columns, Math.min(1, names.length - 1)]]) {
    names.forEach((n, i) => {
      const o = element('option', n);
      o.selected = i === wanted;
      box.append(o);
    });
    box.addEventListener('change', draw);
  }
  draw();
  document.querySelectorAll('#all th').forEach((th, k) => {
    th.style.cursor = 'pointer';
    th.addEventListener('click', () => {
      const table = th.closest('table'), lines = [...table.rows].slice(1);
      const down = th.dataset.down !== '1';
      table.querySelectorAll('th').forEach(t => delete t.dataset.down);
      th.dataset.down = down ? '1' : '0';
      // Numbers first, by value; then words.
      const key = r => {
        const t = r.cells[k].textContent, n = parseFloat(t);
        return isNaN(n) ? [1, t] : [0, n];
      };
      lines.sort((a, b) => {
        const p = key(a), q = key(b), order = p[1] < q[1] ? -1 : p[1] > q[1] ? 1 : 0;
        return (down ? 1 : -1) * (p[0] - q[0] || order);
      });
      lines.forEach(r => r.parentNode.append(r));
    });
  });
})();
