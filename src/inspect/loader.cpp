// SPDX-License-Identifier: Apache-2.0
// In which order does the dynamic loader look for a library?
#include "inspect/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace kiln::inspect {
namespace {

using binary::Bytes;
using sys::fs::path;

// A chain of libraries that is longer than this exists in no process.
constexpr size_t kMaxLibraries = 4096;

struct Node {
  binary::Elf elf;
  binary::Dynamic dynamic;
  path folder;
};

struct Found {
  path file;
  std::string how;
};

class Search {
 public:
  Search(const LoadWorld& world, uint16_t machine) : world_(world), machine_(machine) {
    auto cache = sys::MappedFile::open("/etc/ld.so.cache");
    if (cache) cache_ = parse_loader_cache(cache->bytes());
  }

  Found find(std::string_view name, const std::vector<Node>& nodes,
             const std::vector<LoadedLibrary>& tree, int asker) {
    if (name.find('/') != name.npos) return {fits(path(name)) ? path(name) : path(), "its path"};
    if (nodes[static_cast<size_t>(asker)].dynamic.runpath.empty())
      for (int at = asker; at >= 0; at = tree[static_cast<size_t>(at)].parent) {
        const Node& node = nodes[static_cast<size_t>(at)];
        if (!node.dynamic.runpath.empty()) continue;
        if (Found found = in_list(name, node.dynamic.rpath, node.folder, "RPATH");
            !found.file.empty())
          return found;
      }
    if (auto list = world_.env.get("LD_LIBRARY_PATH"))
      if (Found found = in_list(name, *list, {}, "LD_LIBRARY_PATH"); !found.file.empty())
        return found;
    const Node& node = nodes[static_cast<size_t>(asker)];
    if (Found found = in_list(name, node.dynamic.runpath, node.folder, "RUNPATH");
        !found.file.empty())
      return found;
    if (auto found = cache_.find(std::string(name)); found != cache_.end())
      for (const std::string& file : found->second)
        if (fits(file)) return {file, "ld.so.cache"};
    std::string triple =
        (machine_ == binary::kMachineAarch64 ? "aarch64" : "x86_64") + std::string("-linux-gnu");
    for (const std::string& folder :
         {"/lib/" + triple, "/usr/lib/" + triple, std::string("/lib64"), std::string("/usr/lib64"),
          std::string("/lib"), std::string("/usr/lib")})
      if (fits(path(folder) / name)) return {path(folder) / name, folder};
    return {};
  }

  Found find_beside(std::string_view name) {
    for (const path& folder : world_.beside)
      if (fits(folder / name)) return {folder / name, "not by the loader"};
    return {};
  }

 private:
  // A file for another machine is passed over, as the loader does.
  bool fits(const path& file) {
    if (auto coming = world_.coming.find(file.lexically_normal()); coming != world_.coming.end())
      return binary::read_at<uint16_t>(coming->second.bytes, 18) == machine_;
    if (!world_.files.state(file).is_file()) return false;
    auto mapped = sys::MappedFile::open(file);
    if (!mapped || !binary::is_elf(mapped->bytes())) return false;
    return binary::read_at<uint16_t>(mapped->bytes(), 18) == machine_;
  }

  Found in_list(std::string_view name, std::string_view list, const path& origin,
                const char* what) {
    if (list.empty()) return {};
    for (std::string_view word : text::split_any(list, what[0] == 'L' ? ":;" : ":")) {
      std::string folder = text::replace_all(text::replace_all(word, "${ORIGIN}", "$ORIGIN"),
                                             "$ORIGIN", origin.string());
      folder = text::replace_all(
          text::replace_all(folder, "${LIB}", "$LIB"), "$LIB",
          machine_ == binary::kMachineAarch64 ? "lib/aarch64-linux-gnu" : "lib/x86_64-linux-gnu");
      path file = path(folder) / name;
      if (fits(file)) return {file, fmt::format("{} {}", what, word)};
    }
    return {};
  }

