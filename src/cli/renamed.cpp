// SPDX-License-Identifier: Apache-2.0
// Which options had another name, or another meaning, in the release before?
#include "cli/renamed.h"

#include <fmt/format.h>

namespace kiln::cli {
namespace {

using Kind = Renamed::Kind;

bool is_json(std::string_view file) { return file.ends_with(".json"); }
bool is_full(std::string_view lane) { return lane == "full"; }
bool is_define(std::string_view axis) { return axis.starts_with("D:"); }

// The first row that fits counts.
constexpr Renamed kRows[] = {
    {"build", "--timeline", Kind::Name, "--trace", "", is_json},
    {"build", "--timeline", Kind::Name, "--html", ""},
    {"call", "--save", Kind::Name, "--output", ""},
    {"run", "--source", Kind::Positional, "",
     "--source FILE is now an argument: kiln run main.cu FILE"},
    {"test", "--clean", Kind::Name, "--fresh", ""},
    {"bench", "--most", Kind::Name, "--time", ""},
    {"bench", "--time", Kind::Meaning, "",
     "--time now stops after SECONDS; the time to sample at least is --min-time"},
    {"bench", "--explain", Kind::Meaning, "",
     "--explain now says why the build did what it did; naive timers are --naive-times"},
    {"bench", "--axis", Kind::Meaning, "", "--axis D:NAME=A,B is now --vary NAME=A,B", is_define},
    {"bench", "--update", Kind::Meaning, "",
     "--baseline NAME --update is now --save-baseline NAME"},
    {"tune", "--param", Kind::Name, "--vary", ""},
    {"tune", "--reference", Kind::Name, "--against", ""},
    {"tune", "--check", Kind::Name, "--check-args", ""},
    {"inspect", "--block", Kind::Name, "--threads", ""},
    {"doctor", "--build", Kind::Positional, "", "--build DIR is now an argument: kiln doctor DIR"},
    {"doctor", "--quick", Kind::Name, "--no-compile", ""},
    {"setup", "--cache", Kind::Name, "--cache-dir", ""},
    {"", "--lane", Kind::Flag, "--fresh", "--lane full is now --fresh", is_full},
    {"", "--lane", Kind::Gone, "", "--lane auto is what kiln does; leave it out"},
};

}  // namespace

const Renamed* find_renamed(std::string_view command, std::string_view option,
                            std::string_view value) {
  for (const Renamed& row : kRows)
    if ((row.command.empty() || row.command == command) && row.old_name == option &&
        (!row.applies || row.applies(value)))
      return &row;
  return nullptr;
}

std::string note_of(const Renamed& row) {
  if (row.kind == Kind::Meaning) return fmt::format("note: {}", row.note);
  if (!row.note.empty()) return fmt::format("note: {} (works until the next release)", row.note);
  return fmt::format("note: {} is now {} (works until the next release)", row.old_name, row.now);
}

}  // namespace kiln::cli
