// SPDX-License-Identifier: Apache-2.0
// Which words of a command line are kiln's own, and which belong to the program that it runs?
#include "cli/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "cli/renamed.h"
#include "cli/usage.h"

namespace kiln::cli {
namespace {

// Their values are themselves options: of the compilers.
constexpr std::array<std::string_view, 3> kFlagOptions = {"--cuda-flag", "--cflag", "--ldflag"};

// "-5" and "-.5" are values.
bool looks_like_option(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && word != "--" && !is_digit(word[1]) && word[1] != '.';
}

// One option as it was written: "--arch=9.0" is {"--arch", "9.0", true}, "-DA=1" {"-D", "A=1"}.
struct Written {
  std::string name, value;
  bool attached = false;
};

Written take_apart(const std::string& word) {
  if (word.starts_with("--")) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return {word, "", false};
    return {word.substr(0, equals), word.substr(equals + 1), true};
  }
  return {word.substr(0, 2), word.substr(2), word.size() > 2};
}

class Walk {
 public:
  Walk(const Command& command, const CLI::App& app, const std::vector<std::string>& words)
      : command_(command), apps_{&app}, words_(words) {}

  Result<Prepared> run() {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_];
      if (word == "--") return after_dashes();
      if (looks_like_option(word)) {
        CHECK_OK(option(take_apart(word)));
        continue;
      }
      ++at_;
      CHECK_OK(positional(word));
      if (command_.passes == Passes::ToScript && positionals_ == 1 && word.ends_with(".py"))
        return script_words();
    }
    return std::move(out_);
  }

 private:
  const CLI::Option* find(const std::string& name) const {
    for (const CLI::App* app : apps_)
      if (const CLI::Option* found = app->get_option_no_throw(name)) return found;
    return nullptr;
  }

  Result<Prepared> after_dashes() {
    auto first = words_.begin() + static_cast<ptrdiff_t>(at_);
    if (command_.passes == Passes::ToProgram)
      out_.rest.assign(first + 1, words_.end());
    else
      out_.words.insert(out_.words.end(), first, words_.end());
    return std::move(out_);
  }

  Result<Prepared> script_words() {
    const bool meant = at_ < words_.size() && words_[at_] == "--";
    if (meant) ++at_;
    for (size_t i = at_; !meant && i < words_.size() && words_[i] != "--"; ++i)
      if (const std::string name = words_[i].substr(0, words_[i].find('='));
          name.starts_with("--") && find(name)) {
        out_.notes.push_back(fmt::format(
            "note: {0} stands after the script and is passed to it; kiln's own options go before "
            "the script (a -- after the script says that this is meant)",
            name));
        break;
      }
    out_.rest.assign(words_.begin() + static_cast<ptrdiff_t>(at_), words_.end());
    return std::move(out_);
  }

  Status positional(const std::string& word) {
    ++positionals_;
    out_.words.push_back(word);
    const CLI::App& app = *apps_.front();
    const auto below = app.get_subcommands([](const CLI::App*) { return true; });
    if (below.empty()) return {};
    for (const CLI::App* sub : below)
      if (sub->get_name() == word) {
        apps_.insert(apps_.begin(), sub);
        return {};
      }
    return unknown_subcommand(app, word);
  }

  // The next word as a value, where one follows.
  const std::string* next() const {
    return at_ + 1 < words_.size() && words_[at_ + 1] != "--" ? &words_[at_ + 1] : nullptr;
  }

  Status option(Written written) {
    const std::string seen = written.attached ? written.value : next() ? *next() : std::string();
    if (const Renamed* row = find_renamed(command_.name, written.name, seen))
      if (replace(*row, written, seen)) return {};
    const CLI::Option* known = find(written.name);
    if (!known) {
      const bool is_long = written.name.starts_with("--");
      return unknown_option(*apps_.front(), is_long ? written.name : written.name + written.value);
    }
    ++at_;
    const int values = known->get_items_expected_max();
    if (values == 0) return flag(written);
    if (known->get_items_expected_min() > 1)
      return several(written, known->get_items_expected_min());
    if (!written.attached) {
      const bool is_value = at_ < words_.size() && words_[at_] != "--" &&
                            (!looks_like_option(words_[at_]) ||
                             std::ranges::find(kFlagOptions, written.name) != kFlagOptions.end());
      if (!is_value) return no_value(*known, written.name);
      written.value = words_[at_++];
    }
    add(*known, written);
    return {};
  }

  Status flag(const Written& written) {
    const bool is_long = written.name.starts_with("--");
    if (is_long && written.attached) return needless_value(*apps_.front(), written.name);
    out_.words.push_back(written.name);
    // -vq is -v -q.
    if (!is_long && written.attached) {
      --at_;
      return option(take_apart("-" + written.value));
    }
    return {};
  }

  // Of an option with more than one value: they are internal, and written by kiln itself.
  Status several(const Written& written, int count) {
    out_.words.push_back(written.name);
    for (int i = 0; i < count && at_ < words_.size(); ++i) out_.words.push_back(words_[at_++]);
    return {};
  }

  // Joined, so that a value with dashes stays one; an empty one would be taken for none.
  void add(const CLI::Option& known, const Written& written) {
    const std::string name =
        known.get_lnames().empty() ? written.name : "--" + known.get_lnames().front();
    if (written.value.empty()) {
      out_.words.push_back(name);
      out_.words.emplace_back();
    } else {
      out_.words.push_back(name + "=" + written.value);
    }
  }

  // True: nothing more is to be done about it.
  bool replace(const Renamed& row, Written& written, const std::string& value) {
    using Kind = Renamed::Kind;
    if (row.kind != Kind::Meaning && !row.now.empty() && !find(std::string(row.now))) return false;
    const bool wants_value = row.kind != Kind::Meaning && row.kind != Kind::Name;
    if (wants_value && value.empty()) return false;
    out_.notes.push_back(note_of(row));
    if (row.kind == Kind::Meaning) return false;
    if (row.kind == Kind::Name) {
      written.name = row.now;
      return false;
    }
    at_ += written.attached ? 1 : 2;
    if (row.kind == Kind::Flag) out_.words.emplace_back(row.now);
    if (row.kind == Kind::Positional) out_.words.push_back(value);
    return true;
  }

  const Command& command_;
  std::vector<const CLI::App*> apps_;  // the innermost first
  const std::vector<std::string>& words_;
  size_t at_ = 0, positionals_ = 0;
  Prepared out_;
};

}  // namespace

size_t command_at(const std::vector<std::string>& words) {
  const auto is_command = [](const std::string& word) {
    return std::ranges::any_of(commands(), [&](const Command* row) { return word == row->name; });
  };
  size_t at = 0;
  while (at < words.size() && words[at].starts_with('-')) {
    // Whoever forgot its value did not mean a command by it.
    const bool has_value =
        words[at] == "--color" && at + 1 < words.size() && !is_command(words[at + 1]);
    at += has_value ? 2 : 1;
  }
  return at;
}

Result<Prepared> prepare_words(const Command& command, const CLI::App& app,
                               const std::vector<std::string>& words) {
  return Walk(command, app, words).run();
}

}  // namespace kiln::cli
