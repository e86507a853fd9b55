// SPDX-License-Identifier: Apache-2.0
// `kiln inspect`: what is inside a kernel's binary?
#include "report/inspect.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "base/text.h"
#include "cli/build_options.h"
#include "cli/command.h"
#include "cli/inspect_target.h"
#include "cli/options.h"
#include "inspect/code.h"
#include "inspect/facts.h"
#include "sys/machine.h"
#include "sys/pager.h"
#include "sys/printable.h"

namespace kiln::cli {
namespace inspect_cli {
namespace {

struct Options {
  build::Request request;
  std::string target, kernel, member, extract, html, svg;
  std::vector<std::string> sources;
  bool overview = false, kernels = false, symbols = false, all_symbols = false, ptx = false,
       sass = false, source = false, no_pager = false;
  uint32_t threads = 256;
};

struct Views {
  bool overview = false, kernels = false, symbols = false, ptx = false, sass = false;

  bool any() const { return overview || kernels || symbols || ptx || sass; }
};

Views asked(const Options& options) {
  return {options.overview, options.kernels, options.symbols || options.all_symbols, options.ptx,
          options.sass || options.source};
}

Views chosen(const Options& options) {
  Views views = asked(options);
  if (!views.any()) views.overview = views.kernels = true;
  return views;
}

// Images under names that say what they are: 0001.sm_90.cubin, 0002.compute_90.ptx.
Status extract(const inspect::Analysis& analysis, const std::vector<std::string>& archs,
               const sys::fs::path& folder) {
  size_t number = 0;
  for (const inspect::Image& image : analysis.images.images) {
    if (!inspect::matches(image, archs)) continue;
    TRY(auto bytes, inspect::unpack(image, analysis.file.bytes));
    const char* suffix = image.is(binary::ImageKind::Elf)   ? "cubin"
                         : image.is(binary::ImageKind::Ptx) ? "ptx"
                                                            : "bin";
    std::string label = text::replace_all(image.label(), " ", "_");
    CHECK_OK(sys::real_files().write(folder / fmt::format("{:04}.{}.{}", ++number, label, suffix),
                                     {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                     sys::Durable::No));
  }
  return {};
}

Result<inspect::SymbolView> symbol_view(const inspect::Analysis& analysis, const Options& options,
                                        const Context& context) {
  auto view = inspect::read_symbol_view(analysis.file, sys::real_files(), sys::real_processes(),
                                        context.env, {options.all_symbols});
  if (!view) {
    view.error().what = fmt::format("cannot inspect {}", analysis.file.name);
    if (view.error().fix.empty()) view.error().fix = inspect::kDamagedFix;
  }
  return view;
}

Result<results::CodeList> code_of(const inspect::Analysis& analysis,
                                  const std::vector<std::string>& archs, const Options& options,
                                  const Context& context) {
  return inspect::list_code(analysis, {archs, options.kernel, 0}, sys::real_files(),
                            sys::real_processes(), context.env);
}

Result<std::string> text_of(const inspect::Analysis& analysis, const Views& views,
                            const std::vector<uint32_t>& gpus,
                            const std::vector<std::string>& archs,
                            const inspect::SourceScope& scope, const Options& options,
                            const Context& context) {
  report::InspectStyle style;
  style.color = context.terminal.color_out;
  style.columns = context.terminal.out_is_terminal ? context.terminal.columns : 0;
  style.verbose = context.verbose;
  std::string out;
  if (views.overview) out += report::overview_text(inspect::overview_of(analysis, gpus), style);
  if (views.kernels && !analysis.images.images.empty()) {
    style.verbose |= options.kernels;
    out += report::kernels_text(inspect::kernels_of(analysis, options.kernel, options.threads),
                                analysis.kernels.faults, style);
  }
  if (views.ptx) {
    TRY(auto images, inspect::read_ptx(analysis, archs, options.kernel));
    out += report::ptx_text(images, options.kernel, style);
  }
  if (views.sass) {
    TRY(auto code, code_of(analysis, archs, options, context));
    inspect::Sources sources(sys::real_files(), scope);
    if (options.source) inspect::add_sources(code, sources, inspect::Frames::Innermost);
    out += report::sass_text(code, style);
    if (code.images.empty())
      out += archs.empty() && options.kernel.empty() ? "it contains no SASS\n"
                                                     : "no SASS matches the request\n";
  }
  if (views.symbols) {
    TRY(auto view, symbol_view(analysis, options, context));
    const results::Symbols symbols = inspect::symbols_of(std::move(view));
    out +=
        options.all_symbols ? report::tables_text(symbols) : report::symbols_text(symbols, style);
  }
  return out;
}

// A page of thousands of listings helps nobody and loads for minutes; this many make a page of less
// than a megabyte.
constexpr size_t kPageInstructions = 6000;

Status write_page(const inspect::Analysis& analysis, const std::vector<std::string>& archs,
                  const std::vector<uint32_t>& gpus, const inspect::SourceScope& scope,
                  const Options& options, const Context& context) {
  TRY(auto code, inspect::list_code(analysis, {archs, options.kernel, kPageInstructions},
                                    sys::real_files(), sys::real_processes(), context.env));
  inspect::Sources sources(sys::real_files(), scope);
  inspect::add_sources(code, sources, inspect::Frames::All);
  inspect::PageInput input{analysis, std::move(code), std::nullopt, gpus, options.threads};
  if (!analysis.machine.empty()) {
    TRY(auto symbols, symbol_view(analysis, options, context));
    input.symbols = std::move(symbols);
  }
  CHECK_OK(write_output(options.html,
                        report::inspect_page(inspect::inspection_of(std::move(input))), context));
  if (const std::string left_out = sources.note(); !left_out.empty())
    context.note("note: " + left_out);
  return {};
}

Status write_files(const inspect::Analysis& analysis, const std::vector<std::string>& archs,
                   const std::vector<uint32_t>& gpus, const inspect::SourceScope& scope,
                   const Options& options, const Context& context) {
  if (!options.extract.empty())
    CHECK_OK(extract(analysis, archs, context.directory / options.extract));
  if (!options.svg.empty())
    CHECK_OK(write_output(options.svg, report::bytes_picture(inspect::file_bytes_of(analysis)),
                          context));
  if (!options.html.empty()) CHECK_OK(write_page(analysis, archs, gpus, scope, options, context));
  return {};
}

// `value`, an object, with the list of kernels as its last member. Piece by piece: the kernels of a
// large library as one value would take gigabytes.
void write_with_kernels(const Json& value, const inspect::Analysis& analysis,
                        const Options& options,
                        const std::function<void(std::string_view)>& write) {
  constexpr size_t kPieceBytes = 1 << 20;
  std::string pending = dump(value);
  pending.pop_back();
  pending += value.empty() ? "\"kernels\":[" : ",\"kernels\":[";
  inspect::Demangler demangle;
  bool first = true;
  for (const inspect::KernelRow& row : analysis.kernels.rows) {
    if (!inspect::name_matches(options.kernel, row.name, demangle(row.name))) continue;
    const results::KernelFacts kernel = inspect::kernel_of(row, demangle, options.threads);
    pending += (first ? "\n" : ",\n") + dump(results::to_json(kernel));
    first = false;
    if (pending.size() > kPieceBytes) write(std::exchange(pending, {}));
  }
  write(pending + "]}");
}

Status write_json(const std::vector<inspect::Analysis>& all, const Views& views,
                  const std::vector<uint32_t>& gpus, const std::vector<std::string>& archs,
                  const Options& options, const Context& context) {
  const auto write = [](std::string_view text) { sys::write_out(sys::printable_json(text)); };
  write(fmt::format("{{\"schema\":\"{}\",\"target\":{},\"files\":[", results::kInspectSchema,
                    dump(Json(options.target))));
  bool first = true;
  for (const inspect::Analysis& analysis : all) {
    Json value = views.overview ? results::to_json(inspect::overview_of(analysis, gpus))
                                : Json{{"name", analysis.file.name}};
    if (views.ptx) {
      TRY(auto images, inspect::read_ptx(analysis, archs, options.kernel));
      value["ptx"] = Json::array();
      for (const results::PtxText& image : images) value["ptx"].push_back(results::to_json(image));
    }
    if (views.sass) {
      TRY(auto code, code_of(analysis, archs, options, context));
      value["sass"] = Json::array();
      for (const results::CodeImage& image : code.images)
        for (const results::Listing& listing : image.listing.kernels)
          value["sass"].push_back(results::to_json(listing));
    }
    if (views.symbols) {
      TRY(auto view, symbol_view(analysis, options, context));
      value["symbols"] = results::to_json(inspect::symbols_of(std::move(view)));
    }
    write(first ? "\n" : ",\n");
    first = false;
    if (views.kernels)
      write_with_kernels(value, analysis, options, write);
    else
      write(dump(value));
  }
  write("]}\n");
  return {};
}

// Is the kernel of --kernel in what was looked at so far? An answer without it would look like one.
class Wanted {
 public:
  explicit Wanted(std::string kernel) : kernel_(std::move(kernel)) {}

  void look(const inspect::Analysis& analysis) {
    inspect::Demangler demangle;
    for (const inspect::KernelRow& row : analysis.kernels.rows) {
      const std::string name = demangle(row.name);
      found_ |= inspect::name_matches(kernel_, row.name, name);
      std::string shown = name.substr(0, name.find('('));
      if (others_.size() < kShown &&
          std::find(others_.begin(), others_.end(), shown) == others_.end())
        others_.push_back(std::move(shown));
    }
  }
  // Without a kernel at all there is nothing to choose from.
  Status check() const {
    if (kernel_.empty() || found_ || others_.empty()) return {};
    return Error{Fault::Usage, fmt::format("no kernel has '{}' in its name", kernel_),
                 fmt::format("there are {}{}", text::join(others_, ", "),
                             others_.size() == kShown ? ", ..." : ""),
                 "give a part of a kernel's name to --kernel"};
  }

 private:
  static constexpr size_t kShown = 5;
  std::string kernel_;
  bool found_ = false;
  std::vector<std::string> others_;
};

Result<int> run(Options& options, Context& context) {
  TRY(const bool out_taken,
      check_outputs({{"--html", options.html}, {"--svg", options.svg}}, context));
  context.doing("inspecting " + options.target);
  TRY(Target target, open_target(context, options.request, options.target, options.member));
  if (target.files.size() > 1 && !(options.html.empty() && options.svg.empty()))
    return Error{Fault::Usage, fmt::format("cannot draw {}", options.target),
                 fmt::format("it contains {} binaries", target.files.size()),
                 fmt::format("--member {}", target.files.front().name)};
  Views views = chosen(options);
  inspect::AnalyseOptions read;
  read.kernels = views.kernels || views.sass || !options.html.empty();
  read.threads = sys::usable_cores(sys::real_files());
  if (!target.compiled)
    for (std::string_view word : text::split_any(options.request.arch, " ,;"))
      read.archs.emplace_back(word);
  std::vector<uint32_t> gpus = gpus_here(context);
  const inspect::SourceScope scope =
      source_scope(target, options.request, options.sources, context);
  std::vector<inspect::Analysis> all;
  std::string text;
  bool damaged = false;
  Wanted wanted(options.kernel);
  size_t left = target.files.size();
  for (inspect::Artifact& artifact : target.files) {
    TRY(inspect::Analysis analysis, inspect::analyse(std::move(artifact), read));
    wanted.look(analysis);
    if (--left == 0) CHECK_OK(wanted.check());
    damaged |= !analysis.images.faults.empty() || !analysis.kernels.faults.empty();
    CHECK_OK(write_files(analysis, read.archs, gpus, scope, options, context));
    if (context.json) {
      all.push_back(std::move(analysis));
      continue;
    }
    if (!text.empty()) text += "\n";
    TRY(std::string part, text_of(analysis, views, gpus, read.archs, scope, options, context));
    text += part;
  }
  bool only_files = !asked(options).any() &&
                    !(options.html.empty() && options.svg.empty() && options.extract.empty());
  if ((only_files || out_taken) && !context.json) return damaged ? 1 : 0;
  context.end_progress();
  if (context.json)
    CHECK_OK(write_json(all, views, gpus, read.archs, options, context));
  else
    sys::write_paged(std::move(text), options.no_pager ? sys::Terminal{} : context.terminal,
                     context.env);
  return damaged ? 1 : 0;
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("TARGET", options->target,
                 "A .cu, .so, .o, .a, .cubin, .fatbin, .ptx, .whl, a project, an installed Python "
                 "package, or FILE.py:KERNEL of Triton")
      ->required()
      ->type_name("");
  app.add_flag("--overview", options->overview,
               "What the file consists of and which GPUs it runs on");
  app.add_flag("--kernels", options->kernels,
               "Registers, memory, spills, instructions and occupancy of each kernel");
  app.add_flag("--ptx", options->ptx, "The PTX; for a .cu, without building the extension");
  app.add_flag("--sass", options->sass,
               "The SASS with control codes, live registers and source lines");
  app.add_flag("--source", options->source, "The SASS grouped by source line");
  app.add_flag("--symbols", options->symbols,
               "What it defines and needs, who provides each, libraries, wheel tag");
  app.add_flag("--all-symbols", options->all_symbols,
               "The whole symbol tables, as readelf -s has them");
  app.add_option("--kernel", options->kernel, "Only kernels with this text in their name")
      ->type_name("TEXT");
  app.add_option("--threads", options->threads,
                 "Threads per block, for the occupancy (default: 256)")
      ->type_name("N")
      ->check(whole_number(1, 1024));
  app.add_option("--member", options->member,
                 "Only files of the wheel, archive or package with this text in their name")
      ->type_name("TEXT");
  app.add_option("--html", options->html, "Write all views as one self-contained page")
      ->type_name("FILE");
  add_list(app, "--sources", options->sources, "DIR",
           "Also show the text of sources below this folder, not only the project's (repeatable)");
  app.add_option("--svg", options->svg, "Write the overview as a picture")->type_name("FILE");
  app.add_option("--extract", options->extract, "Write every image to this folder, unpacked")
      ->type_name("DIR");
  app.add_flag("--no-pager", options->no_pager, "Do not send long output through a pager");
  add_build_options(app, options->request, kForBinaries);
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace inspect_cli

const Command inspect_command = {"inspect", "Show what is inside a binary", inspect_cli::setup};

}  // namespace kiln::cli
