// SPDX-License-Identifier: Apache-2.0
// What does the env file say to a shell? Nothing that is set already is overruled but CUDA_HOME,
// which must fit nvcc.
#include <fmt/format.h>

#include "base/text.h"
#include "doctor/setup.h"

namespace kiln::doctor {

namespace {

constexpr std::string_view kJobsMark = "MAX_JOBS=\"${MAX_JOBS:-";

std::string default_line(const char* name, const std::string& value) {
  return fmt::format("export {}=\"${{{}:-{}}}\"\n", name, name, value);
}

}  // namespace

std::string env_file_text(const EnvValues& values, const std::string& file) {
  std::string out = fmt::format(
      "# Written by kiln setup for bash and zsh: source {}\n# kiln setup --remove deletes it.\n",
      text::shell_quote(file));
  // The last one that is put in front comes first.
  for (auto folder = values.path.rbegin(); folder != values.path.rend(); ++folder) {
    std::string quoted = text::shell_quote(*folder);
    out += fmt::format("case \":$PATH:\" in *:{}:*) ;; *) export PATH={}:\"$PATH\" ;; esac\n",
                       quoted, quoted);
  }
  if (!values.cuda_home.empty())
    out += fmt::format("export CUDA_HOME={}\n", text::shell_quote(values.cuda_home));
  if (!values.arch.empty()) out += default_line("TORCH_CUDA_ARCH_LIST", values.arch);
  if (values.jobs > 0) out += default_line("MAX_JOBS", std::to_string(values.jobs));
  if (!values.cache.empty())
    out += fmt::format("export KILN_CACHE_DIR={}\n", text::shell_quote(values.cache));
  if (values.ccache_depend) out += default_line("CCACHE_DEPEND", "1");
  return out;
}

std::string conda_deactivate_text() {
  return "# Written by kiln setup. conda itself restores PATH.\n"
         "unset CUDA_HOME TORCH_CUDA_ARCH_LIST MAX_JOBS KILN_CACHE_DIR CCACHE_DEPEND\n";
}

int jobs_in_env_file(std::string_view text) {
  size_t at = text.find(kJobsMark);
  if (at == text.npos) return 0;
  std::string_view rest = text.substr(at + kJobsMark.size());
  auto jobs = text::to_int(rest.substr(0, rest.find('}')));
  return jobs && *jobs > 0 && *jobs <= 4096 ? static_cast<int>(*jobs) : 0;
}

}  // namespace kiln::doctor
