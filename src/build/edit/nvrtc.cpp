// SPDX-License-Identifier: Apache-2.0
// How is device code compiled within this process?
#include "build/edit/nvrtc.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/text.h"
#include "sys/library.h"

namespace kiln::build {

namespace {

using sys::fs::path;

// nvrtc.h, spelled out: the toolkit's headers need not be there to build kiln.
using Handle = void*;

// The newest libnvrtc.so.N in the folder, or nothing.
path library_in(const sys::Files& files, const path& folder) {
  path found;
  for (const std::string& name : files.list(folder))
    if (name.starts_with("libnvrtc.so") && name.find("alt") == std::string::npos)
      found = folder / name;
  return found;
}

path library_beside(const sys::Files& files, const path& nvcc) {
  const path toolkit = nvcc.parent_path().parent_path();
  for (const char* folder : {"lib", "lib64", "targets/sbsa-linux/lib", "targets/x86_64-linux/lib",
                             "targets/aarch64-linux/lib"})
    if (path file = library_in(files, toolkit / folder); !file.empty()) return file;
  return {};
}

}  // namespace

std::string nvrtc_identity(const sys::Files& files, const path& nvcc) {
  const path library = library_beside(files, nvcc);
  if (library.empty()) return "";
  std::string text = library.parent_path().string();
  for (const std::string& name : files.list(library.parent_path())) {
    if (!name.starts_with("libnvrtc")) continue;  // libnvrtc-builtins has its headers
    const sys::FileState state = files.state(library.parent_path() / name);
    text += fmt::format("\n{} {} {} {}", name, state.size_bytes, state.mtime_ns, state.ctime_ns);
  }
  return hash_hex(text);
}

struct Nvrtc::Functions {
  int (*version)(int*, int*);
  int (*create)(Handle*, const char*, const char*, int, const char* const*, const char* const*);
  int (*destroy)(Handle*);
  int (*add_name)(Handle, const char*);
  int (*compile)(Handle, int, const char* const*);
  int (*log_size)(Handle, size_t*);
  int (*log)(Handle, char*);
  int (*ptx_size)(Handle, size_t*);
  int (*ptx)(Handle, char*);
  int (*cubin_size)(Handle, size_t*);
  int (*cubin)(Handle, char*);
};

Result<Nvrtc> Nvrtc::open(const sys::Files& files, const path& nvcc) {
  const path file = library_beside(files, nvcc);
  if (file.empty())
    return Error{Fault::Environment, "cannot find libnvrtc",
                 fmt::format("{} has none", nvcc.parent_path().parent_path().string()), ""};
  TRY(sys::Library library, sys::Library::open(file));
  static Functions functions{};
  bool whole = true;
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
    whole &= function != nullptr;
  };
  find(functions.version, "nvrtcVersion");
  find(functions.create, "nvrtcCreateProgram");
  find(functions.destroy, "nvrtcDestroyProgram");
  find(functions.add_name, "nvrtcAddNameExpression");
  find(functions.compile, "nvrtcCompileProgram");
  find(functions.log_size, "nvrtcGetProgramLogSize");
  find(functions.log, "nvrtcGetProgramLog");
  find(functions.ptx_size, "nvrtcGetPTXSize");
  find(functions.ptx, "nvrtcGetPTX");
  find(functions.cubin_size, "nvrtcGetCUBINSize");
  find(functions.cubin, "nvrtcGetCUBIN");
  if (!whole)
    return Error{Fault::Environment, "cannot use libnvrtc",
                 file.string() + " is missing a function", ""};
  return Nvrtc(&functions);
}

Result<NvrtcProgram> Nvrtc::compile(const std::string& text, const std::string& name,
                                    const std::vector<std::string>& options,
                                    const std::vector<std::string>& expressions) const {
  const Functions& f = *functions_;
  Handle program = nullptr;
  auto failed = [&](std::string why) {
    if (program) f.destroy(&program);
    return Error{Fault::Work, "NVRTC cannot compile the slice", std::move(why), ""};
  };
  if (f.create(&program, text.c_str(), name.c_str(), 0, nullptr, nullptr) != 0)
    return failed("no program");
  for (const std::string& expression : expressions)
    if (f.add_name(program, expression.c_str()) != 0)
      return failed("it does not accept the name " + expression);
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  const bool compiled = f.compile(program, static_cast<int>(words.size()), words.data()) == 0;
  NvrtcProgram out;
  size_t log_bytes = 0;
  if (f.log_size(program, &log_bytes) == 0 && log_bytes > 0) {
    out.log.resize(log_bytes);
    f.log(program, out.log.data());
    out.log = text::trim(out.log.c_str());
  }
  if (!compiled) return failed(std::move(out.log));
  auto take = [&](std::string& to, int (*size_of)(Handle, size_t*), int (*get)(Handle, char*)) {
    size_t size = 0;
    if (size_of(program, &size) != 0) return;
    to.resize(size);
    if (size && get(program, to.data()) != 0) to.clear();
  };
  take(out.ptx, f.ptx_size, f.ptx);
  take(out.cubin, f.cubin_size, f.cubin);
  f.destroy(&program);
  while (!out.ptx.empty() && out.ptx.back() == '\0') out.ptx.pop_back();
  if (out.ptx.empty()) return failed("it returned no PTX");
  return out;
}

}  // namespace kiln::build
