// SPDX-License-Identifier: Apache-2.0
// How does a result of kiln tune look? Heat maps: a cell is the best time over all other axes, and
// a reader chooses the two axes that are shown.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "report/json_parts.h"
#include "report/page.h"
#include "report/pages.h"

namespace kiln::report {
namespace {

std::string joined(const Json& list) {
  std::string out;
  if (list.is_array())
    for (const Json& one : list)
      if (one.is_string()) out += (out.empty() ? "" : " ") + one.get<std::string>();
  return out;
}

// From the fastest (strong) to twice its time (pale); both backgrounds let the text be read.
constexpr std::string_view kStyle = R"css(<style>
.heat { border-collapse:separate; border-spacing:3px; margin:8px 0 }
.heat td,.heat th { border:0; padding:0; vertical-align:middle } .heat td { padding:0 6px }
#all code { white-space:nowrap }
#all td:last-child { white-space:normal; text-align:left; min-width:15em }
.heat th { padding:4px 8px; font-weight:600; text-align:right; white-space:nowrap }
.heat thead th { text-align:center }
.cell { min-width:86px; height:44px; text-align:center; border-radius:5px;
  font-variant-numeric:tabular-nums;
  background:color-mix(in srgb, var(--s1) calc(var(--heat) * 42%), var(--panel)); }
.cell small { display:block; color:var(--text); font-size:11px }
.cell.best { outline:3px solid var(--good); font-weight:700 }
.cell.none { color:var(--soft); border:1px solid var(--line);
  background:repeating-linear-gradient(45deg, var(--panel) 0 6px, var(--back) 6px 12px) }
.choose { display:flex; gap:18px; flex-wrap:wrap; align-items:center }
select { font:inherit; color:inherit; background:var(--panel); border:1px solid var(--line);
  border-radius:5px; padding:3px 6px }
</style>
)css";

constexpr std::string_view kScript = R"js(
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
      const e = element('td', right ? 'right' : fates, 'cell none');
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
)js";

// The value of each axis in the defines of an outcome.
Json values_of(const Json& outcome, const Json& params) {
  Json at = Json::object();
  for (const Json& define : part(outcome, "defines")) {
    if (!define.is_string()) continue;
    const std::string text = define.get<std::string>();
    const size_t equals = text.find('=');
    if (equals != std::string::npos && params.contains(text.substr(0, equals)))
      at[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return at;
}

// A script element ends at the first "</".
std::string embedded(const Json& value) {
  std::string out;
  for (char c : dump(value)) out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

std::string fact(const Json& outcome, const char* key) {
  const Json& value = part(part(outcome, "facts"), key);
  if (value.is_number_float()) return fmt::format("{:.2f}", value.get<double>());
  return value.is_number() ? dump(value) : "";
}

std::string counts_text(const Json& counts) {
  std::string out;
  if (counts.is_object())
    for (const auto& [name, count] : counts.items())
      out += (out.empty() ? "" : ", ") + dump(count) + " " + name;
  return out;
}

// Finalists lie within a percent of each other, and their intervals within a tenth of one.
std::string finely(double us) {
  return us < 1000 ? fmt::format("{:#.5g} us", us) : fmt::format("{:#.5g} ms", us / 1000);
}

}  // namespace

std::string tune_page(const Json& result) {
  static const Json kNone = Json::object();
  const Json& params = part(part(result, "space"), "params").is_object()
                           ? part(part(result, "space"), "params")
                           : kNone;
  Json data{{"params", params}, {"outcomes", Json::array()}};
  std::vector<Json> all;
  for (const Json& outcome : part(result, "outcomes")) {
    Json one{{"text", joined(part(outcome, "defines"))},
             {"fate", words(outcome, "fate")},
             {"at", values_of(outcome, params)}};
    if (number(outcome, "us") > 0) one["us"] = number(outcome, "us");
    if (!words(outcome, "reason").empty()) one["reason"] = words(outcome, "reason");
    data["outcomes"].push_back(std::move(one));
    all.push_back(outcome);
  }
  std::string arguments;
  for (const Json& argument : part(result, "arguments"))
    if (argument.is_string())
      arguments += (arguments.empty() ? "" : ", ") + argument.get<std::string>();
  const std::string title = fmt::format("{}({})", words(result, "op"), arguments);
  std::string body =
      std::string(kStyle) +
      fmt::format("<h1>{}</h1>\n<p class=\"soft\">{}, {}. {}.</p>\n", escape(title),
                  escape(words(part(result, "device"), "name")), escape(words(result, "date")),
                  escape(counts_text(part(result, "counts"))));
  const Json& best = part(result, "best");
  if (best.is_object())
    body += fmt::format("<p class=\"card\" id=\"best\"><b>{}</b><br>{}</p>\n",
                        time_text(1e3 * number(best, "us")), escape(joined(part(best, "defines"))));
  else
    body +=
        "<p class=\"card\" id=\"best\">Nothing was timed: there was no GPU. The variants were "
        "built, pruned and "
        "checked.</p>\n";
  body +=
      "<h2>Heat map</h2>\n<p class=\"soft\">A cell is the best over all other defines; point at it "
      "for more.</p>\n"
      "<p class=\"choose\"><label>rows <select id=\"rows\"></select></label><label>columns <select "
      "id=\"columns\"></select></label></p>\n<div class=\"wide\" id=\"heat\"></div>\n";
  if (const Json& finalists = part(result, "finalists");
      finalists.is_array() && finalists.size() > 1) {
    std::vector<std::vector<std::string>> rows = {
        {"the fastest, timed in turns", "time", "95 %", "to the first"}};
    for (const Json& one : finalists)
      rows.push_back({"<code>" + escape(joined(part(one, "defines"))) + "</code>",
                      finely(number(one, "us")),
                      finely(number(one, "low_us")) + " to " + finely(number(one, "high_us")),
                      fmt::format("{:.3f}", number(one, "us") / number(finalists[0], "us"))});
    body += "<h2>Finalists</h2>\n" + table(rows);
  }
  std::ranges::stable_sort(
      all, {}, [](const Json& one) { return number(one, "us") > 0 ? number(one, "us") : 1e300; });
  std::vector<std::vector<std::string>> rows = {{"configuration", "us", "registers", "shared bytes",
                                                 "blocks", "occupancy", "spill bytes", "build s",
                                                 ""}};
  for (const Json& one : all)
    rows.push_back({"<code>" + escape(joined(part(one, "defines"))) + "</code>",
                    number(one, "us") > 0 ? fmt::format("{:.2f}", number(one, "us")) : "",
                    fact(one, "registers"), fact(one, "shared_bytes"), fact(one, "blocks"),
                    fact(one, "occupancy"), fact(one, "spill_bytes"), fact(one, "build_s"),
                    number(one, "us") > 0
                        ? ""
                        : escape(words(one, "fate") + (words(one, "reason").empty() ? "" : ": ") +
                                 words(one, "reason"))});
  body += "<h2>All configurations</h2>\n<div id=\"all\">" + table(rows) + "</div>\n";
  body += "<script type=\"application/json\" id=\"data\">" + embedded(data) + "</script>\n";
  return page("kiln tune: " + title, body, kScript);
}

}  // namespace kiln::report
