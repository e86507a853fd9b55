// SPDX-License-Identifier: Apache-2.0
// `kiln cache`: what is kept from builds, why did one miss, and how does it go away?
#include "build/cache/cache.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/text.h"
#include "base/units.h"
#include "build/cache/reads.h"
#include "cli/command.h"
#include "project/home.h"
#include "sys/guarded_files.h"
#include "sys/process.h"

namespace kiln::cli {
namespace cache_cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  bool everything = false, dry_run = false;
  std::string key, other, size;
};

uint64_t bytes_below(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator
           at(folder, fs::directory_options::skip_permission_denied, error),
       end;
       !error && at != end; at.increment(error))
    if (std::error_code no_size; at->is_regular_file(no_size)) bytes += at->file_size(no_size);
  return bytes;
}

Result<build::CachePlace> place_of(const Context& context) {
  TRY(build::CachePlace place, build::cache_place(context.env));
  if (place.folder.empty())
    return Error{Fault::Usage, "there is no cache", "KILN_CACHE_DIR is off",
                 "unset KILN_CACHE_DIR"};
  if (!place.refused.empty())
    return Error{Fault::Environment, fmt::format("the cache {} is not used", place.folder.string()),
                 place.refused, place.fix};
  return place;
}

// Where torch.utils.cpp_extension keeps its builds.
fs::path torch_extensions(const Context& context) {
  if (auto named = context.env.get("TORCH_EXTENSIONS_DIR")) return *named;
  auto cache = context.env.get("XDG_CACHE_HOME");
  auto home = context.env.get("HOME");
  if (!cache && !home) return {};
  return (cache ? fs::path(*cache) : fs::path(*home) / ".cache") / "torch_extensions";
}

// What may be removed there: a folder that the user named may hold other things than builds.
std::vector<fs::path> torch_builds(const Context& context) {
  fs::path top = torch_extensions(context);
  if (top.empty()) return {};
  if (!context.env.get("TORCH_EXTENSIONS_DIR")) return {top};
  std::vector<fs::path> folders;
  for (const std::string& name : sys::real_files().list(top))
    if (sys::real_files().state(top / name / "build.ninja").is_file())
      folders.push_back(top / name);
  return folders;
}

fs::path ccache_program(const Context& context) {
  return sys::find_program(sys::real_files(), "ccache",
                           context.env.get("PATH").value_or("/usr/bin:/bin"));
}

// Nothing where ccache is not there, or failed.
std::optional<std::string> ccache_says(const Context& context, const char* option) {
  fs::path program = ccache_program(context);
  if (program.empty()) return std::nullopt;
  sys::ProcessSpec spec;
  spec.arguments = {program.string(), option};
  spec.env = context.env;
  auto result = sys::real_processes().run(spec);
  if (!result || result->exit_code != 0) return std::nullopt;
  return result->out;
}

Result<int> show(const Context& context) {
  TRY(build::CachePlace place, place_of(context));
  TRY(build::CacheListing listing,
      build::prune(sys::real_files(), place.folder, UINT64_MAX, nullptr));
  build::CacheCounts counts = build::read_counts(sys::real_files(), place.folder);
  TRY(fs::path cache, project::cache_folder(context.env));
  fs::path torch = torch_extensions(context);
  const uint64_t tried = bytes_below(cache / "environments");
  uint64_t lone = bytes_below(cache / "lone"), torch_bytes = torch.empty() ? 0 : bytes_below(torch);
  std::string ccache = ccache_says(context, "--show-stats").value_or("");
  auto remote = context.env.get("KILN_CACHE_REMOTE");
  if (remote) remote = build::shown_place(*remote);
  if (context.json) {
    context.print_json({{"folder", place.folder.string()},
                        {"entries", listing.entries},
                        {"bytes", listing.bytes},
                        {"limit_bytes", place.limit_bytes},
                        {"hits", counts.local_hits},
                        {"shared_hits", counts.remote_hits},
                        {"misses", counts.misses},
                        {"damaged", counts.damaged},
                        {"evicted", counts.evicted},
                        {"remote", remote.value_or("")},
                        {"lone_builds_bytes", lone},
                        {"environments_bytes", tried},
                        {"torch_extensions", {{"folder", torch.string()}, {"bytes", torch_bytes}}},
                        {"ccache", ccache}});
    return 0;
  }
  std::string out = fmt::format("{}\n", place.folder.string());
  out += fmt::format("  {} entries, {} of at most {}\n", listing.entries, bytes_text(listing.bytes),
                     bytes_text(place.limit_bytes));
  out += fmt::format("  {} hits, {} shared hits, {} misses, {} damaged, {} evicted\n",
                     counts.local_hits, counts.remote_hits, counts.misses, counts.damaged,
                     counts.evicted);
  if (remote) out += fmt::format("  shared at {}\n", *remote);
  out += fmt::format("{}\n  {} of builds of single files\n", (cache / "lone").string(),
                     bytes_text(lone));
  if (tried)
    out += fmt::format("{}\n  {} of environments for kiln wheel and its --try\n",
                       (cache / "environments").string(), bytes_text(tried));
  if (!torch.empty() && torch_bytes)
    out += fmt::format("{}\n  {} of torch.utils.cpp_extension\n", torch.string(),
                       bytes_text(torch_bytes));
  if (!ccache.empty())
    out += "ccache\n  " + text::replace_all(text::trim(ccache), "\n", "\n  ") + "\n";
  context.print(out);
  return 0;
}

