// SPDX-License-Identifier: Apache-2.0
// How does an editor understand a .cu?
#include "build/run/editor_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace kiln::build {

namespace {

constexpr std::string_view kEmptyHeaders = "clangd";

// clangd looks at one architecture; the newest is what most people edit for. clang 16 knows sm_90,
// and no variants of it.
std::string editor_arch(const Plan& plan) {
  int number = 80;
  if (!plan.arch.sass.empty())
    number = plan.arch.sass.back().major * 10 + plan.arch.sass.back().minor;
  return fmt::to_string(std::min(number, 90));
}

Words clang_words(const Plan& plan, const Source& source) {
  Words words = {source.cuda ? "clang++" : plan.host.command[0]};
  if (source.cuda) {
    words.insert(words.end(), {"-x", "cuda"});
    if (plan.nvcc)
      words.push_back("--cuda-path=" + plan.nvcc->path.parent_path().parent_path().string());
    words.push_back("--cuda-gpu-arch=sm_" + editor_arch(plan));
    words.insert(words.end(), {"-Wno-unknown-cuda-version", "-D__CUDACC_RELAXED_CONSTEXPR__"});
    // clang before 22 includes a header that CUDA 13 has not any more: it gets an empty one, and
    // without the functions for textures that need it.
    words.insert(words.end(), {"-D__CLANG_CUDA_TEXTURE_INTRINSICS_H__",
                               "-I" + (plan.build_dir / kEmptyHeaders).string()});
  }
  words.insert(words.end(), {"-std=c++20", "-DKILN_NAMESPACE=" + plan.name});
  for (const std::string& define : plan.defines) words.push_back("-D" + define);
  for (const fs::path& folder : plan.includes) words.push_back("-I" + folder.string());
  words.push_back("-I" + plan.home.include().string());
  if (plan.nvcc) {
    const fs::path include = plan.nvcc->path.parent_path().parent_path() / "include";
    if (!source.cuda) words.push_back("-I" + include.string());
    words.push_back("-I" + (include / "cccl").string());  // where CUDA 13 keeps CUB and Thrust
  }
  words.insert(words.end(), {"-c", source.file.string()});
  return words;
}

}  // namespace

std::string compile_commands(const Plan& plan) {
  Json rows = Json::array();
  for (const Source& source : plan.sources)
    rows.push_back({{"directory", plan.build_dir.string()},
                    {"file", source.file.string()},
                    {"arguments", clang_words(plan, source)}});
  return dump(rows, 1) + "\n";
}

Result<std::string> merged_commands(std::string_view former, std::string_view now,
                                    std::string_view source) {
  TRY(Json rows, parse_json(now, "compile_commands.json"));
  if (text::trim(former).empty()) return dump(rows, 1) + "\n";
  TRY(const Json old, parse_json(former, source));
  if (!old.is_array())
    return Error{Fault::Usage, fmt::format("cannot add to {}", source),
                 "it is not a list of commands", "move it away, and run the command again"};
  for (const Json& row : old) {
    const bool replaced = std::ranges::any_of(rows, [&](const Json& one) {
      return row.is_object() && one["file"] == row.value("file", "");
    });
    if (!replaced) rows.push_back(row);
  }
  return dump(rows, 1) + "\n";
}

Status write_editor_files(const Work& work) {
  const fs::path empty = work.in_build_dir(kEmptyHeaders) / "texture_fetch_functions.h";
  if (!work.world.files.state(empty).exists)
    CHECK_OK(work.world.files.write(empty, "// For clangd alone.\n", sys::Durable::No));
  std::string text = compile_commands(work.plan);
  fs::path file = work.in_build_dir("compile_commands.json");
  auto former = work.world.files.read(file);
  if (former && *former == text) return {};
  return work.world.files.write(file, text, sys::Durable::No);
}

}  // namespace kiln::build
