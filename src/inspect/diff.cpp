// SPDX-License-Identifier: Apache-2.0
// How are the kernels of two files matched and compared?
#include "inspect/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/text.h"

namespace kiln::inspect {
namespace {

using results::BlockDiff;
using results::Change;
using results::Figure;
using results::FileDiff;
using results::KernelDiff;
using Key = std::pair<std::string, std::string>;  // architecture, symbol

std::set<std::string> archs_of(const Analysis& analysis) {
  std::set<std::string> out;
  for (const KernelRow& row : analysis.kernels.rows) out.insert(row.arch_text());
  return out;
}

// `archs`: those to take, each under the name that it is matched by.
std::map<Key, const KernelRow*> rows_of(const Analysis& analysis,
                                        const std::map<std::string, std::string>& archs) {
  std::map<Key, const KernelRow*> out;
  for (const KernelRow& row : analysis.kernels.rows)
    if (const auto arch = archs.find(row.arch_text()); arch != archs.end())
      out.emplace(Key(arch->second, row.name), &row);
  return out;
}

using ArchNames = std::map<std::string, std::string>;

// A kernel that was built for one more architecture is not a new kernel: only what both files have
// is compared. Files without a common architecture are compared by the newest of each.
std::pair<ArchNames, ArchNames> common_archs(const Analysis& before, const Analysis& after,
                                             FileDiff& diff) {
  const std::set<std::string> a = archs_of(before), b = archs_of(after);
  ArchNames of_before, of_after;
  for (const std::string& arch : a)
    if (b.contains(arch)) of_before[arch] = of_after[arch] = arch;
  if (of_before.empty() && !a.empty() && !b.empty()) {
    diff.before_arch = *a.rbegin();
    diff.after_arch = *b.rbegin();
    of_before[diff.before_arch] = of_after[diff.after_arch] = diff.after_arch;
  }
  if (a.empty() || b.empty()) {  // all that there is was added or removed
    for (const std::string& arch : a) of_before[arch] = arch;
    for (const std::string& arch : b) of_after[arch] = arch;
  }
  for (const std::string& arch : a)
    if (!of_before.contains(arch)) diff.only_before.push_back(arch);
  for (const std::string& arch : b)
    if (!of_after.contains(arch)) diff.only_after.push_back(arch);
  return {of_before, of_after};
}

// "add_kernel<float>" of "void (anonymous namespace)::add_kernel<float>(float*, int)".
std::string plain_name(const std::string& symbol) {
  std::string name = text::replace_all(binary::demangle(symbol), "(anonymous namespace)::", "");
  // Names in anonymous namespaces of CUDA hash the file: _GLOBAL__N__1a2b3c_6_add_cu_4d5e.
  if (size_t at = name.find("_GLOBAL__N__"); at != name.npos)
    if (size_t end = name.find("::", at); end != name.npos) name.erase(at, end + 2 - at);
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (name[i] == '(' && depth <= 0) return name.substr(0, i);
  }
  return name;
}

std::vector<Figure> figures_of(const KernelRow* before, const KernelRow* after) {
  std::vector<Figure> out;
  auto add = [&](const char* name, auto&& value) {
    out.push_back({name, before ? static_cast<int64_t>(value(*before)) : 0,
                   after ? static_cast<int64_t>(value(*after)) : 0});
  };
  add("registers", [](const KernelRow& row) { return row.resources.registers; });
  add("shared bytes", [](const KernelRow& row) { return row.user_shared_bytes(); });
  add("stack bytes", [](const KernelRow& row) { return row.resources.stack_bytes; });
  add("spill store bytes", [](const KernelRow& row) { return row.resources.spill_store_bytes; });
  add("spill load bytes", [](const KernelRow& row) { return row.resources.spill_load_bytes; });
  add("constant bytes", [](const KernelRow& row) { return row.resources.constant_bytes; });
  add("barriers", [](const KernelRow& row) { return row.resources.attributes.barriers; });
  add("instructions", [](const KernelRow& row) { return row.instructions(); });
  add("blocks per SM", [](const KernelRow& row) {
    bool known = false;
    return occupancy_of(row, row.block_threads(256), &known).blocks;
  });
  return out;
}

std::vector<Figure> mix_of(const KernelRow* before, const KernelRow* after) {
  std::vector<Figure> out;
  for (size_t i = 0; i < binary::kSassClasses; ++i) {
    int64_t a = before ? before->resources.counts[i] : 0,
            b = after ? after->resources.counts[i] : 0;
    if (a || b) out.push_back({std::string(name_of(static_cast<binary::SassClass>(i))), a, b});
  }
  return out;
}

// Fewer registers, bytes and instructions are fewer resources; so are more blocks at once.
Change verdict(const std::vector<Figure>& figures) {
  bool fewer = false, more = false;
  for (const Figure& figure : figures) {
    int64_t delta = figure.name == "blocks per SM" ? -figure.delta() : figure.delta();
    fewer |= delta < 0;
    more |= delta > 0;
  }
  return fewer && more ? Change::Mixed
         : fewer       ? Change::FewerResources
         : more        ? Change::MoreResources
                       : Change::Same;
}

KernelDiff compare_kernels(const KernelRow* before, const KernelRow* after) {
  const KernelRow* row = after ? after : before;
  KernelDiff out;
  out.symbol = row->name;
  out.name = binary::demangle(row->name);
  out.arch = row->arch_text();
  out.figures = figures_of(before, after);
  out.mix = mix_of(before, after);
  out.change = !before ? Change::Added : !after ? Change::Removed : verdict(out.figures);
  out.code_differs = !before || !after || before->resources.counts != after->resources.counts ||
                     before->resources.code_bytes != after->resources.code_bytes;
  return out;
}

// ---- SASS by block

struct Block {
  std::string label;
  std::vector<std::string> lines;
};

// Branch targets are named by where they lead: the number of the block.
std::vector<Block> blocks_of(const Listing& listing) {
  std::map<std::string, size_t> number;
  size_t blocks = 1;
  for (const SassLine& line : listing.lines)
    if (!line.label.empty()) number[line.label] = blocks++;
  std::vector<Block> out(1);
  out[0].label = "entry";
  for (const SassLine& line : listing.lines) {
    if (!line.label.empty()) out.push_back({fmt::format("block {}", number[line.label]), {}});
    std::string text = text::replace_all(line.text, ".reuse", "");
    if (!line.target.empty())
      text = text::replace_all(text, "`(" + line.target + ")",
                               number.contains(line.target)
                                   ? fmt::format("block {}", number[line.target])
                                   : "elsewhere");
    out.back().lines.push_back(std::move(text));
  }
  return out;
}

// Longest common subsequence, in bounded memory: beyond it a block counts as replaced.
std::vector<std::pair<char, std::string>> line_diff(const std::vector<std::string>& a,
                                                    const std::vector<std::string>& b) {
  constexpr size_t kMaxCells = 16'000'000;
  std::vector<std::pair<char, std::string>> out;
  size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  size_t n = a.size() - head, m = b.size() - head;
  for (size_t i = 0; i < head; ++i) out.emplace_back(' ', a[i]);
  if ((n + 1) * (m + 1) > kMaxCells) {
    for (size_t i = 0; i < n; ++i) out.emplace_back('-', a[head + i]);
    for (size_t j = 0; j < m; ++j) out.emplace_back('+', b[head + j]);
    return out;
  }
  std::vector<uint32_t> best((n + 1) * (m + 1));
  auto at = [&](size_t i, size_t j) -> uint32_t& { return best[i * (m + 1) + j]; };
  for (size_t i = n; i-- > 0;)
    for (size_t j = m; j-- > 0;)
      at(i, j) =
          a[head + i] == b[head + j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
  size_t i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && a[head + i] == b[head + j]) {
      out.emplace_back(' ', a[head + i]);
      ++i, ++j;
    } else if (i < n && (j == m || at(i + 1, j) >= at(i, j + 1))) {
      out.emplace_back('-', a[head + i++]);
    } else {
      out.emplace_back('+', b[head + j++]);
    }
  }
  return out;
}

