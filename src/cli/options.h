// SPDX-License-Identifier: Apache-2.0
// Which options mean the same in several commands? One function for each, so that they have one
// name, one form and one text.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"

namespace kiln::cli {

// A list that takes one value each time it is named, so that a target may follow.
CLI::Option* add_list(CLI::App& app, const char* names, std::vector<std::string>& to,
                      const char* type, const char* text);

// Arguments of an op, as the last positionals. Not a list of CLI11's own: that would take [1,2,3]
// apart.
void add_op_arguments(CLI::App& app, std::vector<std::string>& to, const char* text);

// --limit SECONDS: whatever runs longer is killed, and the command ends with 1. `what` says what is
// meant: "the call", "a variant". A `seconds` of 0 means no limit.
void add_limit(CLI::App& app, double& seconds, const char* what);

// --device WHERE.
void add_device(CLI::App& app, std::string& device);

// A value from a short list; the message names the others.
CLI::Validator one_of(const std::vector<std::string>& values);
// A whole number from `least` on, or a number above zero.
CLI::Validator whole_number(int64_t least, int64_t most);
CLI::Validator positive_number();

// Files that a command writes besides its result: --html, --csv and so on; "-" is stdout, and then
// nothing else is printed there.
struct OutputFile {
  const char* option;
  const std::string& to;
};
// Before any work: at most one of them is stdout, none with --json, and the folder of each is
// there. Whether stdout is taken.
Result<bool> check_outputs(const std::vector<OutputFile>& files, const Context& context);
// Writes it, or prints it for "-"; nothing where `to` is empty.
Status write_output(const std::string& to, const std::string& text, const Context& context);

}  // namespace kiln::cli
