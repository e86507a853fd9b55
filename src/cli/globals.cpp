// SPDX-License-Identifier: Apache-2.0
// Which options does every command have?
#include "cli/globals.h"

#include "cli/help.h"
#include "cli/options.h"

namespace kiln::cli {

void add_global_options(CLI::App& app, Globals& globals) {
  const auto shared = [](CLI::Option* option) { return option->group(kGlobalGroup); };
  shared(app.set_help_flag("-h,--help", "Print this help and exit"));
  shared(app.add_flag("--json", globals.json, "Print the result as one JSON value on stdout"));
  shared(app.add_flag("-v,--verbose", globals.verbose,
                      "Print more: command lines, what was found where"));
  shared(app.add_flag("-q,--quiet", globals.quiet, "Print only results, warnings and errors"));
  shared(app.add_option_function<std::string>(
             "--color",
             [&globals](const std::string& when) {
               globals.color = when == "always"  ? sys::ColorChoice::Always
                               : when == "never" ? sys::ColorChoice::Never
                                                 : sys::ColorChoice::Auto;
             },
             "auto, always or never"))
      ->type_name("WHEN")
      ->check(one_of({"auto", "always", "never"}));
}

}  // namespace kiln::cli