std::vector<BlockDiff> compare_blocks(const Listing& before, const Listing& after) {
  std::vector<Block> a = blocks_of(before), b = blocks_of(after);
  std::vector<BlockDiff> out;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    static const Block kNone;
    const Block &one = i < a.size() ? a[i] : kNone, &other = i < b.size() ? b[i] : kNone;
    BlockDiff diff;
    diff.label = i < b.size() ? other.label : one.label;
    diff.lines = line_diff(one.lines, other.lines);
    diff.changed = std::any_of(diff.lines.begin(), diff.lines.end(),
                               [](const auto& line) { return line.first != ' '; });
    out.push_back(std::move(diff));
  }
  return out;
}

const Listing* find_listing(const CodeList& code, const std::string& arch,
                            const std::string& symbol) {
  for (const CodeImage& image : code.images)
    for (const Listing& listing : image.listing.kernels)
      if (listing.arch == arch &&
          (listing.symbol == symbol || plain_name(listing.symbol) == plain_name(symbol)))
        return &listing;
  return nullptr;
}

}  // namespace

results::FileDiff compare_files(const Analysis& before, const Analysis& after,
                                const std::string& filter) {
  FileDiff out;
  out.before = before.file.name;
  out.after = after.file.name;
  const auto [of_before, of_after] = common_archs(before, after, out);
  std::map<Key, const KernelRow*> a = rows_of(before, of_before), b = rows_of(after, of_after),
                                  by_plain;
  std::set<Key> ambiguous;
  std::vector<Key> gone;
  for (const auto& [key, row] : a) {
    if (b.contains(key)) continue;
    Key plain(key.first, plain_name(key.second));
    if (!by_plain.emplace(plain, row).second) ambiguous.insert(plain);
  }
  std::set<const KernelRow*> matched;
  Demangler demangle;
  for (const auto& [key, row] : b) {
    const KernelRow* old = nullptr;
    if (auto same = a.find(key); same != a.end()) old = same->second;
    if (!old) {
      Key plain(key.first, plain_name(key.second));
      auto near = by_plain.find(plain);
      if (near != by_plain.end() && !ambiguous.contains(plain) && !matched.contains(near->second))
        old = near->second;
    }
    if (old) matched.insert(old);
    if (name_matches(filter, row->name, demangle(row->name)))
      out.kernels.push_back(compare_kernels(old, row));
  }
  for (const auto& [key, row] : a)
    if (!matched.contains(row) && name_matches(filter, row->name, demangle(row->name)))
      out.kernels.push_back(compare_kernels(row, nullptr));
  std::map<Group, Figure> groups;
  for (const GroupTotal& total : totals_of(before.pieces))
    groups[total.group].before = static_cast<int64_t>(total.bytes);
  for (const GroupTotal& total : totals_of(after.pieces))
    groups[total.group].after = static_cast<int64_t>(total.bytes);
  for (auto& [group, figure] : groups) {
    figure.name = std::string(name_of(group));
    out.groups.push_back(figure);
  }
  std::set<std::string> old_images, new_images;
  for (const Image& image : before.images.images) old_images.insert(image.label());
  for (const Image& image : after.images.images) new_images.insert(image.label());
  std::set_difference(new_images.begin(), new_images.end(), old_images.begin(), old_images.end(),
                      std::back_inserter(out.images_added));
  std::set_difference(old_images.begin(), old_images.end(), new_images.begin(), new_images.end(),
                      std::back_inserter(out.images_removed));
  return out;
}

void add_blocks(results::FileDiff& diff, const CodeList& before, const CodeList& after) {
  for (KernelDiff& kernel : diff.kernels) {
    if (kernel.change == Change::Added || kernel.change == Change::Removed) continue;
    const Listing* a = find_listing(
        before, diff.before_arch.empty() ? kernel.arch : diff.before_arch, kernel.symbol);
    const Listing* b = find_listing(after, kernel.arch, kernel.symbol);
    if (!a || !b) continue;
    kernel.blocks = compare_blocks(*a, *b);
    kernel.code_differs = std::any_of(kernel.blocks.begin(), kernel.blocks.end(),
                                      [](const BlockDiff& block) { return block.changed; });
  }
}

}  // namespace kiln::inspect
