// SPDX-License-Identifier: Apache-2.0
// Which places in what the compilers write to each other name a folder, or repeat what does not
// matter?
#include "build/run/preprocessed.h"

#include <cstdlib>

#include "base/text.h"

namespace kiln::build {

namespace {

// Calls `change(line)` for each line; it returns what to write in its place.
template <class Change>
std::string each_line(std::string_view text, Change change) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    size_t end = text.find('\n');
    size_t length = end == std::string_view::npos ? text.size() : end + 1;
    change(text.substr(0, length), out);
    text.remove_prefix(length);
  }
  return out;
}

constexpr std::string_view kBodyMark = "// kiln: a device body from line ";

bool is_marker(std::string_view line) {
  return line.size() > 2 && line[0] == '#' && line[1] == ' ' && line[2] >= '0' && line[2] <= '9';
}

// The path between the first two quotes of the line.
template <class Swap>
void append_with_path(std::string_view line, std::string& out, Swap swap) {
  size_t open = line.find('"');
  size_t close = open == std::string_view::npos ? open : line.find('"', open + 1);
  if (close == std::string_view::npos) {
    out.append(line);
    return;
  }
  out.append(line.substr(0, open + 1))
      .append(swap(line.substr(open + 1, close - open - 1)))
      .append(line.substr(close));
}

// cudafe++ writes k\303\251rnel for "kérnel", and a backslash before quotes and backslashes.
std::string unescaped(std::string_view path) {
  auto octal = [&](size_t i) { return i < path.size() && path[i] >= '0' && path[i] <= '7'; };
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '\\' || i + 1 == path.size()) {
      out += path[i];
    } else if (octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      out +=
          static_cast<char>((path[i + 1] - '0') * 64 + (path[i + 2] - '0') * 8 + path[i + 3] - '0');
      i += 3;
    } else {
      out += path[++i];
    }
  }
  return out;
}

}  // namespace

std::string with_canonical_markers(const std::vector<Root>& roots, std::string_view preprocessed) {
  return each_line(preprocessed, [&](std::string_view line, std::string& out) {
    if (is_marker(line))
      append_with_path(line, out,
                       [&](std::string_view path) { return canonical_path(roots, path); });
    else
      out.append(line);
  });
}

std::string with_real_files(const std::vector<Root>& roots, std::string_view ptx) {
  return each_line(ptx, [&](std::string_view line, std::string& out) {
    size_t start = line.find_first_not_of(" \t");
    if (start != std::string_view::npos && line.substr(start).starts_with(".file"))
      append_with_path(line, out, [&](std::string_view path) { return real_path(roots, path); });
    else
      out.append(line);
  });
}

std::string without_device_bodies(std::string_view host_code) {
  int depth = 0;
  bool marked = false;
  return each_line(host_code, [&](std::string_view line, std::string& out) {
    if (depth == 0 && line != "#if 0\n") {
      out.append(line);
      return;
    }
    if (depth == 0) marked = false;
    if (!marked && is_marker(line)) {
      out.append(kBodyMark).append(line.substr(2, line.find_first_of(" \n", 2) - 2)).append("\n");
      marked = true;
    }
    if (line.starts_with("#if")) ++depth;
    if (line.starts_with("#endif")) --depth;
  });
}

std::set<size_t> lines_of_device_bodies(const std::vector<Root>& roots, std::string_view host_code,
                                        std::string_view source) {
  std::set<size_t> lines;
  const std::string wanted = canonical_path(roots, source);
  bool here = false;
  for (std::string_view line : text::lines(host_code)) {
    if (is_marker(line)) {
      const size_t open = line.find('"'), close = line.rfind('"');
      if (open != close)
        here = canonical_path(roots, unescaped(line.substr(open + 1, close - open - 1))) == wanted;
    } else if (here && line.starts_with(kBodyMark)) {
      lines.insert(std::strtoul(std::string(line.substr(kBodyMark.size())).c_str(), nullptr, 10));
    }
  }
  return lines;
}

}  // namespace kiln::build
