// SPDX-License-Identifier: Apache-2.0
#include "measure/profile_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace kiln::measure {
namespace {

constexpr size_t kNameWidth = 52;

double number(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}

std::string us_text(double us) { return us > 0 ? time_text(us * 1e3) : "-"; }

std::string dims_text(const Json& dims) {
  if (!dims.is_array()) return "?";
  std::string out;
  for (const Json& one : dims) out += (out.empty() ? "" : "x") + dump(one);
  while (out.ends_with("x1")) out.resize(out.size() - 2);
  return out;
}

std::string cut(std::string text, size_t width) {
  if (text.size() <= width) return text;
  return text.substr(0, width - 3) + "...";
}

void kernel_line(const Json& kernel, const std::string& indent, std::string& out) {
  std::string facts = fmt::format("{} blocks of {}", dims_text(kernel.value("grid", Json())),
                                  dims_text(kernel.value("block", Json())));
  if (kernel.value("grid", Json()).is_null()) facts.clear();
  if (number(kernel, "registers") > 0)
    facts += fmt::format(", {:.0f} registers", number(kernel, "registers"));
  if (number(kernel, "shared_bytes") > 0)
    facts += fmt::format(", {} shared", memory_text(number(kernel, "shared_bytes")));
  if (number(kernel, "occupancy") > 0)
    facts += fmt::format(", occupancy {:.0f} %", number(kernel, "occupancy"));
  if (number(kernel, "bytes") > 0 && number(kernel, "us") > 0)
    facts += fmt::format(", {}", rate_text(number(kernel, "bytes") / number(kernel, "us") / 1e3));
  const bool engine = kernel.value("stream", Json()) == "engine";
  out += fmt::format("{:<{}} {:>9} {:>9} {:>9} {:>9}  {}\n",
                     cut(indent + "* " + kernel.value("name", "?"), kNameWidth), kNameWidth, "", "",
                     us_text(number(kernel, "us")), engine ? "(engine)" : "", facts);
}

bool alike(const Json& a, const Json& b) {
  if (a.value("name", "") != b.value("name", "") || a.value("shapes", "") != b.value("shapes", ""))
    return false;
  const Json &x = a["children"], &y = b["children"];
  if (x.size() != y.size() || a["kernels"].size() != b["kernels"].size()) return false;
  for (size_t i = 0; i < x.size(); ++i)
    if (!alike(x[i], y[i])) return false;
  return true;
}

void lines(const Json& nodes, int depth, std::string& out) {
  const std::string indent(static_cast<size_t>(2 * depth), ' ');
  for (size_t i = 0; i < nodes.size();) {
    size_t end = i + 1;
    while (end < nodes.size() && alike(nodes[i], nodes[end])) ++end;
    double cpu = 0, cpu_self = 0, gpu = 0, gpu_self = 0;
    for (size_t k = i; k < end; ++k) {
      cpu += number(nodes[k], "cpu_us");
      cpu_self += number(nodes[k], "cpu_self_us");
      gpu += number(nodes[k], "gpu_us");
      gpu_self += number(nodes[k], "gpu_self_us");
    }
    std::string name = nodes[i].value("name", "?");
    if (end - i > 1) name += fmt::format(" ({} calls)", end - i);
    out += fmt::format("{:<{}} {:>9} {:>9} {:>9} {:>9}  {}\n", cut(indent + name, kNameWidth),
                       kNameWidth, us_text(cpu), us_text(cpu_self), us_text(gpu), us_text(gpu_self),
                       nodes[i].value("shapes", ""));
    for (const Json& kernel : nodes[i]["kernels"]) kernel_line(kernel, indent + "  ", out);
    lines(nodes[i]["children"], depth + 1, out);
    i = end;
  }
}

}  // namespace

std::string profile_text(const Json& profile) {
  const bool gpu = profile.value("time", "") == "GPU time";
  std::string out = fmt::format("{}: {} until {}\n", profile.value("title", "profile"),
                                time_text(number(profile, "wall_us") * 1e3),
                                gpu ? "the GPU was done" : "it returned");
  out += fmt::format("{:<{}} {:>9} {:>9} {:>9} {:>9}  {}\n", "op", kNameWidth, "CPU", "CPU self",
                     gpu ? "GPU" : "engine", gpu ? "GPU self" : "", "shapes; grid, block");
  lines(profile["tree"], 0, out);
  if (gpu)
    out += fmt::format("{:.0f} kernels, the GPU was idle {:.0f} % of the time\n",
                       number(profile, "kernel_count"), 100 * number(profile, "gpu_idle"));
  return out + profile.value("verdict", "") + "\n";
}

}  // namespace kiln::measure
