// SPDX-License-Identifier: Apache-2.0
// How does --help fit the reader's window?
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace kiln::cli {

// CLI11's form, with descriptions broken at words and kept in their column.
class HelpForm : public CLI::Formatter {
 public:
  explicit HelpForm(size_t columns);
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;

 private:
  size_t columns_;
};

}  // namespace kiln::cli
