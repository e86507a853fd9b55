// SPDX-License-Identifier: Apache-2.0
// Which options mean the same in several commands?
#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "host/tensor_spec.h"
#include "sys/files.h"

namespace kiln::cli {
namespace {

constexpr int kMostArguments = 1 << 20;

}  // namespace

CLI::Option* add_list(CLI::App& app, const char* names, std::vector<std::string>& to,
                      const char* type, const char* text) {
  return app.add_option(names, to, text)
      ->type_name(type)
      ->take_all()
      ->type_size(1)
      ->allow_extra_args(false);
}

void add_op_arguments(CLI::App& app, std::vector<std::string>& to, const char* text) {
  app.add_option("ARGS", to, text)
      ->take_all()
      ->expected(kMostArguments, -1)
      ->allow_extra_args(false)
      ->type_name("");
}

void add_limit(CLI::App& app, double& seconds, const char* what) {
  const std::string text =
      fmt::format("Kill {} that takes longer{}", what,
                  seconds > 0 ? fmt::format(" (default: {})", seconds) : " (default: no limit)");
  app.add_option("--limit", seconds, text)->type_name("SECONDS")->check(positive_number());
}

void add_device(CLI::App& app, std::string& device) {
  app.add_option("--device", device, "cuda or engine (default: the GPU if there is one)")
      ->type_name("WHERE")
      ->check(one_of({"cuda", "engine"}));
}

CLI::Validator one_of(const std::vector<std::string>& values) {
  return CLI::Validator(
      [values](std::string& given) -> std::string {
        if (std::ranges::find(values, given) != values.end()) return {};
        const auto meant = text::closest(given, values);
        return fmt::format("'{}' is not one of {}{}", given, text::join(values, ", "),
                           meant ? fmt::format("; did you mean {}?", *meant) : "");
      },
      "");
}

CLI::Validator whole_number(int64_t least, int64_t most) {
  return CLI::Validator(
      [least, most](std::string& given) -> std::string {
        const std::optional<int64_t> number = host::parse_integer(given);
        if (number && *number >= least && *number <= most) return {};
        return most == INT64_MAX
                   ? fmt::format("'{}' is not a whole number from {} on", given, least)
                   : fmt::format("'{}' is not a whole number from {} to {}", given, least, most);
      },
      "");
}

CLI::Validator positive_number() {
  return CLI::Validator(
      [](std::string& given) -> std::string {
        const std::optional<double> number = host::parse_float(given);
        return number && *number > 0 ? std::string()
                                     : fmt::format("'{}' is not a number above 0", given);
      },
      "");
}

Result<bool> check_outputs(const std::vector<OutputFile>& files, const Context& context) {
  std::string taken = context.json ? "--json" : "";
  for (const OutputFile& file : files) {
    if (file.to.empty()) continue;
    if (file.to == "-") {
      if (!taken.empty())
        return Error{Fault::Usage, fmt::format("cannot write {} to stdout", file.option),
                     fmt::format("{} already prints there", taken),
                     fmt::format("{} FILE", file.option)};
      taken = file.option;
      continue;
    }
    const std::filesystem::path path = context.directory / file.to;
    const std::filesystem::path folder = path.parent_path();
    if (!sys::real_files().state(folder).is_directory)
      return Error{Fault::Usage, fmt::format("cannot write to {}", file.to),
                   fmt::format("there is no folder {}", folder.lexically_normal().string()),
                   fmt::format("mkdir -p {}", text::shell_quote(folder.string()))};
    if (sys::real_files().state(path).is_directory)
      return Error{Fault::Usage, fmt::format("cannot write to {}", file.to),
                   "it is a folder, not a file", fmt::format("{} FILE", file.option)};
  }
  return !taken.empty() && taken != "--json";
}

Status write_output(const std::string& to, const std::string& text, const Context& context) {
  if (to.empty()) return {};
  if (to == "-") return context.print(text), Status();
  if (Status written = sys::real_files().write(context.directory / to, text); !written) {
    written.error().fix = "name a file in a folder that you can write to";
    return written;
  }
  context.note("wrote " + to);
  return {};
}

}  // namespace kiln::cli
