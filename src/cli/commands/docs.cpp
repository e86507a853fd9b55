// SPDX-License-Identifier: Apache-2.0
// `kiln docs`: what does the documentation of this version say? The pages come with the command, so
// that they fit it and need no network.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "project/home.h"
#include "sys/files.h"

namespace kiln::cli {
namespace docs_cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string topic;
  bool path = false;
};

struct DocPage {
  std::string name;  // guide/bench
  std::string title;
  fs::path path;
};

std::string title_of(const std::string& text) {
  for (std::string_view line : text::lines(text))
    if (line.starts_with("# ")) return std::string(line.substr(2));
  return "";
}

Result<std::vector<DocPage>> all_pages(const fs::path& root) {
  std::vector<DocPage> pages;
  std::error_code failed;
  fs::recursive_directory_iterator found(root, fs::directory_options::follow_directory_symlink,
                                         failed);
  if (failed)
    return Error{Fault::Environment, fmt::format("cannot read {}", root.string()), failed.message(),
                 "install kiln again: its documentation is missing"};
  for (const fs::directory_entry& entry : found) {
    if (entry.path().extension() != ".md") continue;
    TRY(const std::string text, sys::real_files().read(entry.path()));
    const fs::path name = fs::relative(entry.path(), root, failed).replace_extension("");
    pages.push_back({name.string(), title_of(text), entry.path()});
  }
  std::sort(pages.begin(), pages.end(),
            [](const DocPage& a, const DocPage& b) { return a.name < b.name; });
  return pages;
}

// How well a page fits a topic; the greatest wins, 0 is not at all. Guides come before pages that
// explain how kiln is made.
int fit(const DocPage& page, const std::string& topic) {
  const std::string name = text::lower(page.name), leaf = fs::path(name).filename().string();
  const int guide = name.starts_with("guide/") ? 1 : 0;
  if (name == topic || name == topic + "/README" || name == topic + "/readme") return 100;
  if (leaf == topic) return 80 + guide;
  if (leaf.find(topic) != std::string::npos) return 60 + guide;
  if (text::lower(page.title).find(topic) != std::string::npos) return 40 + guide;
  return 0;
}

Error no_page(const std::string& topic, const std::vector<DocPage>& pages) {
  std::vector<std::string> names;
  for (const DocPage& page : pages) names.push_back(fs::path(page.name).filename().string());
  const auto meant = text::closest(text::lower(topic), names);
  return {Fault::Usage, fmt::format("no page is about '{}'", topic),
          "no page has it in its name or title",
          meant ? fmt::format("did you mean kiln docs {}? kiln docs lists all pages", *meant)
                : "kiln docs lists the pages"};
}

Result<int> list(const std::vector<DocPage>& pages, Context& context) {
  if (context.json) {
    Json rows = Json::array();
    for (const DocPage& page : pages)
      rows.push_back({{"name", page.name}, {"title", page.title}, {"path", page.path.string()}});
    return context.print_json({{"pages", rows}}), 0;
  }
  size_t width = 0;
  for (const DocPage& page : pages) width = std::max(width, page.name.size());
  std::string out;
  for (const DocPage& page : pages) out += fmt::format("{:{}}  {}\n", page.name, width, page.title);
  context.print(out);
  return 0;
}

Result<int> run(const Options& options, Context& context) {
  TRY(const project::Home home, project::find_home(context.env));
  TRY(const std::vector<DocPage> pages, all_pages(home.root / "docs"));
  if (options.topic.empty()) return list(pages, context);
  const std::string topic = text::lower(options.topic);
  const DocPage* best = nullptr;
  for (const DocPage& page : pages)
    if (fit(page, topic) > (best ? fit(*best, topic) : 0)) best = &page;
  if (!best) return no_page(options.topic, pages);
  TRY(const std::string text, sys::real_files().read(best->path));
  if (context.json)
    return context.print_json({{"name", best->name},
                               {"title", best->title},
                               {"path", best->path.string()},
                               {"text", text}}),
           0;
  context.print(options.path ? best->path.string() + "\n" : text);
  return 0;
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("TOPIC", options->topic,
                 "A page: bench, guide/bench, glossary (default: list all pages)")
      ->type_name("");
  app.add_flag("--path", options->path, "Print the path of the page, not its text");
  app.footer("kiln docs sanitize | less\nThe pages are those of this version; no network is used.");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace docs_cli

const Command docs_command = {"docs", "Show a page of the documentation, offline", docs_cli::setup};

}  // namespace kiln::cli