// The entry that a key, or the beginning of one, names.
Result<build::Entry> find_entry(const fs::path& folder, const std::string& key) {
  std::vector<std::string> found;
  if (key.size() >= 4)
    for (const std::string& name : sys::real_files().list(folder / "entries" / key.substr(0, 2)))
      if (name.starts_with(key)) found.push_back(name);
  if (found.size() != 1)
    return Error{Fault::Usage, fmt::format("cannot find the entry '{}'", key),
                 found.empty() ? "no key starts with it"
                               : fmt::format("{} keys start with it", found.size()),
                 "kiln build --explain prints keys; give at least four characters"};
  TRY(std::string bytes, sys::read_limited(sys::real_files(), build::entry_path(folder, found[0]),
                                           {.max_bytes = build::kMaxEntryBytes, .own_only = true}));
  TRY(build::Entry entry, build::read_entry_header(bytes));
  if (auto record = entry.parts.find("dependencies");
      record != entry.parts.end() && record->is_string())
    if (auto reads = build::parse_reads(record->get<std::string>())) *record = build::shown(*reads);
  return entry;
}

Result<int> explain(const Options& options, const Context& context) {
  TRY(build::CachePlace place, place_of(context));
  TRY(build::Entry entry, find_entry(place.folder, options.key));
  Json files = Json::array();
  for (const build::EntryFile& file : entry.files) files.push_back(file.name);
  Json json{{"key", entry.key}, {"what", entry.what}, {"files", files}, {"parts", entry.parts}};
  if (context.json) {
    context.print_json(json);
    return 0;
  }
  context.print(fmt::format("{}\n{}\n{}\n", entry.key, entry.what, dump(entry.parts, 2)));
  return 0;
}

void differences(const std::string& where, const Json& a, const Json& b,
                 std::vector<std::string>& out) {
  if (a == b) return;
  if (a.is_object() && b.is_object()) {
    for (const auto& [name, value] : a.items())
      differences(where.empty() ? name : where + " / " + name, value,
                  b.contains(name) ? b[name] : Json(), out);
    for (const auto& [name, value] : b.items())
      if (!a.contains(name))
        differences(where.empty() ? name : where + " / " + name, Json(), value, out);
    return;
  }
  if (a.is_array() && b.is_array() && a.size() == b.size()) {
    for (size_t i = 0; i < a.size(); ++i)
      differences(fmt::format("{}[{}]", where, i), a[i], b[i], out);
    return;
  }
  out.push_back(fmt::format("{}\n  - {}\n  + {}", where, a.is_null() ? "nothing" : dump(a),
                            b.is_null() ? "nothing" : dump(b)));
}

Result<int> compare(const Options& options, const Context& context) {
  TRY(build::CachePlace place, place_of(context));
  TRY(build::Entry a, find_entry(place.folder, options.key));
  TRY(build::Entry b, find_entry(place.folder, options.other));
  std::vector<std::string> out;
  differences("", a.parts, b.parts, out);
  if (context.json) {
    context.print_json({{"a", a.key}, {"b", b.key}, {"differences", out}});
    return 0;
  }
  if (out.empty()) out.emplace_back("both keys have the same parts");
  context.print(text::join(out, "\n") + "\n");
  return 0;
}

