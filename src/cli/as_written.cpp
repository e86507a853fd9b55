// SPDX-License-Identifier: Apache-2.0
// What does a message call a file? What the command line calls it.
#include "cli/as_written.h"

#include <string_view>

#include "base/ascii.h"

namespace kiln::cli {
namespace {

// A folder or file under its full name, and what people call it.
struct Named {
  std::string full, shown;
  bool alone;  // also where nothing follows
};

bool is_of_path(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
         c == '+' || c == '.' || c == '/' || static_cast<unsigned char>(c) >= 0x80;
}

// A name ends before "/", before what no path contains, and before the full stop of a sentence.
bool ends_at(std::string_view text, size_t at) {
  if (at == text.size() || text[at] == '/' || !is_of_path(text[at])) return true;
  return text[at] == '.' && (at + 1 == text.size() || text[at + 1] == ' ');
}

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// "--html=page.html" names page.html.
std::string_view value_of(std::string_view word) {
  if (!word.starts_with('-')) return word;
  const size_t equals = word.find('=');
  return equals == word.npos ? std::string_view() : word.substr(equals + 1);
}

std::vector<Named> names_in(const std::vector<std::string>& words,
                            const std::filesystem::path& directory) {
  const std::string here = without_slash(directory.lexically_normal().string());
  // Of the root nothing would be left to cut off.
  std::vector<Named> names;
  if (here != "/") names.push_back({here, "", false});
  for (const std::string& word : words) {
    const std::string written = without_slash(std::string(value_of(word)));
    if (written.empty() || written == "/") continue;
    std::string full = without_slash((directory / written).lexically_normal().string());
    const bool dots = written.find_first_not_of("./") == written.npos;
    if (full != here && full != "/") names.push_back({std::move(full), written, !dots});
  }
  return names;
}

// The longest name that stands at `at`: the innermost folder knows best.
const Named* name_at(std::string_view text, size_t at, const std::vector<Named>& names) {
  const Named* best = nullptr;
  for (const Named& one : names) {
    if (best && best->full.size() >= one.full.size()) continue;
    if (!text.substr(at).starts_with(one.full)) continue;
    const size_t end = at + one.full.size();
    const bool goes_on = end + 1 < text.size() && text[end] == '/' && is_of_path(text[end + 1]);
    if (goes_on || (one.alone && ends_at(text, end))) best = &one;
  }
  return best;
}

}  // namespace

std::string as_written(const std::string& text, const std::vector<std::string>& words,
                       const std::filesystem::path& directory) {
  if (text.find('/') == text.npos) return text;
  const std::vector<Named> names = names_in(words, directory);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool begins = text[at] == '/' && (at == 0 || !is_of_path(text[at - 1]));
    const Named* name = begins ? name_at(text, at, names) : nullptr;
    if (!name) {
      out += text[at++];
      continue;
    }
    out += name->shown;
    at += name->full.size() + (name->shown.empty() ? 1 : 0);
  }
  return out;
}

Error as_written(Error error, const std::vector<std::string>& words,
                 const std::filesystem::path& directory) {
  for (std::string* part : {&error.what, &error.why, &error.fix})
    *part = as_written(*part, words, directory);
  return error;
}

}  // namespace kiln::cli
