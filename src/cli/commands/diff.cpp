// SPDX-License-Identifier: Apache-2.0
// `kiln diff`: what did an edit do to the kernels of a binary?
#include "inspect/diff.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <set>

#include "base/text.h"
#include "cli/build_options.h"
#include "cli/command.h"
#include "cli/inspect_target.h"
#include "cli/options.h"
#include "report/diff.h"
#include "sys/machine.h"
#include "sys/pager.h"

namespace kiln::cli {
namespace diff_cli {
namespace {

struct Options {
  build::Request request;
  std::string before, after, kernel, member, html;
  bool sass = false, no_pager = false;
};

Result<inspect::Analysis> open(const Options& options, Context& context, const std::string& word,
                               const inspect::AnalyseOptions& read) {
  TRY(Target target, open_target(context, options.request, word, options.member));
  if (target.files.size() != 1)
    return Error{Fault::Usage, fmt::format("cannot compare {}", word),
                 fmt::format("it contains {} binaries", target.files.size()),
                 fmt::format("--member {}", target.files.front().name)};
  return inspect::analyse(std::move(target.files.front()), read);
}

struct Sides {
  inspect::Analysis before, after;
};

// A source given with a binary is compiled for the architectures that the binary has code for: else
// there may be nothing that both have.
Result<Sides> open_both(Options& options, Context& context, const inspect::AnalyseOptions& read) {
  const bool before_is_source = options.before.ends_with(".cu");
  const bool mixed = before_is_source != options.after.ends_with(".cu");
  TRY(inspect::Analysis first,
      open(options, context, mixed && before_is_source ? options.after : options.before, read));
  if (mixed && options.request.arch.empty()) {
    std::set<std::string> archs;
    for (const inspect::KernelRow& row : first.kernels.rows) archs.insert(row.arch_text());
    const std::vector<std::string> list(archs.begin(), archs.end());
    options.request.arch = text::join(list, ";");
  }
  TRY(inspect::Analysis second,
      open(options, context, mixed && before_is_source ? options.before : options.after, read));
  if (mixed && before_is_source) return Sides{std::move(second), std::move(first)};
  return Sides{std::move(first), std::move(second)};
}

// Blocks of instructions that differ, where SASS was asked for.
Status add_code(results::FileDiff& diff, const Sides& sides, const std::vector<std::string>& archs,
                const Options& options, Context& context) {
  inspect::CodeOptions code{archs, options.kernel, 0};
  TRY(auto old_code, inspect::list_code(sides.before, code, sys::real_files(),
                                        sys::real_processes(), context.env));
  TRY(auto new_code,
      inspect::list_code(sides.after, code, sys::real_files(), sys::real_processes(), context.env));
  inspect::add_blocks(diff, old_code, new_code);
  if (!new_code.note.empty()) context.note("note: " + new_code.note);
  return {};
}

Result<int> run(Options& options, Context& context) {
  TRY(const bool out_taken, check_outputs({{"--html", options.html}}, context));
  inspect::AnalyseOptions read;
  read.threads = sys::usable_cores(sys::real_files());
  bool sources = options.before.ends_with(".cu") || options.after.ends_with(".cu");
  if (!sources)
    for (std::string_view word : text::split_any(options.request.arch, " ,;"))
      read.archs.emplace_back(word);
  TRY(const Sides sides, open_both(options, context, read));
  results::FileDiff diff = inspect::compare_files(sides.before, sides.after, options.kernel);
  if (diff.kernels.empty() && !options.kernel.empty())
    return Error{Fault::Usage, fmt::format("no kernel has '{}' in its name", options.kernel),
                 "neither side contains one", "give a part of a kernel's name to --kernel"};
  if (options.sass) CHECK_OK(add_code(diff, sides, read.archs, options, context));
  if (!options.html.empty()) CHECK_OK(write_output(options.html, report::diff_page(diff), context));
  if (context.json) {
    context.print_json(results::to_json(diff));
    return 0;
  }
  context.end_progress();
  if (out_taken) return 0;
  report::DiffStyle style;
  style.color = context.terminal.color_out;
  style.columns = context.terminal.out_is_terminal ? context.terminal.columns : 0;
  sys::write_paged(report::diff_text(diff, style),
                   options.no_pager ? sys::Terminal{} : context.terminal, context.env);
  return 0;
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("BEFORE", options->before, "The older binary, .cu or project")
      ->required()
      ->type_name("");
  app.add_option("AFTER", options->after, "The newer binary, .cu or project, to compare it with")
      ->required()
      ->type_name("");
  app.add_flag("--sass", options->sass, "Also compare instructions, block by block");
  app.add_option("--html", options->html, "Write one self-contained page to this file")
      ->type_name("FILE");
  app.add_option("--kernel", options->kernel, "Only kernels with this text in their name")
      ->type_name("TEXT");
  app.add_option("--member", options->member, "The file of a wheel, archive or package")
      ->type_name("TEXT");
  app.add_flag("--no-pager", options->no_pager, "Do not send long output through a pager");
  add_build_options(app, options->request, kForBinaries);
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace diff_cli

const Command diff_command = {"diff", "Show what an edit did to the kernels of a binary",
                              diff_cli::setup};

}  // namespace kiln::cli