Result<int> prune_to(const Options& options, const Context& context) {
  TRY(build::CachePlace place, place_of(context));
  uint64_t limit = place.limit_bytes;
  if (!options.size.empty()) {
    sys::Environment env = context.env;
    env.set("KILN_CACHE_SIZE", options.size);
    auto asked = build::cache_place(env);
    if (!asked)
      return Error{Fault::Usage, fmt::format("cannot prune the cache to '{}'", options.size),
                   text::to_int(options.size) ? "it has no unit" : "it is not a size",
                   "give a unit: 500M or 5G"};
    limit = asked->limit_bytes;
  }
  int64_t removed = 0;
  TRY(build::CacheListing left,
      build::prune(sys::real_files(), place.folder, limit, &removed, options.dry_run));
  if (context.json)
    context.print_json({{"removed", removed},
                        {"entries", left.entries},
                        {"bytes", left.bytes},
                        {"dry_run", options.dry_run}});
  else
    context.print(fmt::format("{} {} entries, {} left ({})\n",
                              options.dry_run ? "would remove" : "removed", removed, left.entries,
                              bytes_text(left.bytes)));
  return 0;
}

Result<int> clear(const Options& options, const Context& context) {
  TRY(build::CachePlace place, place_of(context));
  std::vector<std::string> gone;
  auto remove = [&](const fs::path& folder) -> Status {
    if (folder.empty() || !sys::real_files().state(folder).exists) return {};
    if (!options.dry_run) CHECK_OK(sys::real_files().remove(folder));
    gone.push_back(folder.string());
    return {};
  };
  CHECK_OK(remove(place.folder / "entries"));
  CHECK_OK(remove(place.folder / "counts.json"));
  if (options.everything) {
    TRY(fs::path cache, project::cache_folder(context.env));
    for (const char* name : {"lone", "facts", "environments"}) CHECK_OK(remove(cache / name));
    for (const fs::path& folder : torch_builds(context)) CHECK_OK(remove(folder));
    if (!ccache_program(context).empty()) {
      if (!options.dry_run && !ccache_says(context, "--clear"))
        return Error{Fault::Environment, "cannot clear ccache's cache", "ccache --clear failed",
                     "run it by hand; CCACHE_DIR says where the cache is"};
      gone.emplace_back("ccache");
    }
  }
  if (context.json)
    context.print_json({{"removed", gone}, {"dry_run", options.dry_run}});
  else
    for (const std::string& name : gone)
      context.print((options.dry_run ? "would remove " : "removed ") + name + "\n");
  return 0;
}

Run setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  auto chosen = std::make_shared<std::function<Result<int>(Context&)>>(
      [](Context& context) { return show(context); });
  auto add = [&](const char* name, const char* text, auto run) {
    CLI::App* sub = app.add_subcommand(name, text);
    sub->fallthrough();
    sub->callback([chosen, run, options] {
      *chosen = [run, options](Context& context) { return run(*options, context); };
    });
    return sub;
  };
  app.require_subcommand(0, 1);
  add("show", "Sizes and hits, also of torch_extensions and ccache (the default)",
      [](const Options&, Context& context) { return show(context); });
  CLI::App* one = add("explain", "What one key was made of",
                      [](const Options& o, Context& c) { return explain(o, c); });
  one->add_option("KEY", options->key,
                  "A key that kiln build --explain printed, or its first characters")
      ->required()
      ->type_name("");
  CLI::App* two = add("compare", "What differs between two keys",
                      [](const Options& o, Context& c) { return compare(o, c); });
  two->add_option("A", options->key, "A key")->required()->type_name("");
  two->add_option("B", options->other, "Another")->required()->type_name("");
  CLI::App* less = add("prune", "Remove the least recently used entries",
                       [](const Options& o, Context& c) { return prune_to(o, c); });
  less->add_option("--size", options->size,
                   "Down to this size, e.g. 500M or 2G (default: the limit, KILN_CACHE_SIZE)")
      ->type_name("SIZE");
  CLI::App* none =
      add("clear", "Remove all entries", [](const Options& o, Context& c) { return clear(o, c); });
  none->add_flag(
      "--all", options->everything,
      "Also builds of single files, environments of kiln wheel, torch_extensions, ccache");
  for (CLI::App* sub : {less, none})
    sub->add_flag("--dry-run", options->dry_run, "Print what would be removed, and remove nothing");
  app.footer(
      "Environment: KILN_CACHE_DIR (a folder, or off), KILN_CACHE_SIZE, KILN_CACHE_REMOTE\n"
      "(redis://host:port or a folder), KILN_CACHE_SECRET, KILN_CACHE_TIMEOUT. kiln setup\n"
      "--cache-dir sets KILN_CACHE_DIR for good.");
  return [chosen](Context& context) { return (*chosen)(context); };
}

}  // namespace
}  // namespace cache_cli

const Command cache_command = {"cache", "Show, explain and clear what builds keep",
                               cache_cli::setup};

}  // namespace kiln::cli
