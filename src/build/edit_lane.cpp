// SPDX-License-Identifier: Apache-2.0
// Can a build be done by compiling device code alone?
//
//   edit/<key>.src    the source for which the host's object was made
//   edit/<key>.fat    the fat binary that was linked, edit/<key>.<arch>.ptx the PTX in it, edit/<key>.stub.c its stub
//   edit/<key>.now    the fat binary of an edit since, behind the hash of the source that it was made of
//   edit/linked       the hash of the library that was linked
//
// Whether a record belongs to what is on the disk is told by contents: a build that was killed may have left either.
//   edit/<key>.slice  "right" when NVRTC made of that source's slice what nvcc made of it, else why not
#include "build/edit_lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>
#include <set>

#include "base/hash.h"
#include "base/text.h"
#include "binary/symbols.h"
#include "build/depfile.h"
#include "build/device_code.h"
#include "build/fat_object.h"
#include "build/findings.h"
#include "build/ninja_run.h"
#include "build/nvrtc.h"
#include "build/preprocessed.h"
#include "build/ptx_text.h"
#include "build/swap_fat.h"
#include "sys/clock.h"

namespace kiln::build {

namespace {

constexpr std::string_view kRight = "right";

fs::path in_edit(const Work& work, const std::string& name) { return work.in_build_dir("edit") / name; }

const Step* step_of(const Work& work, const Source& source, StepKind kind) {
  for (const Step& step : work.graph.steps)
    if (step.kind == kind && step.source == source.file.string()) return &step;
  return nullptr;
}

std::vector<const Step*> device_steps(const Work& work, const Source& source) {
  std::vector<const Step*> steps;
  for (const Step& step : work.graph.steps)
    if (step.kind == StepKind::Device && step.source == source.file.string()) steps.push_back(&step);
  return steps;
}

// A step of another source that read this one.
const Step* other_reader(const Work& work, const Source& source) {
  for (const Step& step : work.graph.steps) {
    if (!step.reads_source() || step.source == source.file.string()) continue;
    auto depfile = work.world.files.read(work.in_obj(step.key + ".d"));
    if (!depfile) return &step;
    for (const std::string& name : parse_depfile(*depfile))
      if (fs::path(name).lexically_normal() == source.file) return &step;
  }
  return nullptr;
}

// Name and text of the headers that are neither the system's nor the toolkit's nor kiln's own.
Result<std::map<std::string, std::string>> users_headers(const Work& work, const Source& source) {
  std::string toolkit = work.plan.nvcc->path.parent_path().parent_path().string();
  std::map<std::string, std::string> headers;
  for (const Step* step : device_steps(work, source)) {
    TRY(std::string depfile, work.world.files.read(work.in_obj(step->key + ".d")));
    for (const std::string& name : parse_depfile(depfile)) {
      bool known = name.starts_with("/usr/") || name.starts_with(toolkit) || name == source.file.string() ||
                   name.starts_with(work.plan.home.include().string());
      if (known || headers.contains(name)) continue;
      TRY(headers[name], work.world.files.read(name));
    }
  }
  return headers;
}

// Why NVRTC might see something else in a header of the user's than nvcc does.
std::string why_headers_differ(const Work& work, const Source& source) {
  auto headers = users_headers(work, source);
  if (!headers) return "what the source includes is not known";
  for (const auto& [name, text] : *headers)
    if (std::string why = why_nvrtc_may_differ(text); !why.empty()) return fmt::format("{}: {}", name, why);
  return "";
}

// Names of macros in the source, in the user's headers and on the command line.
Result<std::set<std::string>> macros_of(const Work& work, const Source& source, std::string_view text) {
  std::set<std::string> names = defined_names(text);
  TRY(auto headers, users_headers(work, source));
  for (const auto& [name, content] : headers) names.merge(defined_names(content));
  for (const std::string& define : work.plan.defines) names.insert(define.substr(0, define.find_first_of("=(")));
  return names;
}

// What is in the object between the symbol's bytes: the fat binary itself.
std::string fat_in(std::string_view object) {
  size_t at = object.find(std::string_view("\x50\xed\x55\xba", 4));
  if (at == std::string_view::npos || object.size() < at + 16) return "";
  uint64_t bytes = 0;
  for (int i = 7; i >= 0; --i) bytes = bytes << 8 | static_cast<unsigned char>(object[at + 8 + static_cast<size_t>(i)]);
  uint64_t header = static_cast<unsigned char>(object[at + 6]) | static_cast<unsigned char>(object[at + 7]) << 8;
  if (bytes > object.size() - at || header + bytes > object.size() - at) return "";
  return std::string(object.substr(at, header + bytes));
}

// ---- NVRTC

// Flags of nvcc that NVRTC knows under the same name, or that say nothing about device code.
bool nvrtc_takes(const std::string& flag) {
  for (std::string_view known : {"--maxrregcount=", "-maxrregcount=", "-O3", "-lineinfo", "--fmad=", "-fmad="})
    if (flag.starts_with(known)) return true;
  return false;
}

std::string why_no_nvrtc(const Work& work, const Source& source) {
  if (source.facts.extended_lambda) return "the source has an extended lambda";
  for (const std::string& flag : work.plan.cuda_flags)
    if (!nvrtc_takes(flag)) return fmt::format("the flag {} is not known to mean the same there", flag);
  if (work.plan.debug) return "a debugger wants nvcc's own names";
  for (const char* name : {"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "CPATH", "CPLUS_INCLUDE_PATH"})
    if (work.world.env.get(name)) return fmt::format("{} is set", name);
  return "";
}

Words nvrtc_options(const Work& work, const Source& source, const std::string& arch) {
  Words options = {"-arch=" + arch, "-std=c++20", "-lineinfo", "-DKILN_NAMESPACE=" + work.plan.name};
  if (work.plan.fast_math) options.emplace_back("--use_fast_math");
  for (const std::string& define : work.plan.defines) options.push_back("-D" + define);
  options.push_back("-I" + source.file.parent_path().string());
  for (const fs::path& folder : work.plan.includes) options.push_back("-I" + folder.string());
  options.push_back("-I" + work.plan.home.include().string());
  options.push_back("-I" + (work.plan.nvcc->path.parent_path().parent_path() / "include").string());
  for (const std::string& flag : work.plan.cuda_flags)
    if (flag.find("maxrregcount") != std::string::npos || flag.find("fmad") != std::string::npos)
      options.push_back(flag.starts_with("--") ? flag : "-" + flag);
  return options;
}

struct ArchText {
  std::string arch;  // "sm_90" or "compute_80"
  std::string ptx_name;
  std::string cubin_name;  // empty: PTX alone
};

std::vector<ArchText> archs_of(const Work& work, const Source& source) {
  std::vector<ArchText> out;
  for (const Step* step : device_steps(work, source)) {
    bool any = false;
    for (const std::string& output : step->outputs) {
      if (!output.ends_with(".cubin")) continue;
      std::string name = output.substr(0, output.size() - 6);
      out.push_back({name.substr(name.rfind(".sm_") + 1), step->outputs[0], output});
      any = true;
    }
    if (!any) out.push_back({"compute_" + step->arch, step->outputs[0], ""});
  }
  return out;
}

// "void add_kernel<float>(View<..>)" is asked for as "add_kernel<float>". A plain function needs no asking.
std::vector<std::string> expressions_for(const std::vector<std::string>& entries) {
  std::vector<std::string> out;
  for (const std::string& entry : entries) {
    std::string name = binary::demangle(entry);
    if (name == entry || name.find('<') == std::string::npos) continue;
    int depth = 0;
    size_t end = 0;
    for (; end < name.size() && (name[end] != '(' || depth > 0); ++end) {
      if (name[end] == '<') ++depth;
      if (name[end] == '>') --depth;
    }
    name = name.substr(0, end);
    if (name.starts_with("void ")) name = name.substr(5);
    out.push_back(name);
  }
  return out;
}

struct Made {
  std::vector<std::pair<std::string, std::string>> files;  // name -> content
};

// Every architecture's code of the slice; `former` is nvcc's PTX of the linked code.
Result<Made> compile_slice(const Work& work, const Source& source, const Nvrtc& nvrtc, const std::string& slice,
                           bool must_equal) {
  Made made;
  std::string name = canonical_path(work.plan.roots, source.file.string());
  for (const ArchText& arch : archs_of(work, source)) {
    TRY(std::string former, work.world.files.read(in_edit(work, arch.ptx_name)));
    TRY(NvrtcProgram program,
        nvrtc.compile(slice, name, nvrtc_options(work, source, arch.arch), expressions_for(entry_names(former))));
    if (std::string why = why_interface_differs(former, program.ptx); !why.empty())
      return Error{Fault::Work, "the slice is not whole", why, ""};
    if (must_equal)
      if (std::string why = why_code_differs(former, program.ptx); !why.empty())
        return Error{Fault::Work, "NVRTC makes something else of the slice than nvcc", why, ""};
    if (!arch.cubin_name.empty()) {
      if (program.cubin.empty()) return Error{Fault::Work, "NVRTC gave no machine code", arch.arch, ""};
      made.files.emplace_back(arch.cubin_name, std::move(program.cubin));
    }
    bool known =
        std::any_of(made.files.begin(), made.files.end(), [&](const auto& f) { return f.first == arch.ptx_name; });
    if (!known) made.files.emplace_back(arch.ptx_name, std::move(program.ptx));
  }
  return made;
}

// Does NVRTC make of the linked source's slice what nvcc made of it? Told once for a source and its flags.
std::string slice_verdict(const Work& work, const Source& source, const Nvrtc& nvrtc) {
  fs::path file = in_edit(work, source.key + ".slice");
  if (auto known = work.world.files.read(file)) return *known;
  auto text = work.world.files.read(in_edit(work, source.key + ".src"));
  Slice slice = text ? slice_of(*text) : Slice{"", "the linked source is not known"};
  std::string verdict = slice.why;
  if (verdict.empty()) verdict = why_headers_differ(work, source);
  if (verdict.empty()) {
    auto made = compile_slice(work, source, nvrtc, slice.text, true);
    verdict = made ? std::string(kRight) : made.error().what + ": " + made.error().why.substr(0, 400);
  }
  (void)work.world.files.write(file, verdict, sys::Durable::No);
  return verdict;
}

// ---- putting it into the library

// fatbinary on files of the staging folder, as the fat step would run it.
Result<std::string> pack(const Work& work, const Step& fat) {
  sys::ProcessSpec spec;
  for (const std::string& word : fat.commands[0]) {
    std::string whole = text::replace_all(word, kStaging, work.staging.string() + "/");
    // Machine code of the slice lies beside its PTX, and not in obj/.
    spec.arguments.push_back(text::replace_all(whole, "file=obj/", "file=" + work.staging.string() + "/"));
  }
  spec.directory = work.plan.build_dir;
  sys::Environment env = work.world.env;
  for (const auto& [name, value] : fat.env) env.set(name, value);
  spec.env = std::move(env);
  TRY(sys::ProcessResult result, work.world.processes.run(spec));
  if (result.exit_code != 0) return Error{Fault::Work, "cannot pack device code", result.out, ""};
  return work.world.files.read(work.staging / (fs::path(fat.key).stem().string() + ".fatbin"));
}

// What an edit since the link made of this very text of the source; nothing when no edit made anything of it.
std::optional<std::string> fat_of_edit(const Work& work, const Source& source, const std::string& text) {
  auto record = work.world.files.read(in_edit(work, source.key + ".now"));
  std::string hash = hash_hex(text);
  if (!record || !record->starts_with(hash)) return std::nullopt;
  return record->substr(hash.size());
}

Result<std::string> put_in(const Work& work, const Edit& edit, const std::string& fat) {
  const sys::Files& files = work.world.files;
  TRY(std::string linked, files.read(work.in_obj(work.graph.result().outputs[0])));
  TRY(std::string recorded, files.read(in_edit(work, "linked")));
  if (hash_hex(linked) != recorded) return Error{Fault::Work, "", "another library was linked meanwhile", ""};
  std::vector<FatSwap> swaps;
  for (const Source& one : work.plan.sources) {
    if (!one.cuda || one.key == edit.source->key) continue;
    TRY(std::string text_before, files.read(in_edit(work, one.key + ".src")));
    TRY(std::string text, files.read(one.file));
    if (text == text_before) continue;
    auto now = fat_of_edit(work, one, text);
    if (!now) return Error{Fault::Work, "", one.shown + " changed too", ""};
    TRY(std::string before, files.read(in_edit(work, one.key + ".fat")));
    swaps.push_back({std::move(before), std::move(*now)});
  }
  TRY(std::string before, files.read(in_edit(work, edit.source->key + ".fat")));
  if (fat.empty()) return Error{Fault::Work, "", "the device code cannot be found in its object", ""};
  if (fat != before) swaps.push_back({std::move(before), fat});
  TRY(std::string library, swap_fat_binaries(linked, swaps));
  CHECK_OK(
      work.world.files.write(in_edit(work, edit.source->key + ".now"), hash_hex(edit.text) + fat, sys::Durable::No));
  return library;
}

Result<std::optional<EditedLibrary>> by_slice(Work& work, const Edit& edit, const Nvrtc& nvrtc, std::string& why) {
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
  report.seconds = sys::now_seconds() - begun;
  report.commands.push_back({"nvrtc", report.begin_ns, report.seconds, report.seconds, 0});
  for (const auto& [name, content] : made->files)
    CHECK_OK(work.world.files.write(work.staging / name,
                                    name.ends_with(".ptx") ? with_real_files(work.plan.roots, content) : content,
                                    sys::Durable::No));
  TRY(std::string fat, pack(work, *step_of(work, *edit.source, StepKind::Fat)));
  auto library = put_in(work, edit, fat);
  if (!library) {
    why = library.error().why;
    return Answer();
  }
  work.extra_reports.push_back(std::move(report));
  return Answer(EditedLibrary{std::move(*library), "slice", "device code alone changed; NVRTC compiled the slice"});
}

Result<std::optional<EditedLibrary>> by_device_chain(Work& work, const Edit& edit, std::string& why) {
  using Answer = std::optional<EditedLibrary>;
  const Step* fat = step_of(work, *edit.source, StepKind::Fat);
  std::string stub = edit.source->key + ".stub.c";
  TRY(std::string stub_before, work.world.files.read(in_edit(work, stub)));
  CHECK_OK(run_ninja(work, {"obj/" + fat->outputs[0]}));
  TRY(std::string stub_after, work.world.files.read(work.in_obj(stub)));
  if (stub_before != stub_after) {
    why = "the compiler made another host stub: kernels or their parameters changed";
    return Answer();
  }
  TRY(std::string object, work.world.files.read(work.in_obj(fat->outputs[0])));
  auto library = put_in(work, edit, fat_in(object));
  if (!library) {
    why = library.error().why;
    return Answer();
  }
  return Answer(EditedLibrary{std::move(*library), "device", "device code alone changed"});
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
    CHECK_OK(work.world.files.write(in_edit(work, source.key + ".fat"), fat_in(object), sys::Durable::No));
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

std::optional<Edit> find_edit(const Work& work, const BuildState& former, std::string& why) {
  const sys::Files& files = work.world.files;
  if (former.key != work.key || work.plan.program) {
    why = work.explanation.trigger;
    return std::nullopt;
  }
  const Source* changed = nullptr;
  for (const SeenFile& file : former.files) {
    if (is_same(files.state(file.path), file.state)) continue;
    auto source = std::find_if(work.plan.sources.begin(), work.plan.sources.end(),
                               [&](const Source& one) { return one.cuda && one.file == file.path; });
    if (source == work.plan.sources.end() || changed) {
      why = changed ? "more than one file changed" : fmt::format("{} changed", file.path.string());
      return std::nullopt;
    }
    changed = &*source;
  }
  for (const fs::path& path : former.absent)
    if (files.state(path).exists) {
      why = fmt::format("{} appeared", path.string());
      return std::nullopt;
    }
  if (!changed) {
    why = work.explanation.trigger;
    return std::nullopt;
  }
  auto before = files.read(in_edit(work, changed->key + ".src"));
  auto now = files.read(changed->file);
  if (!before || !now || !step_of(work, *changed, StepKind::Fat)) {
    why = "there is no record of the linked source";
    return std::nullopt;
  }
  if (*before == *now) {
    why = "the source is again what was linked";
    return std::nullopt;
  }
  if (const Step* other = other_reader(work, *changed)) {
    why = fmt::format("{} reads it too", other->shown);
    return std::nullopt;
  }
  if (work.plan.debug || changed->facts.extended_lambda) {
    why = work.plan.debug ? "a debugger wants the lines of the host's code" : "the source has an extended lambda";
    return std::nullopt;
  }
  auto macros = macros_of(work, *changed, *now);
  why = macros ? why_host_changes(*before, *now, *macros) : "what the source includes is not known";
  if (!why.empty()) return std::nullopt;
  return Edit{changed, std::move(*now)};
}

Result<std::optional<EditedLibrary>> build_edit(Work& work, const Edit& edit, std::string& why) {
  std::string no_slice = why_no_nvrtc(work, *edit.source);
  auto nvrtc = no_slice.empty() ? Nvrtc::open(work.world.files, work.plan.nvcc->path)
                                : Result<Nvrtc>(Error{Fault::Work, "", no_slice, ""});
  if (nvrtc && work.world.files.state(in_edit(work, edit.source->key + ".slice")).exists) {
    no_slice = slice_verdict(work, *edit.source, *nvrtc);
    if (no_slice == kRight) {
      TRY(std::optional<EditedLibrary> made, by_slice(work, edit, *nvrtc, no_slice));
      if (made) return made;
    }
  } else if (nvrtc) {
    // The first edit: while nvcc's programs compile it, NVRTC shows whether it can be trusted with the next.
    no_slice = "the first edit since the full build";
    auto verdict = std::async(std::launch::async, [&] { return slice_verdict(work, *edit.source, *nvrtc); });
    auto made = by_device_chain(work, edit, why);
    verdict.wait();
    if (made && *made) (*made)->why += fmt::format("; no slice: {}", no_slice);
    return made;
  } else {
    no_slice = nvrtc.error().why;
  }
  auto made = by_device_chain(work, edit, why);
  if (made && *made) (*made)->why += fmt::format("; no slice: {}", no_slice);
  return made;
}

}  // namespace kiln::build
