// SPDX-License-Identifier: Apache-2.0
// How does an editor understand a .cu?
#include "build/run/editor_files.h"

#include <fmt/format.h>

namespace kiln::build {

namespace {

Words clang_words(const Plan& plan, const Source& source) {
  Words words = {source.cuda ? "clang++" : plan.host.command[0]};
  if (source.cuda) {
    words.insert(words.end(), {"-x", "cuda"});
    if (plan.nvcc)
      words.push_back("--cuda-path=" + plan.nvcc->path.parent_path().parent_path().string());
    // clangd looks at one architecture; the newest is what most people edit for.
    if (!plan.arch.sass.empty())
      words.push_back("--cuda-gpu-arch=sm_" + plan.arch.sass.back().number());
    words.insert(words.end(), {"-Wno-unknown-cuda-version", "-D__CUDACC_RELAXED_CONSTEXPR__"});
  }
  words.insert(words.end(), {"-std=c++20", "-DKILN_NAMESPACE=" + plan.name});
  for (const std::string& define : plan.defines) words.push_back("-D" + define);
  for (const fs::path& folder : plan.includes) words.push_back("-I" + folder.string());
  words.push_back("-I" + plan.home.include().string());
  if (plan.nvcc && !source.cuda)
    words.push_back("-I" + (plan.nvcc->path.parent_path().parent_path() / "include").string());
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

Status write_editor_files(const Work& work) {
  std::string text = compile_commands(work.plan);
  fs::path file = work.in_build_dir("compile_commands.json");
  auto former = work.world.files.read(file);
  if (former && *former == text) return {};
  return work.world.files.write(file, text, sys::Durable::No);
}

}  // namespace kiln::build
