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

namespace {

constexpr size_t kMostFrames = 32;

// A report shows the innermost line that the user wrote, and the calls on the way to the kernel:
// inside atomicAdd() or a View there is nothing to fix. Of what the user did not write, the kernel
// of a library and the innermost line are left.
struct Stack {
  std::vector<results::FindingLine> lines;
  std::string identity;  // the line to look at, and that of the kernel
};

Stack stack_of(const Program& program, const Site& site) {
  Stack out;
  if (site.source.file == 0) return out;
  std::vector<results::FindingLine> frames;
  const auto add = [&](uint32_t file, uint32_t line) {
    results::FindingLine frame{std::string(program.module->file_name(file)), line, ""};
    const bool again =
        !frames.empty() && frames.back().file == frame.file && frames.back().line == frame.line;
    if (!again) frames.push_back(std::move(frame));
  };
  add(site.source.file, site.source.line);
  const auto& calls = program.inlined_calls;
  for (uint32_t at = site.source.call; at && frames.size() < kMostFrames; at = calls[at].outer)
    add(calls[at].file, calls[at].line);
  const auto is_own = [](const auto& frame) { return !is_system_header(frame.file); };
  auto first = std::ranges::find_if(frames, is_own);
  if (first == frames.end()) first = frames.begin();
  for (auto frame = first; frame != frames.end(); ++frame) {
    if (frame == first || is_own(*frame) || frame + 1 == frames.end()) out.lines.push_back(*frame);
  }
  for (const auto& frame : {out.lines.front(), out.lines.back()})
    out.identity += fmt::format("{}:{};", frame.file, frame.line);
  if (first != frames.begin()) out.lines.push_back(frames.front());
  return out;
}

}  // namespace

SiteId SiteTable::add(const Program& program, uint32_t index) {
  const Site& site = program.sites[index];
  KnownSite known;
  known.function = demangled(program.name);
  // nvcc tells functions of one name in two files apart.
  if (known.function.starts_with("_INTERNAL_"))
    known.function.erase(0, std::min(known.function.find("::") + 2, known.function.size()));
  Stack stack = stack_of(program, site);
  known.stack = std::move(stack.lines);
  known.ptx_line = site.ptx_line;
  known.opcode = std::string(site.opcode);
  std::string key = std::move(stack.identity);
  if (key.empty()) key = fmt::format("{} {}", known.function, known.ptx_line);
  known.line_id = lines_.emplace(key, static_cast<uint32_t>(lines_.size()) + 1).first->second;
  sites_.push_back(std::move(known));
  return static_cast<SiteId>(sites_.size() - 1);
}

}  // namespace kiln::watch
