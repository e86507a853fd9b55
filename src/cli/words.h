// SPDX-License-Identifier: Apache-2.0
// Which words of a command line are kiln's own, and which belong to the program that it runs?
// Prepares them for the parser, so that its rules about lists, dashes and empty values stay out of
// users' sight: options are joined with their values, old names replaced, and what is wrong with a
// name is found here.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"

namespace kiln::cli {

// Where the command's name stands; the number of words where there is none.
size_t command_at(const std::vector<std::string>& words);

struct Prepared {
  std::vector<std::string> words;  // for the parser
  std::vector<std::string> rest;   // for the program or the script
  std::vector<std::string> notes;  // about old names
};

// `words` without the command's name. Fails for an option that the command does not have, or that
// lacks its value.
Result<Prepared> prepare_words(const Command& command, const CLI::App& app,
                               const std::vector<std::string>& words);

}  // namespace kiln::cli
