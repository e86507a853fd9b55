// SPDX-License-Identifier: Apache-2.0
// How does a result of kiln tune look? Heat maps: a cell is the best time over all other axes, and
// a reader chooses the two axes that are shown.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "report/json_parts.h"
#include "report/look.h"
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
  return page({.title = "kiln tune: " + title,
               .body = body,
               .style = kLook_tune_css,
               .script = kLook_tune_js,
               .data = std::move(data)});
}

}  // namespace kiln::report
