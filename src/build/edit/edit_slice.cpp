// SPDX-License-Identifier: Apache-2.0
// What does NVRTC make of a source without what is the host's, and is it what nvcc makes of it?
#include "build/edit/edit_slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "binary/symbols.h"
#include "build/edit/device_code.h"
#include "build/edit/edit_files.h"
#include "build/edit/ptx_text.h"
#include "build/plan/source_tokens.h"
#include "build/run/findings.h"

namespace kiln::build {

namespace {

// Why NVRTC might see something else in a header of the user's than nvcc does.
std::string why_headers_differ(const Work& work, const Source& source) {
  auto headers = users_headers(work, source);
  if (!headers) return "the source's includes are not known";
  for (const auto& [name, text] : *headers)
    if (std::string why = why_nvrtc_may_differ(text); !why.empty())
      return fmt::format("{}: {}", name, why);
  return "";
}

// The name in a "#define NAME" of the text that is one of those; empty when there is none.
std::string defined_of(std::string_view text, const std::set<std::string>& names) {
  for (size_t at = text.find("define"); at != text.npos; at = text.find("define", at + 6)) {
    const size_t begin = text.find_first_not_of(" \t", at + 6);
    if (begin == text.npos || begin == at + 6) continue;
    size_t end = begin;
    while (end < text.size() && is_word(text[end])) ++end;
    if (std::string name(text.substr(begin, end - begin)); names.contains(name)) return name;
  }
  return "";
}

// NVRTC has few of the C library's headers, and names of its own. A condition must not depend on a
// name that one of the headers defines besides the user's, nor on one that NVRTC knows by itself:
// the code that it chooses may come into use after the two were compared.
std::string why_conditions_differ(const Work& work, const Source& source, const Nvrtc& nvrtc,
                                  const std::string& slice) {
  auto texts_of_user = users_headers(work, source);
  if (!texts_of_user) return "the source's includes are not known";
  (*texts_of_user)[source.file.string()] = slice;
  Macros macros;
  for (const auto& [name, text] : *texts_of_user) macros.add(text);
  std::set<std::string> names;
  for (const auto& [name, text] : *texts_of_user) names.merge(names_in_conditions(text, macros));
  std::erase_if(names, [](const std::string& name) {
    return name.starts_with("__CUDA_ARCH") || name == "__CUDACC__";
  });
  if (names.empty()) return "";
  for (const Step* step : device_steps(work, source)) {
    auto reads = reads_of(work, *step);
    if (!reads) return "the source's includes are not known";
    for (const ReadFile& file : reads->files) {
      if (texts_of_user->contains(file.path)) continue;
      auto text = work.world.files.read(file.path);
      if (!text) continue;
      if (std::string name = defined_of(*text, names); !name.empty())
        return fmt::format("a condition depends on {}, which {} defines", name, file.path);
    }
    for (const Command& command : step->commands)
      for (const std::string& word : texts(command)) {
        const std::string name = word.substr(0, word.find_first_of("=("));
        const bool known = std::any_of(
            work.plan.defines.begin(), work.plan.defines.end(), [&](const std::string& define) {
              return "-D" + define.substr(0, define.find_first_of("=(")) == name;
            });
        if (name.starts_with("-D") && !known && names.contains(name.substr(2)))
          return fmt::format("a condition depends on {}, which a flag defines", name.substr(2));
      }
  }
  std::string probe;
  for (const std::string& name : names)
    probe += fmt::format("#ifdef {0}\n#error {0}\n#endif\n", name);
  if (!nvrtc.compile(probe, "names.cu", {}, {}))
    return "a condition depends on a name that NVRTC defines";
  return "";
}

// Flags of nvcc that NVRTC knows under the same name, or that say nothing about device code.
bool nvrtc_takes(const std::string& flag) {
  for (std::string_view known :
       {"--maxrregcount=", "-maxrregcount=", "-O3", "-lineinfo", "--fmad=", "-fmad="})
    if (flag.starts_with(known)) return true;
  return false;
}

Words nvrtc_options(const Work& work, const Source& source, const std::string& arch) {
  Words options = {"-arch=" + arch, "-std=c++20", "-lineinfo",
                   "-DKILN_NAMESPACE=" + work.plan.name};
  options.emplace_back("--ptxas-options=--warn-on-spills");
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

// "void add_kernel<float>(View<..>)" is asked for as "add_kernel<float>". A plain function needs no
// asking.
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

}  // namespace

std::string why_no_nvrtc(const Work& work, const Source& source) {
  if (source.facts.extended_lambda) return "the source has an extended lambda";
  for (const std::string& flag : work.plan.cuda_flags)
    if (!nvrtc_takes(flag))
      return fmt::format("the flag {} is not known to mean the same there", flag);
  if (work.plan.debug) return "a debugger needs nvcc's own names";
  return why_nvrtc_environment(work.world.env);
}

Result<Made> compile_slice(const Work& work, const Source& source, const Nvrtc& nvrtc,
                           const std::string& slice, bool must_equal) {
  Made made;
  std::string name = canonical_path(work.plan.roots, source.file.string());
  for (const ArchText& arch : archs_of(work, source)) {
    TRY(std::string former, work.world.files.read(in_edit(work, arch.ptx_name)));
    TRY(NvrtcProgram program, nvrtc.compile(slice, name, nvrtc_options(work, source, arch.arch),
                                            expressions_for(entry_names(former))));
    if (std::string why = why_interface_differs(former, program.ptx); !why.empty())
      return Error{Fault::Work, "the slice is incomplete", why, ""};
    if (must_equal)
      if (std::string why = why_code_differs(former, program.ptx); !why.empty())
        return Error{Fault::Work, "NVRTC compiles the slice differently from nvcc", why, ""};
    for (const std::string& finding : ptxas_findings(program.log))
      made.findings.push_back(fmt::format("{} ({}): {}", source.shown, arch.arch, finding));
    if (!arch.cubin_name.empty()) {
      if (program.cubin.empty())
        return Error{Fault::Work, "NVRTC returned no machine code", arch.arch, ""};
      made.files.emplace_back(arch.cubin_name, std::move(program.cubin));
    }
    bool known = std::any_of(made.files.begin(), made.files.end(),
                             [&](const auto& f) { return f.first == arch.ptx_name; });
    if (!known) made.files.emplace_back(arch.ptx_name, std::move(program.ptx));
  }
  return made;
}

// The first line of the file says of which libnvrtc.
std::optional<std::string> known_verdict(const Work& work, const Source& source) {
  auto text = work.world.files.read(in_edit(work, source.key + ".slice"));
  if (!text) return std::nullopt;
  const std::string of = nvrtc_identity(work.world.files, work.plan.nvcc->path) + "\n";
  return text->starts_with(of) ? std::optional(text->substr(of.size())) : std::nullopt;
}

std::string slice_verdict(const Work& work, const Source& source, const Nvrtc& nvrtc) {
  if (auto known = known_verdict(work, source)) return *known;
  // Before it compiles: a library that is replaced meanwhile is asked again.
  const std::string identity = nvrtc_identity(work.world.files, work.plan.nvcc->path);
  auto text = work.world.files.read(in_edit(work, source.key + ".src"));
  Slice slice = text ? slice_of(*text) : Slice{"", "the linked source is not known"};
  std::string verdict = slice.why;
  if (verdict.empty()) verdict = why_headers_differ(work, source);
  if (verdict.empty()) verdict = why_conditions_differ(work, source, nvrtc, slice.text);
  if (verdict.empty()) {
    auto made = compile_slice(work, source, nvrtc, slice.text, true);
    verdict =
        made ? std::string(kRight) : made.error().what + ": " + made.error().why.substr(0, 400);
  }
  (void)work.world.files.write(in_edit(work, source.key + ".slice"), identity + "\n" + verdict,
                               sys::Durable::No);
  return verdict;
}

}  // namespace kiln::build
