// SPDX-License-Identifier: Apache-2.0
#include "watch/sanitize/sites.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/machine/fault.h"

namespace kiln::watch {

using namespace engine;

bool is_system_header(std::string_view path) {
  constexpr std::string_view kParts[] = {
      "/targets/",        "/usr/include/",  "/usr/local/cuda", "/include/cub/",
      "/include/thrust/", "/include/cuda/", "/include/kiln/",  "/include/cooperative_groups",
      "/include/crt/",    "/nvidia/",       "/include/cccl/"};
  return std::ranges::any_of(kParts,
                             [&](std::string_view part) { return path.find(part) != path.npos; });
}

void SiteTable::turn_to(const Program& program) {
  last_program_ = &program;
  last_serial_ = program.serial;
  ids_ = &by_program_[program.serial];
  ids_->resize(program.sites.size(), kNoSite);
}

// A report shows the innermost line that the user wrote: inside atomicAdd() or a View there is
// nothing to fix. PTX names the innermost line and the one in the kernel.
static std::vector<results::FindingLine> stack_of(const Program& program, const Site& site) {
  std::vector<results::FindingLine> stack;
  const auto& source = site.source;
  if (source.file == 0) return stack;
  auto add = [&](uint32_t file, uint32_t line) {
    stack.push_back({std::string(program.module->file_name(file)), line, ""});
  };
  add(source.file, source.line);
  if (source.outer_file && (source.outer_file != source.file || source.outer_line != source.line))
    add(source.outer_file, source.outer_line);
  if (stack.size() == 2 && is_system_header(stack[0].file) && !is_system_header(stack[1].file))
    std::swap(stack[0], stack[1]);
  return stack;
}

SiteId SiteTable::add(const Program& program, uint32_t index) {
  const Site& site = program.sites[index];
  KnownSite known;
  known.function = demangled(program.name);
  // nvcc tells functions of one name in two files apart.
  if (known.function.starts_with("_INTERNAL_"))
    known.function.erase(0, std::min(known.function.find("::") + 2, known.function.size()));
  known.stack = stack_of(program, site);
  known.ptx_line = site.ptx_line;
  known.opcode = std::string(site.opcode);
  std::string key;
  for (const auto& line : known.stack) key += fmt::format("{}:{};", line.file, line.line);
  if (key.empty()) key = fmt::format("{} {}", known.function, known.ptx_line);
  known.line_id = lines_.emplace(key, static_cast<uint32_t>(lines_.size()) + 1).first->second;
  sites_.push_back(std::move(known));
  return static_cast<SiteId>(sites_.size() - 1);
}

}  // namespace kiln::watch
