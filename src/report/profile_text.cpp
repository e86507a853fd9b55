// SPDX-License-Identifier: Apache-2.0
// How does a person read a profile on a terminal?
#include <fmt/format.h>

#include "base/units.h"
#include "report/profile.h"

namespace kiln::report {
namespace {

using results::ProfileKernel;
using results::ProfileNode;

constexpr size_t kNameWidth = 52;

std::string dims_text(const std::vector<int64_t>& dims) {
  std::string out;
  for (int64_t one : dims) out += fmt::format("{}{}", out.empty() ? "" : "x", one);
  while (out.ends_with("x1")) out.resize(out.size() - 2);
  return out;
}

std::string cut(std::string text, size_t width) {
  if (text.size() <= width) return text;
  return text.substr(0, width - 3) + "...";
}

// What the device did: the GPU, in all and by itself, or the engine, which is timed for each
// kernel.
struct DeviceCells {
  bool gpu = false;
  std::string all, self = "";
};

std::string profile_line(const std::string& name, const std::string& cpu,
                         const std::string& cpu_self, const DeviceCells& device,
                         const std::string& facts) {
  std::string line = fmt::format("{:<{}} {:>9} {:>9} {:>9}", cut(name, kNameWidth), kNameWidth, cpu,
                                 cpu_self, device.all);
  if (device.gpu) line += fmt::format(" {:>9}", device.self);
  return line + "  " + facts + "\n";
}

std::string kernel_line(const ProfileKernel& kernel, const std::string& indent, bool gpu) {
  std::string facts;
  if (kernel.grid && kernel.block)
    facts = fmt::format("{} blocks of {}", dims_text(*kernel.grid), dims_text(*kernel.block));
  if (kernel.registers.value_or(0) > 0)
    facts += fmt::format(", {:.0f} registers", *kernel.registers);
  if (kernel.shared_bytes.value_or(0) > 0)
    facts += fmt::format(", {} shared", memory_text(*kernel.shared_bytes));
  if (kernel.occupancy.value_or(0) > 0)
    facts += fmt::format(", occupancy {:.0f} %", *kernel.occupancy);
  if (kernel.bytes.value_or(0) > 0 && kernel.us > 0)
    facts += ", " + rate_text(*kernel.bytes / kernel.us / 1e3);
  return profile_line(indent + "* " + kernel.name, "", "", {gpu, us_text(kernel.us)}, facts);
}

bool alike(const ProfileNode& a, const ProfileNode& b) {
  if (a.name != b.name || a.shapes != b.shapes || a.children.size() != b.children.size() ||
      a.kernels.size() != b.kernels.size())
    return false;
  for (size_t i = 0; i < a.children.size(); ++i)
    if (!alike(a.children[i], b.children[i])) return false;
  return true;
}

void tree_lines(const std::vector<ProfileNode>& nodes, int depth, bool on_gpu, std::string& out) {
  const std::string indent(static_cast<size_t>(2 * depth), ' ');
  for (size_t i = 0; i < nodes.size();) {
    size_t end = i + 1;
    while (end < nodes.size() && alike(nodes[i], nodes[end])) ++end;
    double cpu = 0, cpu_self = 0, gpu = 0, gpu_self = 0;
    for (size_t k = i; k < end; ++k) {
      cpu += nodes[k].cpu_us;
      cpu_self += nodes[k].cpu_self_us;
      gpu += nodes[k].gpu_us;
      gpu_self += nodes[k].gpu_self_us;
    }
    std::string name = indent + nodes[i].name;
    if (end - i > 1) name += fmt::format(" ({} calls)", end - i);
    out += profile_line(name, us_text(cpu), us_text(cpu_self),
                        {on_gpu, on_gpu ? us_text(gpu) : "", us_text(gpu_self)}, nodes[i].shapes);
    for (const ProfileKernel& kernel : nodes[i].kernels)
      out += kernel_line(kernel, indent + "  ", on_gpu);
    tree_lines(nodes[i].children, depth + 1, on_gpu, out);
    i = end;
  }
}

}  // namespace

std::string us_text(double us) { return us > 0 ? time_text(us * 1e3) : "-"; }

std::string profile_text(const results::Profile& profile) {
  const bool gpu = profile.on_gpu();
  std::string out =
      fmt::format("{}: {} until {}\n", profile.title, time_text(profile.wall_us * 1e3),
                  gpu ? "the GPU was done" : "it returned");
  out += profile_line("op", "CPU", "CPU self", {gpu, gpu ? "GPU" : "engine", "GPU self"},
                      "shapes; grid, block");
  tree_lines(profile.tree, 0, gpu, out);
  if (gpu)
    out += fmt::format("{} kernels, the GPU was idle {:.0f} % of the time\n", profile.kernel_count,
                       100 * profile.gpu_idle.value_or(0));
  return out + profile.verdict + "\n";
}

}  // namespace kiln::report
