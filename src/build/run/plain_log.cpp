// SPDX-License-Identifier: Apache-2.0
#include "build/run/plain_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/ascii.h"
#include "base/text.h"
#include "build/run/compiler_log.h"
#include "build/run/op_mistakes.h"
#include "build/run/op_names.h"

namespace kiln::build {

namespace {

class Shaper {
 public:
  explicit Shaper(const SourcePlace& place) : place_(place) {
    // What is written as src/add.cu is below a folder that the user need not see again.
    if (place.source.ends_with("/" + place.shown))
      folder_ = place.source.substr(0, place.source.size() - place.shown.size());
    if (folder_ == "/") folder_.clear();
  }

  // Is it a mistake about kiln's macros or types? Then it stands where the user wrote it.
  bool settle(Diagnostic& one) {
    if (one.kind.empty()) return false;
    if (one.file.empty()) {  // "At end of source"
      one.file = place_.source;
      for (size_t i = 0; i < lines_of(one.file).size(); ++i)
        if (!text::trim(lines_of(one.file)[i]).empty()) one.line = static_cast<int>(i) + 1;
      one.head = {};
      return false;
    }
    // What stands in the parentheses of KILN_CHECK is the user's own code.
    if (!one.is_in_own_header()) return one.is_in_own_macro() && !line_of_op(one).empty();
    const auto place = user_place(one);
    if (place) std::tie(one.file, one.line) = *place;
    return place.has_value();
  }

  OpMistake mistake(const Diagnostic& one) {
    std::vector<std::string_view> trail = one.before;
    trail.insert(trail.end(), one.after.begin(), one.after.end());
    return op_mistake(one.message, trail, line_of_op(one), lines_of(one.file));
  }

  std::string head(const Diagnostic& one, const std::string& message) {
    return fmt::format("{}({}): {}: {}", shown(one.file), one.line, one.kind, message);
  }

  // An op that is named by a word of C++: what the compilers say follows from that.
  std::optional<PlainLog> reserved() {
    const auto found = reserved_name(lines_of(place_.source));
    if (!found) return std::nullopt;
    const auto& [why, fix] = found->mistake;
    const std::string at = fmt::format("{}({}): error: {}", place_.shown, found->line, why);
    return PlainLog{fmt::format("{}. Fix: {}\n", at, fix), true, at, fix};
  }

  // The line itself, where a compiler shows what its macros became.
  std::string excerpt(const Diagnostic& one) {
    const std::string line = written(one);
    return text::trim(line).empty() ? "" : fmt::format("  {}\n", text::trim(line));
  }

  std::string as_printed(const Diagnostic& one) {
    std::string out;
    for (std::string_view line : one.before) out.append(shown(line)) += '\n';
    if (!one.head.empty())
      out += shown(one.head) + "\n";
    else if (!one.kind.empty())
      out += head(one, one.message) + "\n" + excerpt(one);
    size_t next = 0;
    if (is_expanded(one)) {
      out += excerpt(one);
      next = one.after.size() > 1 && text::trim(one.after[1]) == "^" ? 2 : 1;
    }
    for (; next < one.after.size(); ++next) out.append(shown(one.after[next])) += '\n';
    return out;
  }

  // Paths as the user wrote them.
  std::string shown(std::string_view text) const {
    std::string out = text::replace_all(text, place_.source, place_.shown);
    if (folder_.empty()) return out;
    for (size_t at = out.find(folder_); at != std::string::npos; at = out.find(folder_, at)) {
      const char before = at == 0 ? ' ' : out[at - 1];
      if (is_name_part(before) || before == '.' || before == '-' || before == '/')
        at += folder_.size();
      else
        out.erase(at, folder_.size());
    }
    return out;
  }

