// SPDX-License-Identifier: Apache-2.0
// `kiln docs`: what does the documentation of this version say? The pages come with the command, so
// that they fit it and need no network.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/ascii.h"
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
  std::string search;
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

// At the begin of a word: "ci" is not in "decisions".
bool has_word(std::string_view text, std::string_view begin) {
  for (size_t at = text.find(begin); at != text.npos; at = text.find(begin, at + 1))
    if (at == 0 || !is_letter_or_digit(text[at - 1])) return true;
  return false;
}

// How well a page fits a topic; the greatest wins, 0 is not at all. Guides come before pages that
// explain how kiln is made.
int fit(const DocPage& page, const std::string& topic) {
  const std::string name = text::lower(page.name), leaf = fs::path(name).filename().string();
  const int guide = name.starts_with("guide/") ? 1 : 0;
  if (name == topic || name == topic + "/README" || name == topic + "/readme") return 100;
  if (leaf == topic) return 80 + guide;
  if (name.starts_with(topic)) return 70 + guide;  // learn/04
  if (has_word(leaf, topic)) return 60 + guide;
  if (has_word(text::lower(page.title), topic)) return 40 + guide;
  return 0;
}

Error no_page(const std::string& topic, const std::vector<DocPage>& pages) {
  std::vector<std::string> names;
  for (const DocPage& page : pages) names.push_back(fs::path(page.name).filename().string());
  const auto meant = text::closest(text::lower(topic), names);
  return {Fault::Usage, fmt::format("no page named '{}'", topic), "",
          meant ? fmt::format("did you mean kiln docs {}? kiln docs lists all pages", *meant)
                : fmt::format("kiln docs lists the pages; kiln docs --search {} finds it in texts",
                              text::shell_quote(topic))};
}

// Comments are for whoever edits a page.
std::string without_comments(std::string text) {
  constexpr std::string_view kBegin = "<!--", kEnd = "-->\n";
  for (size_t at = text.find(kBegin); at != text.npos; at = text.find(kBegin, at)) {
    const size_t end = text.find(kEnd, at);
    if (end == text.npos) break;
    text.erase(at, end + kEnd.size() - at);
  }
  return text;
}

// Guides first: "page:line: text", at most so many of a page.
Result<int> search(const std::vector<DocPage>& pages, const std::string& wanted, Context& context) {
  constexpr int kMostOfAPage = 3;
  const std::string topic = text::lower(wanted);
  std::vector<const DocPage*> order;
  for (const bool guides : {true, false})
    for (const DocPage& page : pages)
      if (page.name.starts_with("guide/") == guides) order.push_back(&page);
  Json rows = Json::array();
  std::string out;
  for (const DocPage* page : order) {
    TRY(const std::string text, sys::real_files().read(page->path));
    int number = 0, found = 0;
    for (std::string_view line : text::lines(text)) {
      ++number;
      if (!has_word(text::lower(line), topic)) continue;
      rows.push_back({{"name", page->name}, {"line", number}, {"text", std::string(line)}});
      if (++found <= kMostOfAPage)
        out += fmt::format("{}:{}: {}\n", page->name, number, text::trim(line));
    }
    if (found > kMostOfAPage) out += fmt::format("{}: {} more\n", page->name, found - kMostOfAPage);
  }
  if (rows.empty())
    return Error{Fault::Usage, fmt::format("no page contains '{}'", wanted), "",
                 "try another word; kiln docs lists the pages"};
  if (context.json)
    context.print_json({{"found", rows}});
  else
    context.print(out);
  return 0;
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
  if (!options.search.empty()) return search(pages, options.search, context);
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
  context.print(options.path ? best->path.string() + "\n" : without_comments(text));
  return 0;
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("TOPIC", options->topic,
                 "A page: bench, guide/bench, glossary (default: list all pages)")
      ->type_name("");
  app.add_option("-s,--search", options->search, "List the lines of all pages that contain this")
      ->type_name("TEXT");
  app.add_flag("--path", options->path, "Print the path of the page, not its text");
  app.footer("kiln docs sanitize | less\nThe pages are those of this version; no network is used.");
  return [options](Context& context) { return run(*options, context); };
}

}  // namespace
}  // namespace docs_cli

const Command docs_command = {"docs", "Show a page of the documentation, offline", docs_cli::setup};

}  // namespace kiln::cli
