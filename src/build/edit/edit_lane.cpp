// SPDX-License-Identifier: Apache-2.0
// Can a build be done by compiling device code alone?
#include "build/edit/edit_lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <future>

#include "base/hash.h"
#include "base/text.h"
#include "build/cache/reads.h"
#include "build/edit/device_code.h"
#include "build/edit/edit_files.h"
#include "build/edit/edit_slice.h"
#include "build/edit/swap_fat.h"
#include "build/plan/source_tokens.h"
#include "build/plan/variables.h"
#include "build/run/fat_object.h"
#include "build/run/ninja_run.h"
#include "build/run/preprocessed.h"
#include "sys/clock.h"

namespace kiln::build {

namespace {

// A step of another source that read this one.
const Step* other_reader(const Work& work, const Source& source) {
  for (const Step& step : work.graph.steps) {
    if (!step.reads_source() || step.source == source.file.string()) continue;
    auto reads = reads_of(work, step);
    if (!reads) return &step;
    for (const ReadFile& file : reads->files)
      if (fs::path(file.path).lexically_normal() == source.file) return &step;
  }
  return nullptr;
}

// -DNAME=VALUE of every command that sees the source, wherever it came from.
void add_defines(Macros& macros, const Work& work, const Source& source) {
  for (const Step& step : work.graph.steps) {
    if (step.source != source.file.string()) continue;
    for (const Command& command : step.commands)
      for (const std::string& word : texts(command)) {
        if (!word.starts_with("-D")) continue;
        const size_t end = std::min(word.find_first_of("=("), word.size());
        const size_t value = std::min(word.find('='), word.size() - 1);
        macros.define(std::string_view(word).substr(2, end - 2),
                      std::string_view(word).substr(value + 1));
      }
  }
  for (const std::string& define : work.plan.defines) {
    const size_t value = define.find('=');
    macros.define(define.substr(0, define.find_first_of("=(")),
                  value == define.npos ? "1" : define.substr(value + 1));
  }
}

// A flag with which the host's object tells lines: to a sanitizer's or a profiler's reports.
std::string line_telling_flag(const Work& work, const Source& source) {
  for (const Step& step : work.graph.steps) {
    if (step.source != source.file.string()) continue;
    for (const Command& command : step.commands)
      for (const std::string& word : texts(command))
        for (const char* sign : {"-fsanitize", "-fprofile", "-ftest-coverage", "--coverage", "-pg"})
          if (word.starts_with(sign)) return word;
  }
  return "";
}

// Of the source with its present text. An error where a macro may tell the time of the edit.
Result<Surroundings> surroundings_of(const Work& work, const Source& source,
                                     const std::string& text) {
  auto headers = users_headers(work, source);
  if (!headers) return Error{Fault::Work, "", "the source's includes are not known", ""};
  (*headers)[source.file.string()] = text;
  Surroundings around;
  around.line_teller = line_telling_flag(work, source);
  for (const auto& [name, content] : *headers) {
    if (content.find("__TIMESTAMP__") != std::string::npos)
      return Error{Fault::Work, "", name + " has __TIMESTAMP__, which every edit changes", ""};
    for (const char* teller : {"__builtin_LINE", "source_location"})
      if (content.find(teller) != std::string::npos) around.line_teller = teller;
    around.macros.add(content);
  }
  add_defines(around.macros, work, source);
  auto lines = work.world.files.read(in_edit(work, source.key + ".bodies"));
  if (!lines)
    return Error{Fault::Work, "", "there is no record of what the host's compiler left out", ""};
  around.hidden_bodies.emplace();
  for (std::string_view line : text::split_any(*lines, "\n"))
    around.hidden_bodies->insert(std::strtoul(std::string(line).c_str(), nullptr, 10));
  return around;
}

// What is in the object between the symbol's bytes: the fat binary itself.
std::string fat_in(std::string_view object) {
  size_t at = object.find(std::string_view("\x50\xed\x55\xba", 4));
  if (at == std::string_view::npos || object.size() < at + 16) return "";
  uint64_t bytes = 0;
  for (int i = 7; i >= 0; --i)
    bytes = bytes << 8 | static_cast<unsigned char>(object[at + 8 + static_cast<size_t>(i)]);
  uint64_t header =
      static_cast<unsigned char>(object[at + 6]) | static_cast<unsigned char>(object[at + 7]) << 8;
  if (bytes > object.size() - at || header + bytes > object.size() - at) return "";
  return std::string(object.substr(at, header + bytes));
}

// ---- putting it into the library

// fatbinary on files of the staging folder, as the fat step would run it.
Result<std::string> pack(const Work& work, const Step& fat) {
  sys::ProcessSpec spec;
  for (const std::string& word : texts(fat.commands[0])) {
    std::string whole = text::replace_all(word, kStaging, work.staging.string() + "/");
    // Machine code of the slice lies next to its PTX, and not in obj/.
    spec.arguments.push_back(
        text::replace_all(whole, "file=obj/", "file=" + work.staging.string() + "/"));
  }
  spec.directory = work.plan.build_dir;
  sys::Environment env = tool_environment(work.world.env);
  for (const auto& [name, value] : fat.env) env.set(name, value);
  spec.env = std::move(env);
  TRY(sys::ProcessResult result, work.world.processes.run(spec));
  if (result.exit_code != 0) return Error{Fault::Work, "cannot pack device code", result.out, ""};
  return work.world.files.read(work.staging / (fs::path(fat.key).stem().string() + ".fatbin"));
}

// Of what counts of a source.
std::string hash_of_code(const std::string& text) {
  auto code = without_comments(text);
  return hash_hex(code ? *code : text);
}

// What an edit since the link made of this source, whatever its comments were; nothing when no edit
// made anything of it.
std::optional<std::string> fat_of_edit(const Work& work, const Source& source,
                                       const std::string& text) {
  auto record = work.world.files.read(in_edit(work, source.key + ".now"));
  std::string hash = hash_of_code(text);
  if (!record || !record->starts_with(hash)) return std::nullopt;
  return record->substr(hash.size());
}

Result<std::string> put_in(const Work& work, const Edit& edit, const std::string& fat) {
  const sys::Files& files = work.world.files;
  TRY(std::string linked, files.read(work.in_obj(work.graph.result().outputs[0])));
  TRY(std::string recorded, files.read(in_edit(work, "linked")));
  if (hash_hex(linked) != recorded)
    return Error{Fault::Work, "", "another library was linked in the meantime", ""};
  std::vector<FatSwap> swaps;
  for (const Source& one : work.plan.sources) {
    if (!one.cuda || one.key == edit.source->key) continue;
    TRY(std::string text_before, files.read(in_edit(work, one.key + ".src")));
    TRY(std::string text, files.read(one.file));
    if (hash_of_code(text) == hash_of_code(text_before)) continue;
    auto now = fat_of_edit(work, one, text);
    if (!now) return Error{Fault::Work, "", one.shown + " changed too", ""};
    TRY(std::string before, files.read(in_edit(work, one.key + ".fat")));
    swaps.push_back({std::move(before), std::move(*now)});
  }
  TRY(std::string before, files.read(in_edit(work, edit.source->key + ".fat")));
  if (fat.empty())
    return Error{Fault::Work, "", "the device code cannot be found in its object", ""};
  if (fat != before) swaps.push_back({std::move(before), fat});
  TRY(std::string library, swap_fat_binaries(linked, swaps));
  CHECK_OK(work.world.files.write(in_edit(work, edit.source->key + ".now"),
                                  hash_of_code(edit.text) + fat, sys::Durable::No));
  return library;
}

// What changed are comments: the device code is that of the link, or of the edit before.
Result<std::optional<EditedLibrary>> by_former_code(const Work& work, const Edit& edit) {
  using Answer = std::optional<EditedLibrary>;
  auto fat = fat_of_edit(work, *edit.source, edit.text);
  if (!fat) {
    TRY(std::string linked, work.world.files.read(in_edit(work, edit.source->key + ".src")));
    if (hash_of_code(linked) != hash_of_code(edit.text)) return Answer();
    TRY(fat, work.world.files.read(in_edit(work, edit.source->key + ".fat")));
  }
  auto library = put_in(work, edit, *fat);
  if (!library) return Answer();
  return Answer(
      EditedLibrary{std::move(*library), "none", "only comments changed: nothing to compile"});
}

Result<std::optional<EditedLibrary>> by_slice(Work& work, const Edit& edit, const Nvrtc& nvrtc,
                                              std::string& why) {
  using Answer = std::optional<EditedLibrary>;
  Slice slice = slice_of(edit.text);
  if (!slice.why.empty()) {
    why = slice.why;
    return Answer();
  }
  StepReport report;
  report.key = report.what = "slice of " + edit.source->shown;
  report.kind = "slice";
  report.begin_ns = sys::wall_ns();
  double begun = sys::now_seconds();
  auto made = compile_slice(work, *edit.source, nvrtc, slice.text, false);
  if (!made) {
    why = made.error().what + ": " + made.error().why.substr(0, made.error().why.find('\n'));
    return Answer();
  }
  if (work.plan.findings_fail && !made->findings.empty())
    return Error{Fault::Work, "ptxas findings are errors here", text::join(made->findings, "\n"),
                 "leave out --findings=error, or findings = \"error\" in kiln.toml, to get a "
                 "warning instead"};
  for (const std::string& finding : made->findings) work.note("warning: " + finding);
  report.findings = made->findings;
  report.seconds = sys::now_seconds() - begun;
  report.commands.push_back({"nvrtc", report.begin_ns, report.seconds, report.seconds, 0});
  for (const auto& [name, content] : made->files)
    CHECK_OK(work.world.files.write(
        work.staging / name,
        name.ends_with(".ptx") ? with_real_files(work.plan.roots, content) : content,
        sys::Durable::Scratch));
  TRY(std::string fat, pack(work, *step_of(work, *edit.source, StepKind::Fat)));
  auto library = put_in(work, edit, fat);
  if (!library) {
    why = library.error().why;
    return Answer();
  }
  work.extra_reports.push_back(std::move(report));
  return Answer(EditedLibrary{std::move(*library), "slice",
                              "only device code changed; NVRTC compiled the slice"});
}

// A stub tells at which line each kernel is, to a debugger and in messages: the host's object is
// the same without.
std::string without_lines(std::string_view stub) {
  std::string out;
  for (std::string_view line : text::lines(stub)) {
    const bool marker =
        line.size() > 2 && line.starts_with("# ") && line[2] >= '0' && line[2] <= '9';
    if (!marker && !text::trim(line).empty()) out.append(line).append("\n");
  }
  return out;
}

Result<std::optional<EditedLibrary>> by_device_chain(Work& work, const Edit& edit,
                                                     std::string& why) {
  using Answer = std::optional<EditedLibrary>;
  const Step* fat = step_of(work, *edit.source, StepKind::Fat);
  std::string stub = edit.source->key + ".stub.c";
  TRY(std::string stub_before, work.world.files.read(in_edit(work, stub)));
  std::vector<const Step*> steps = device_steps(work, *edit.source);
  if (steps.size() == 1) {
    steps.push_back(fat);
    CHECK_OK(run_in_turn(work, steps));
  } else {
    CHECK_OK(run_ninja(work, {"obj/" + fat->outputs[0]}));
  }
  TRY(std::string stub_after, work.world.files.read(work.in_obj(stub)));
  if (without_lines(stub_before) != without_lines(stub_after)) {
    why = "the compiler generated a different host stub: kernels or their parameters changed";
    return Answer();
  }
  TRY(std::string object, work.world.files.read(work.in_obj(fat->outputs[0])));
  auto library = put_in(work, edit, fat_in(object));
  if (!library) {
    why = library.error().why;
    return Answer();
  }
  return Answer(EditedLibrary{std::move(*library), "device", "only device code changed"});
}

// The lines where bodies begin that are no part of the host's code.
Status remember_bodies(const Work& work, const Source& source) {
  const Step* front = step_of(work, source, StepKind::Front);
  if (!front) return {};
  TRY(std::string host_code, work.world.files.read(work.in_obj(front->outputs[0])));
  std::string lines;
  for (size_t line : lines_of_device_bodies(work.plan.roots, host_code, source.file.string()))
    lines += fmt::format("{}\n", line);
  return work.world.files.write(in_edit(work, source.key + ".bodies"), lines, sys::Durable::No);
}

}  // namespace

Status remember_for_edits(const Work& work) {
  CHECK_OK(work.world.files.remove(work.in_build_dir("edit")));
  if (work.plan.program) return {};
  for (const Source& source : work.plan.sources) {
    const Step* fat = step_of(work, source, StepKind::Fat);
    if (!fat) continue;
    TRY(std::string text, work.world.files.read(source.file));
    TRY(std::string object, work.world.files.read(work.in_obj(fat->outputs[0])));
    CHECK_OK(work.world.files.write(in_edit(work, source.key + ".src"), text, sys::Durable::No));
    CHECK_OK(work.world.files.write(in_edit(work, source.key + ".fat"), fat_in(object),
                                    sys::Durable::No));
    CHECK_OK(remember_bodies(work, source));
    for (const Step* step : device_steps(work, source))
      for (const std::string& name : step->outputs) {
        if (name.ends_with(".cubin")) continue;
        TRY(std::string content, work.world.files.read(work.in_obj(name)));
        CHECK_OK(work.world.files.write(in_edit(work, name), content, sys::Durable::No));
      }
  }
  TRY(std::string linked, work.world.files.read(work.in_obj(work.graph.result().outputs[0])));
  return work.world.files.write(in_edit(work, "linked"), hash_hex(linked), sys::Durable::No);
}

namespace {

// The only file that is not as it was, where that is a CUDA source; its state in the record becomes
// that of now.
const Source* only_changed_source(const Work& work, BuildState& state, std::string& why) {
  const Source* changed = nullptr;
  Reads rest{{}, state.reads.absent};
  for (ReadFile& file : state.reads.files) {
    const sys::FileState now = work.world.files.state(file.path);
    if (is_same(now, file.state)) continue;
    auto source =
        std::find_if(work.plan.sources.begin(), work.plan.sources.end(),
                     [&](const Source& one) { return one.cuda && one.file == file.path; });
    if (source == work.plan.sources.end() || changed) {
      why = changed ? "more than one file changed"
                    : sentence({file.path, now.exists ? Change::Changed : Change::Gone});
      return nullptr;
    }
    changed = &*source;
    file.state = now;
  }
  if (auto appeared = first_change(work.world.files, rest)) {
    why = sentence(*appeared);
    return nullptr;
  }
  if (!changed) why = work.explanation.trigger;
  return changed;
}

}  // namespace

std::optional<Edit> find_edit(const Work& work, BuildState former, std::string& why) {
  const sys::Files& files = work.world.files;
  if (former.key != work.key || work.plan.program) {
    why = work.explanation.trigger;
    return std::nullopt;
  }
  const Source* changed = only_changed_source(work, former, why);
  if (!changed) return std::nullopt;
  auto before = files.read(in_edit(work, changed->key + ".src"));
  auto now = files.read(changed->file);
  if (!before || !now || !step_of(work, *changed, StepKind::Fat)) {
    why = "there is no record of the linked source";
    return std::nullopt;
  }
  if (*before == *now) {
    why = "the source matches what was linked";
    return std::nullopt;
  }
  if (const Step* other = other_reader(work, *changed)) {
    why = fmt::format("{} reads it too", other->shown);
    return std::nullopt;
  }
  if (work.plan.debug || changed->facts.own_lambda) {
    why = work.plan.debug ? "a debugger needs the line numbers of the host code"
                          : "the source has an extended lambda";
    return std::nullopt;
  }
  auto around = surroundings_of(work, *changed, *now);
  why = around ? why_host_changes(*before, *now, *around) : around.error().why;
  if (!why.empty()) return std::nullopt;
  return Edit{changed, std::move(*now), std::move(former)};
}

Result<std::optional<EditedLibrary>> build_edit(Work& work, const Edit& edit, std::string& why) {
  TRY(std::optional<EditedLibrary> former, by_former_code(work, edit));
  if (former) return former;
  const std::optional<std::string> verdict = known_verdict(work, *edit.source);
  std::string no_slice = why_no_nvrtc(work, *edit.source);
  if (no_slice.empty() && verdict && *verdict != kRight) no_slice = *verdict;
  auto by_chain = [&]() {
    auto made = by_device_chain(work, edit, why);
    if (made && *made) (*made)->why += fmt::format("; no slice: {}", no_slice);
    return made;
  };
  // To load libnvrtc takes 6 ms, which a source that it is not asked about need not wait for.
  if (!no_slice.empty()) return by_chain();
  auto nvrtc = Nvrtc::open(work.world.files, work.plan.nvcc->path);
  if (!nvrtc) {
    no_slice = nvrtc.error().why;
    return by_chain();
  }
  if (!verdict) {
    // The first edit: while nvcc's programs compile it, NVRTC shows whether it can be trusted with
    // the next.
    no_slice = "the first edit since the full build";
    auto shown =
        std::async(std::launch::async, [&] { return slice_verdict(work, *edit.source, *nvrtc); });
    return by_chain();
  }
  TRY(std::optional<EditedLibrary> made, by_slice(work, edit, *nvrtc, no_slice));
  if (made) return made;
  return by_chain();
}

}  // namespace kiln::build