 private:
  const std::vector<std::string>& lines_of(const std::string& file) {
    const std::string& path = file == place_.shown ? place_.source : file;
    auto [at, is_new] = files_.try_emplace(path);
    if (!is_new || !place_.read) return at->second;
    const std::string content = place_.read(path);
    for (std::string_view line : text::lines(content)) at->second.emplace_back(line);
    return at->second;
  }
  std::string written(const Diagnostic& one) {
    const auto& lines = lines_of(one.file);
    const auto index = static_cast<size_t>(one.line) - 1;
    return one.line > 0 && index < lines.size() ? lines[index] : "";
  }
  // The line with the KILN_OP that this one belongs to, itself or a line above it; "" where the
  // nearest macro of kiln's is another.
  std::string line_of_op(const Diagnostic& one) {
    constexpr int kMostLines = 12;
    const auto& lines = lines_of(one.file);
    for (int line = one.line; line > 0 && line > one.line - kMostLines; --line) {
      const auto index = static_cast<size_t>(line) - 1;
      if (index >= lines.size()) return "";
      if (lines[index].find("KILN_OP(") != std::string::npos) return lines[index];
      if (lines[index].find("KILN_") != std::string::npos) return "";
    }
    return "";
  }
  // nvcc's front end prints the line under its message, after the preprocessor.
  bool is_expanded(const Diagnostic& one) {
    if (one.by_gcc || one.kind.empty() || one.after.empty()) return false;
    const std::string_view line = one.after[0];
    const std::string real = written(one);
    return line.starts_with("  ") && !text::trim(real).empty() &&
           text::trim(line) != text::trim(real) && line.size() > real.size();
  }

  const SourcePlace& place_;
  std::string folder_;
  std::map<std::string, std::vector<std::string>> files_;
};

bool mentions(const Diagnostic& one, std::string_view text) {
  return one.message.find(text) != std::string::npos ||
         std::ranges::any_of(one.after, [&](std::string_view line) {
           return line.find(text) != std::string_view::npos;
         });
}

}  // namespace

PlainLog plain_log(std::string_view log, const SourcePlace& place) {
  Shaper shaper(place);
  PlainLog plain;
  std::set<Place> of_kiln;
  int errors = 0, errors_of_user = 0;
  for (Diagnostic& one : diagnostics_in(log)) {
    const bool of_macro = shaper.settle(one);
    if (!one.is_error()) {
      plain.text += shaper.as_printed(one);
      continue;
    }
    plain.located = true;
    // A type that could not be read makes everything after it fail too.
    const bool follows = errors > 0 && mentions(one, "<error-type>");
    if (follows || (of_macro && errors > 0 && of_kiln.contains({one.file, one.line}))) continue;
    if (of_macro && errors_of_user > 0 && is_consequence(one.message)) continue;
    ++errors;
    if (!of_macro) {
      ++errors_of_user;
      plain.text += shaper.as_printed(one);
      continue;
    }
    of_kiln.insert({one.file, one.line});
    const OpMistake mistake = shaper.mistake(one);
    plain.why = shaper.head(one, mistake.why);
    plain.fix = mistake.fix;
    plain.text += plain.why + (mistake.fix.empty() ? "" : ". Fix: " + mistake.fix) + "\n" +
                  shaper.excerpt(one);
  }
  if (errors > 0)
    if (auto reserved = shaper.reserved()) return *reserved;
  if (errors != 1) plain.why = plain.fix = "";
  return plain;
}

std::vector<std::string> plain_warnings(std::string_view log, const SourcePlace& place,
                                        std::set<std::string>& said) {
  Shaper shaper(place);
  std::vector<std::string> out;
  for (Diagnostic& one : diagnostics_in(log)) {
    shaper.settle(one);
    const std::string text(text::trim(shaper.as_printed(one)));
    const std::string where =
        one.kind.empty() ? text : fmt::format("{}({})", shaper.shown(one.file), one.line);
    if (text.empty() || (one.by_gcc && said.contains(where)) || !said.insert(text).second) continue;
    said.insert(where);
    out.push_back(text);
  }
  return out;
}

}  // namespace kiln::build
