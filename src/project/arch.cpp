// SPDX-License-Identifier: Apache-2.0
// For which GPU architectures is code made?
#include "project/arch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"

namespace kiln::project {

namespace {

struct Family {
  std::string_view name;
  std::string_view list;
};

// The names that torch.utils.cpp_extension takes in TORCH_CUDA_ARCH_LIST, for what nvcc 12 and 13
// still compile.
constexpr Family kFamilies[] = {
    {"maxwell", "5.0;5.2"}, {"pascal", "6.0;6.1+PTX"}, {"volta+tegra", "7.2"},
    {"volta", "7.0+PTX"},   {"turing", "7.5+PTX"},     {"ampere", "8.0;8.6+PTX"},
    {"ada", "8.9+PTX"},     {"hopper", "9.0+PTX"},     {"blackwell", "10.0;10.3;12.0;12.1+PTX"},
};

struct Item {
  Arch arch;
  bool sass = true;
  bool ptx = false;
};

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

constexpr std::string_view kGencode[] = {"-gencode", "--generate-code"};
constexpr std::string_view kArch[] = {"-arch", "--gpu-architecture"};
constexpr std::string_view kCode[] = {"-code", "--gpu-code"};

struct FlagValue {
  std::string value;
  size_t words = 0;  // of the flags; 0: it is another flag
};

// "-arch=sm_90" and "-arch sm_90".
template <class Names>
FlagValue value_of_flag(const std::vector<std::string>& flags, size_t at, const Names& names) {
  std::string_view flag = flags[at];
  for (std::string_view name : names) {
    if (flag == name && at + 1 < flags.size()) return {flags[at + 1], 2};
    if (flag.starts_with(name) && flag.size() > name.size() && flag[name.size()] == '=')
      return {std::string(flag.substr(name.size() + 1)), 1};
  }
  return {};
}

std::string without_quotes(std::string text) {
  std::erase_if(text, [](char c) { return c == '"' || c == '\'' || c == '[' || c == ']'; });
  return text;
}

bool is_real_or_virtual(std::string_view word) {
  return word.starts_with("sm_") || word.starts_with("compute_");
}

// What -gencode's "arch=compute_80,code=[sm_80,compute_80]" and -code's "sm_80,compute_80" ask for.
// nvcc lets -gencode say "arch" alone.
bool add_codes(std::string_view text, std::string& list) {
  std::string virtual_arch;
  bool any = false;
  for (std::string_view word : text::split(text, ',')) {
    if (word.starts_with("arch=")) {
      virtual_arch = word.substr(5);
      continue;
    }
    if (word.starts_with("code=")) word.remove_prefix(5);
    if (!is_real_or_virtual(word)) return false;
    list += std::string(word) + ";";
    any = true;
  }
  if (!any && is_real_or_virtual(virtual_arch)) {
    list += virtual_arch + ";";
    any = true;
  }
  return any;
}

// "9.0a" or "90a"
std::optional<Arch> parse_arch(std::string_view text) {
  Arch arch;
  if (text.ends_with('a') || text.ends_with('f')) {
    arch.variant = text.back();
    text.remove_suffix(1);
  }
  std::string_view major, minor;
  if (size_t dot = text.find('.'); dot != std::string_view::npos) {
    major = text.substr(0, dot);
    minor = text.substr(dot + 1);
  } else if (text.size() >= 2) {
    major = text.substr(0, text.size() - 1);
    minor = text.substr(text.size() - 1);
  }
  if (!all_digits(major) || !all_digits(minor) || major.size() > 2 || minor.size() > 1)
    return std::nullopt;
  arch.major = static_cast<int>(*text::to_int(major));
  arch.minor = static_cast<int>(*text::to_int(minor));
  return arch;
}

std::optional<Item> parse_item(std::string_view word) {
  Item item;
  std::string lower = text::lower(word);
  std::string_view rest = lower;
  if (rest.ends_with("+ptx")) {
    item.ptx = true;
    rest.remove_suffix(4);
  }
  if (rest.starts_with("sm_")) {
    rest.remove_prefix(3);
  } else if (rest.starts_with("compute_")) {
    rest.remove_prefix(8);
    item.sass = false;
    item.ptx = true;
  }
  auto arch = parse_arch(rest);
  if (!arch) return std::nullopt;
  item.arch = *arch;
  return item;
}

void sort_once(std::vector<Arch>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

void complete_ptx(ArchList& list) {
  if (list.ptx.empty()) {
    for (const Arch& arch : list.sass)
      if (arch.variant) list.ptx.push_back(arch);
    auto newest = std::find_if(list.sass.rbegin(), list.sass.rend(),
                               [](const Arch& a) { return !a.variant; });
    if (newest != list.sass.rend()) list.ptx.push_back(*newest);
  }
  sort_once(list.ptx);
}

}  // namespace

std::string Arch::text() const {
  return fmt::format("{}.{}{}", major, minor, variant ? std::string(1, variant) : "");
}
std::string Arch::number() const {
  return fmt::format("{}{}{}", major, minor, variant ? std::string(1, variant) : "");
}

Result<ArchList> parse_arch_list(std::string_view text) {
  ArchList list;
  std::string spelled_out;
  for (std::string_view word : text::split_any(text, "; ,\t")) {
    auto family = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                               [&](const Family& f) { return f.name == text::lower(word); });
    spelled_out += std::string(family == std::end(kFamilies) ? word : family->list) + ";";
  }
  for (std::string_view word : text::split_any(spelled_out, ";")) {
    auto item = parse_item(word);
    if (!item)
      return Error{Fault::Usage, fmt::format("unknown GPU architecture '{}'", word),
                   "an architecture is written as 9.0, 9.0a, 9.0+PTX, sm_90, Hopper or native",
                   "kiln build --arch 9.0"};
    if (item->sass) list.sass.push_back(item->arch);
    if (item->ptx) list.ptx.push_back(item->arch);
  }
  if (list.sass.empty() && list.ptx.empty())
    return Error{Fault::Usage, "the list of GPU architectures is empty",
                 fmt::format("it is '{}'", text), "kiln build --arch 9.0"};
  sort_once(list.sass);
  complete_ptx(list);
  return list;
}

std::string take_arch_flags(std::vector<std::string>& flags) {
  std::vector<std::string> rest;
  std::string list, arch;  // -arch counts where no -code says more
  bool codes = false;
  for (size_t i = 0; i < flags.size();) {
    FlagValue found = value_of_flag(flags, i, kGencode);
    if (!found.words) found = value_of_flag(flags, i, kCode);
    if (found.words) {
      if (!add_codes(without_quotes(found.value), list)) return "";
      codes = true;
    } else if (found = value_of_flag(flags, i, kArch); found.words) {
      arch = without_quotes(found.value);
      if (!is_real_or_virtual(arch) && arch != "native") return "";
    } else {
      found.words = 1;
      rest.push_back(flags[i]);
    }
    i += found.words;
  }
  if (!codes) list = arch;
  while (list.ends_with(';')) list.pop_back();
  if (!list.empty()) flags = std::move(rest);
  return list;
}

ArchList only(Arch arch) { return {{arch}, {arch}}; }

std::vector<std::string> gencode_flags(const ArchList& list) {
  std::map<Arch, std::vector<std::string>> codes;  // by virtual architecture
  for (const Arch& arch : list.sass) codes[arch].push_back("sm_" + arch.number());
  for (const Arch& arch : list.ptx) codes[arch].push_back("compute_" + arch.number());
  std::vector<std::string> flags;
  for (const auto& [arch, code] : codes)
    flags.push_back(
        fmt::format("-gencode=arch=compute_{},code=[{}]", arch.number(), text::join(code, ",")));
  return flags;
}

std::string describe(const ArchList& list) {
  std::vector<std::string> sass, ptx;
  for (const Arch& arch : list.sass) sass.push_back("sm_" + arch.number());
  for (const Arch& arch : list.ptx) ptx.push_back("compute_" + arch.number());
  return fmt::format("{}{}PTX {}", text::join(sass, ", "), sass.empty() ? "" : " + ",
                     text::join(ptx, ", "));
}

}  // namespace kiln::project
