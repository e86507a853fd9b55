// SPDX-License-Identifier: Apache-2.0
// What exactly is to be built, from what, with what, and where?
#include "build/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/hash.h"
#include "base/text.h"
#include "build/plan/compat.h"
#include "build/plan/flags.h"
#include "project/gpu.h"
#include "project/manifest.h"
#include "project/own_cache.h"

namespace kiln::build {

namespace {

constexpr std::array kCudaEndings = {".cu"};
constexpr std::array kHostEndings = {".cpp", ".cc", ".cxx", ".c++", ".c"};

// One image a generation serves all of its GPUs; the PTX of the oldest serves those between, that
// of the newest those to come.
constexpr std::string_view kReleaseArchs = "8.0+PTX;9.0;10.0;12.0+PTX";

constexpr size_t kFolderHashDigits = 12;

// The request with a project's kiln.toml folded in.
struct Wanted {
  Request request;
  fs::path root;         // what relative sources are relative to
  fs::path project_dir;  // empty: no project
  std::vector<std::string> sources;
};

// In a name that is in shell commands, in C++ and in a Makefile's rule.
bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
         c == '_' || c == '-';
}

template <class List>
bool is_one_of(const std::string& ending, const List& list) {
  return std::find(list.begin(), list.end(), ending) != list.end();
}

fs::path absolute(const fs::path& path, const fs::path& base) {
  fs::path out = (path.is_absolute() ? path : base / path).lexically_normal();
  return out.has_filename() || !out.has_relative_path()
             ? out
             : out.parent_path();  // "/a/." becomes "/a/", then "/a"
}

Status add_project(Wanted& wanted, const World& world) {
  fs::path path = wanted.project_dir / project::kManifestName;
  TRY(project::Manifest manifest, project::read_manifest(world.files, path));
  Request& request = wanted.request;
  auto in_project = [&](const std::string& folder) {
    return absolute(folder, wanted.project_dir).string();
  };
  auto put_first = [](std::vector<std::string>& list, std::vector<std::string> front) {
    list.insert(list.begin(), front.begin(), front.end());
  };
  for (std::string& folder : manifest.include) folder = in_project(folder);
  put_first(request.includes, manifest.include);
  put_first(request.defines, manifest.defines);
  put_first(request.cuda_flags, manifest.cuda_flags);
  put_first(request.cflags, manifest.cflags);
  put_first(request.ldflags, manifest.ldflags);
  request.fast_math |= manifest.fast_math;
  if (!request.findings_fail) request.findings_fail = manifest.findings_fail;
  if (request.name.empty()) request.name = manifest.name;
  if (request.arch.empty()) request.arch = manifest.arch;
  if (wanted.sources.empty()) {
    wanted.root = wanted.project_dir;
    wanted.sources = manifest.sources;
  }
  return {};
}

Result<Wanted> resolve_targets(const Request& request, const World& world) {
  Wanted wanted{request, request.directory, {}, {}};
  std::vector<std::string> targets = request.targets;
  if (targets.empty()) targets.emplace_back(".");
  for (const std::string& target : targets) {
    fs::path path = absolute(target, request.directory);
    sys::FileState state = world.files.state(path);
    if (!state.exists)
      return Error{Fault::Usage, fmt::format("cannot build '{}'", target),
                   "there is no such file or folder",
                   "check the path, or start with kiln new NAME (--minimal: a single .cu)"};
    bool is_manifest = path.filename() == project::kManifestName;
    if (!state.is_directory && !is_manifest) {
      wanted.sources.push_back(target);
      continue;
    }
    if (targets.size() > 1)
      return Error{Fault::Usage, "cannot build several targets when one is a project",
                   fmt::format("'{}' is a folder", target), "build it alone"};
    wanted.project_dir = is_manifest ? path.parent_path() : path;
    if (!world.files.state(wanted.project_dir / project::kManifestName).is_file())
      return Error{
          Fault::Usage,
          request.targets.empty() ? "there is nothing to build"
                                  : fmt::format("'{}' is not a project", target),
          fmt::format("there is no {} in {}", project::kManifestName, wanted.project_dir.string()),
          "name a .cu file, or make a project with kiln new NAME"};
  }
  // A debug program belongs to the project it is in: the same defines, folders and flags.
  fs::path beside = wanted.sources.empty()
                        ? fs::path()
                        : absolute(wanted.sources[0], request.directory).parent_path();
  if (request.program && !beside.empty() &&
      world.files.state(beside / project::kManifestName).is_file())
    wanted.project_dir = beside;
  if (!wanted.project_dir.empty()) CHECK_OK(add_project(wanted, world));
  return wanted;
}

Result<std::vector<Source>> resolve_sources(const Wanted& wanted, const World& world,
                                            const std::vector<fs::path>& include_folders) {
  std::vector<Source> sources;
  std::set<std::string> keys;
  auto project = wanted.project_dir.empty() ? fs::path() : wanted.project_dir;
  if (auto real = world.files.real_path(project); !project.empty() && real) project = *real;
  for (const std::string& name : wanted.sources) {
    Source source;
    fs::path path = absolute(name, wanted.root);
    if (!world.files.state(path).is_file())
      return Error{Fault::Usage, fmt::format("cannot build '{}'", name), "there is no such file",
                   fmt::format("correct 'sources' in {}",
                               (wanted.project_dir / project::kManifestName).string())};
    TRY(source.file, world.files.real_path(path));
    if (std::ranges::any_of(sources, [&](const Source& one) { return one.file == source.file; }))
      return Error{Fault::Usage, fmt::format("'{}' is named twice", name),
                   "a source is compiled once", "leave out one of them"};
    source.shown = wanted.root == wanted.request.directory
                       ? name
                       : source.file.lexically_proximate(wanted.request.directory).string();
    std::string ending = text::lower(path.extension().string());
    source.cuda = is_one_of(ending, kCudaEndings);
    if (!source.cuda && !is_one_of(ending, kHostEndings))
      return Error{Fault::Usage, fmt::format("cannot build '{}'", name),
                   "a source ends in .cu, .cpp, .cc, .cxx, .c++ or .c",
                   ending == ".py" ? "run a script with python3; sanitize, counters and profile "
                                     "take it too"
                                   : "rename it, or leave it out"};
    std::string base = path.filename().string();
    for (char& c : base) c = is_plain(c) ? c : '_';
    source.key = base;
    for (int i = 2; !keys.insert(source.key).second; ++i)
      source.key = fmt::format("{}.{}", base, i);
    source.facts = scan_source(world.files, source.file, include_folders, project);
    if (!source.facts.unreadable.empty())
      return Error{Fault::Usage, fmt::format("cannot build '{}'", name), source.facts.unreadable,
                   "name and include regular files only"};
    sources.push_back(std::move(source));
  }
  return sources;
}

Result<project::ArchList> resolve_arch(const std::string& asked, bool release, const World& world) {
  std::string list = asked;
  if (list.empty()) list = world.env.get("TORCH_CUDA_ARCH_LIST").value_or("");
  if (!list.empty() && list != "native") {
    auto parsed = project::parse_arch_list(list);
    if (!parsed && asked.empty()) {
      parsed.error().why += "; TORCH_CUDA_ARCH_LIST in the environment names it";
      parsed.error().fix = "set TORCH_CUDA_ARCH_LIST=9.0, or unset it";
    }
    return parsed;
  }
  // What a release holds must not depend on the GPU of the machine that made it.
  if (list.empty() && release) return project::parse_arch_list(kReleaseArchs);
  std::vector<project::Arch> present = project::gpu_archs(world.files, world.processes, world.env);
  if (present.empty() && list == "native")
    return Error{Fault::Environment, "cannot build for the native architecture",
                 "this machine has no GPU", "name one: kiln build --arch 9.0"};
  if (present.empty()) return project::only(project::kPortableArch);
  std::string text;
  for (const project::Arch& arch : present) text += arch.text() + ";";
  return project::parse_arch_list(text);
}

// Code with wgmma, tcgen05 or setmaxnreg compiles for the `a` variant of an architecture alone. A
// list that names a variant knows what it wants.
void choose_variants(Plan& plan) {
  for (const Source& source : plan.sources)
    for (auto* list : {&plan.arch.sass, &plan.arch.ptx})
      for (project::Arch& arch : *list) {
        if (arch.variant) continue;
        const std::string& word =
            arch.major == 9 ? source.facts.hopper_only : source.facts.blackwell_only;
        if (arch.major < 9 || word.empty()) continue;
        arch.variant = 'a';
        plan.why_variant = fmt::format("{} uses {}", source.shown, word);
      }
  for (auto* list : {&plan.arch.sass, &plan.arch.ptx}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
}

Status check_options(const Request& request) {
  if (!request.name.empty() && !text::is_identifier(request.name))
    return Error{Fault::Usage, fmt::format("'{}' is not a valid op library name", request.name),
                 "it becomes torch.ops.<name> and a C++ name",
                 fmt::format("--name {}", text::to_identifier(request.name))};
  for (const std::string& define : request.defines) {
    std::string key = define.substr(0, define.find('='));
    key = key.substr(0, key.find('('));
    bool plain =
        !key.empty() && !(key[0] >= '0' && key[0] <= '9') &&
        key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
            std::string::npos;
    if (!plain)
      return Error{Fault::Usage, fmt::format("invalid define '{}'", define),
                   "a define is NAME or NAME=VALUE", "-D BLOCK=128"};
  }
  return {};
}

// Records and keys are UTF-8. Bytes that are not would be replaced there: two values could share a
// key.
Status check_encoding(const Plan& plan) {
  std::string odd;  // lines with bytes beyond ASCII
  auto look_at = [&](const std::string& text) {
    if (std::any_of(text.begin(), text.end(),
                    [](char c) { return static_cast<signed char>(c) < 0; }))
      odd += text + "\n";
  };
  look_at(plan.build_dir.native());
  for (const auto* list : {&plan.defines, &plan.cuda_flags, &plan.cflags, &plan.ldflags})
    for (const std::string& flag : *list) look_at(flag);
  for (const fs::path& folder : plan.includes) look_at(folder.native());
  for (const Source& source : plan.sources) look_at(source.file.native());
  for (const auto* list : {&plan.environment, &plan.link_variables})
    for (const auto& [name, value] : *list) look_at(value);
  for (std::string_view line : text::lines(odd)) {
    const std::string shown = dump(Json(line));
    const auto back = parse_json(shown, "text");
    if (back && *back == Json(line)) continue;
    return Error{Fault::Usage, fmt::format("cannot build with {}", shown),
                 "its text is not valid UTF-8",
                 "write it in UTF-8; in a define, escape a byte as \\377"};
  }
  return {};
}

// What tells two builds of one lone file apart that should both stay: tuning goes back and forth
// between them.
std::string flags_hash(const Plan& plan, const Request& request) {
  Hasher hasher;
  hasher.add_field(plan.name)
      .add_field(plan.program ? "program" : "library")
      .add_field(project::describe(plan.arch));
  for (const auto* list : {&plan.defines, &plan.cuda_flags, &plan.cflags, &plan.ldflags}) {
    hasher.add_field(std::to_string(list->size()));
    for (const std::string& flag : *list) hasher.add_field(flag);
  }
  for (const fs::path& folder : plan.includes) hasher.add_field(folder.string());
  hasher.add_field(request.fast_math ? "fast" : "");
  if (request.release) hasher.add_field("release");
  if (request.compat == "never") hasher.add_field("torch");
  return hasher.hex().substr(0, kFolderHashDigits);
}

Result<fs::path> choose_build_dir(const Plan& plan, const Wanted& wanted, const World& world) {
  const Request& request = wanted.request;
  if (!request.build_dir.empty()) return absolute(request.build_dir, request.directory);
  std::string stem = plan.sources[0].file.stem().string();
  if (!wanted.project_dir.empty()) {
    fs::path folder = wanted.project_dir / "build" / "kiln";
    if (plan.release)
      folder /= "release";  // next to the everyday build, which it must not push out
    return plan.program ? folder / ("program-" + stem) : folder;
  }
  TRY(fs::path cache, project::own_cache_folder(world.files, world.env));
  Hasher paths;
  for (const Source& source : plan.sources) paths.add_field(source.file.string());
  return cache / "lone" / fmt::format("{}-{}", stem, paths.hex().substr(0, kFolderHashDigits)) /
         flags_hash(plan, request);
}

fs::path cuda_include_of(const project::Compiler& nvcc) {
  return nvcc.path.parent_path().parent_path() / "include";
}

void add_folders(const sys::Environment& env, const char* variable,
                 std::vector<std::string>& folders) {
  if (auto value = env.get(variable))
    for (std::string_view folder : text::split(*value, ':'))
      folders.emplace_back(folder.empty() ? "." : folder);
}

// Length before text: no value can be taken for the next variable.
void read_environment(Plan& plan, const sys::Environment& env) {
  plan.environment = values_of(env, VariableRule::Key);
  plan.link_variables = values_of(env, VariableRule::Link);
  for (const auto* list : {&plan.environment, &plan.link_variables})
    for (const auto& [name, value] : *list)
      plan.circumstances += fmt::format("{} {}={}\n", value.size(), name, value);
  for (const char* name : {"CPATH", "CPLUS_INCLUDE_PATH"}) add_folders(env, name, plan.cpath);
  for (const char* name : {"LIBRARY_PATH", "LPATH"}) add_folders(env, name, plan.library_path);
  for (const char* name :
       {"NVCC_PREPEND_FLAGS", "INCLUDES", "SYSTEM_INCLUDES", "NVCC_APPEND_FLAGS"})
    for (std::string& word : text::shell_split(env.get(name).value_or("")))
      plan.environment_flags.push_back(std::move(word));
}

Status find_tools(Plan& plan, const World& world) {
  TRY(plan.home, project::find_home(world.env));
  if (!world.files.state(plan.home.runtime_archive()).is_file())
    return Error{Fault::Environment, "this installation of kiln is incomplete",
                 fmt::format("{} is missing", plan.home.runtime_archive().string()),
                 "install it again, or set KILN_HOME to its package folder"};
  bool any_cuda =
      std::any_of(plan.sources.begin(), plan.sources.end(), [](const Source& s) { return s.cuda; });
  if (any_cuda) {
    TRY(plan.nvcc, project::find_nvcc(world.files, world.env));
    const std::string misled = project::misleading_cuda_home(world.files, world.env);
    if (world.on_note && !misled.empty())
      world.on_note(fmt::format("warning: {}; using {}", misled, plan.nvcc->path.string()));
    plan.cuda_include = cuda_include_of(*plan.nvcc);
  } else if (std::any_of(plan.sources.begin(), plan.sources.end(),
                         [](const Source& s) { return !s.facts.torch_header.empty(); })) {
    // torch.utils.cpp_extension names CUDA's headers for C++ sources too.
    if (auto nvcc = project::find_nvcc(world.files, world.env))
      plan.cuda_include = cuda_include_of(*nvcc);
  }
  TRY(plan.host, project::find_host_compiler(world.files, world.env));
  TRY(plan.ninja, project::find_ninja(world.files, world.env));
  plan.circumstances = "kiln " KILN_VERSION_STRING "\n" + (plan.nvcc ? plan.nvcc->identity : "") +
                       plan.host.identity;
  read_environment(plan, world.env);
  for (const char* name : {"as", "ld"})
    if (fs::path tool =
            sys::find_program(world.files, name, world.env.get("PATH").value_or("/usr/bin:/bin"));
        !tool.empty()) {
      plan.host_tools.push_back(tool);
      plan.circumstances += tool.string() + "\n";  // another one may appear earlier on PATH
    }
  return {};
}

// An nvcc that is older than the newest GPUs of the list for a release makes the rest of it.
void keep_known(Plan& plan, const World& world) {
  if (!plan.nvcc) return;
  std::string known = fmt::format(" {},", project::supported_archs(*plan.nvcc, world.processes));
  auto is_unknown = [&](const project::Arch& arch) {
    return known.find(fmt::format(" {},", arch.text())) == known.npos;
  };
  project::ArchList list = plan.arch;
  std::erase_if(list.sass, is_unknown);
  std::erase_if(list.ptx, is_unknown);
  if (!list.sass.empty() && !list.ptx.empty()) plan.arch = list;
}

bool wants_symbols(const Plan& plan) {
  const auto asks = [](const std::vector<std::string>& flags) {
    return std::any_of(flags.begin(), flags.end(),
                       [](const std::string& flag) { return flag == "-g" || flag == "-G"; });
  };
  return asks(plan.cuda_flags) || asks(plan.cflags) || asks(plan.ldflags);
}

// A tool that is started in the project's folder finds a source under /proc/self/cwd.
std::vector<Root> choose_roots(const Plan& plan, const Wanted& wanted, const sys::Files& files) {
  fs::path own =
      wanted.project_dir.empty() ? plan.sources[0].file.parent_path() : wanted.project_dir;
  std::vector<Root> roots;
  auto real = files.real_path(own);
  for (const fs::path& path : {real ? *real : own, own})  // options may name folders through a link
    if (path.has_relative_path() && (roots.empty() || path != roots[0].real))
      roots.push_back({path.string(), "/proc/self/cwd"});
  roots.push_back({plan.home.include().string(), "/kiln/include"});
  roots.push_back({plan.home.compat().string(), "/kiln/compat"});
  // The longer one first: either may be in the other.
  std::stable_sort(roots.begin(), roots.end(),
                   [](const Root& a, const Root& b) { return a.real.size() > b.real.size(); });
  return roots;
}

}  // namespace

Result<Plan> make_plan(const Request& request, const World& world, const HeaderChoice& choice) {
  CHECK_OK(check_options(request));
  TRY(Wanted wanted, resolve_targets(request, world));
  CHECK_OK(check_options(wanted.request));
  Plan plan;
  for (const std::string& folder : wanted.request.includes)
    plan.includes.push_back(absolute(folder, request.directory));
  std::vector<fs::path> scanned = plan.includes;
  std::erase_if(scanned,
                [&](const fs::path& folder) { return holds_torchs_headers(world.files, folder); });
  TRY(plan.sources, resolve_sources(wanted, world, scanned));
  plan.name = wanted.request.name;
  if (plan.name.empty()) plan.name = text::to_identifier(plan.sources[0].file.stem().string());
  plan.program = request.program;
  plan.defines = wanted.request.defines;
  plan.cuda_flags = wanted.request.cuda_flags;
  plan.cflags = wanted.request.cflags;
  plan.ldflags = wanted.request.ldflags;
  plan.fast_math = wanted.request.fast_math;
  if (!request.output.empty()) plan.output = absolute(request.output, request.directory);
  plan.release = wanted.request.release;
  // As torch.utils.cpp_extension: flags that name architectures leave no room for the default or
  // TORCH_CUDA_ARCH_LIST.
  const bool asked = !wanted.request.arch.empty();
  const std::string flags_archs = asked ? "" : project::take_arch_flags(plan.cuda_flags);
  TRY(plan.arch, resolve_arch(asked ? wanted.request.arch : flags_archs, plan.release, world));
  choose_variants(plan);
  TRY(plan.build_dir, choose_build_dir(plan, wanted, world));
  CHECK_OK(find_tools(plan, world));
  CHECK_OK(check_encoding(plan));
  for (const auto* flags : {&plan.cuda_flags, &plan.environment_flags})
    if (std::string flag = relocatable_flag(*flags); !flag.empty())
      return no_relocatable_code(flag);
  CHECK_OK(choose_torch_headers(plan, wanted.request, world, choice));
  if (plan.release && !asked && flags_archs.empty() && !world.env.get("TORCH_CUDA_ARCH_LIST"))
    keep_known(plan, world);
  plan.debug = !plan.release && wants_symbols(plan);
  plan.findings_fail = wanted.request.findings_fail.value_or(false);
  plan.fresh = wanted.request.fresh;
  plan.limit_s = request.limit_s;
  plan.memory_bytes = request.memory_bytes;
  plan.full_lane = plan.fresh || plan.release;  // one way to the bytes
  plan.time_headers = wanted.request.time_headers;
  plan.project_dir = wanted.project_dir;
  plan.directory = request.directory;
  if (!plan.debug) plan.roots = choose_roots(plan, wanted, world.files);
  plan.is_program = [&files = world.files](const fs::path& path) {
    return files.state(path).is_executable;
  };
  return plan;
}

}  // namespace kiln::build