  const LoadWorld& world_;
  uint16_t machine_;
  std::map<std::string, std::vector<std::string>> cache_;
};

Node open_library(const Found& found, const LoadWorld& world, LoadedLibrary& out) {
  Node node;
  out.path = found.file.lexically_normal();
  out.how = found.how;
  if (auto coming = world.coming.find(out.path); coming != world.coming.end()) {
    out.member = coming->second.member;
    out.bytes = coming->second.bytes;
    out.keeper = coming->second.keeper;
    node.folder = out.path.parent_path();
  } else {
    out.path = found.file;
    auto mapped = sys::MappedFile::open(found.file);
    if (mapped) {
      auto mapping = std::make_shared<const sys::MappedFile>(std::move(*mapped));
      out.bytes = mapping->bytes();
      out.keeper = mapping;
    }
    auto resolved = world.files.real_path(found.file);
    node.folder = (resolved ? *resolved : found.file).parent_path();
  }
  auto elf = binary::read_elf(out.bytes);
  if (!elf) return node;
  node.elf = std::move(*elf);
  if (auto dynamic = binary::read_dynamic(node.elf)) node.dynamic = std::move(*dynamic);
  return node;
}

}  // namespace

std::map<std::string, std::vector<std::string>> parse_loader_cache(Bytes cache) {
  constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
  constexpr uint64_t kHeader = 48, kEntry = 24;
  std::map<std::string, std::vector<std::string>> out;
  std::string_view text(reinterpret_cast<const char*>(cache.data()), cache.size());
  // The older format may come first, with the newer one behind it.
  size_t at = text.find(kMagic);
  if (at == text.npos) return out;
  Bytes table = cache.subspan(at);
  auto count = binary::read_at<uint32_t>(table, 20);
  if (!count) return out;
  for (uint64_t i = 0; i < *count; ++i) {
    uint64_t entry = kHeader + i * kEntry;
    auto key = binary::read_at<uint32_t>(table, entry + 4),
         value = binary::read_at<uint32_t>(table, entry + 8);
    if (!key || !value) break;
    std::string_view name = binary::text_at(table, *key), file = binary::text_at(table, *value);
    if (!name.empty()) out[std::string(name)].emplace_back(file);
  }
  return out;
}

Result<std::vector<LoadedLibrary>> load_tree(const path& library, Bytes bytes,
                                             const LoadWorld& world) {
  std::vector<LoadedLibrary> tree(1);
  std::vector<Node> nodes(1);
  TRY(nodes[0].elf, binary::read_elf(bytes));
  TRY(nodes[0].dynamic, binary::read_dynamic(nodes[0].elf));
  auto real = world.files.real_path(library);
  nodes[0].folder = (real ? *real : library).parent_path();
  tree[0].name = library.filename().string();
  tree[0].path = library;
  Search search(world, nodes[0].elf.machine);
  std::map<std::string, int, std::less<>> by_name;
  by_name[std::string(nodes[0].dynamic.soname)] = 0;
  for (size_t at = 0; at < tree.size() && tree.size() < kMaxLibraries; ++at) {
    // Copied: the list of nodes grows below.
    std::vector<std::string_view> needed = nodes[at].dynamic.needed;
    for (std::string_view name : needed) {
      if (name.empty()) continue;
      if (auto known = by_name.find(name); known != by_name.end()) {
        tree[at].children.push_back(known->second);
        continue;
      }
      LoadedLibrary next;
      next.name = std::string(name);
      next.parent = static_cast<int>(at);
      Found found = search.find(name, nodes, tree, static_cast<int>(at));
      if (found.file.empty()) {
        found = search.find_beside(name);
        next.by_loader = false;
      }
      Node node;
      if (!found.file.empty()) node = open_library(found, world, next);
      int index = static_cast<int>(tree.size());
      by_name[std::string(name)] = index;
      if (!node.dynamic.soname.empty()) by_name.emplace(std::string(node.dynamic.soname), index);
      tree[at].children.push_back(index);
      tree.push_back(std::move(next));
      nodes.push_back(std::move(node));
    }
  }
  return tree;
}

}  // namespace kiln::inspect
