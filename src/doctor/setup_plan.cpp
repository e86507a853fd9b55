// SPDX-License-Identifier: Apache-2.0
// What has to be done to make this machine ready? Nothing for what already exists, wherever it
// is.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "doctor/advice.h"
#include "doctor/setup.h"
#include "inspect/wheel_tag.h"
#include "project/setup_folder.h"

namespace kiln::doctor {

namespace {

using sys::fs::path;

// What torch 2.11 itself was built with: one CUDA in the process.
constexpr const char* kCudaRelease = "13.0";
constexpr const char* kNvccPackages[] = {"nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-nvvm",
                                         "nvidia-cuda-runtime", "nvidia-cuda-cccl"};
constexpr const char* kCpuIndex = "https://download.pytorch.org/whl/cpu";

bool wanted(const SetupOptions& options, Cure cure) {
  return !options.only || options.only->contains(cure);
}

bool usable(const Program& program) { return program.found() && program.trouble.empty(); }

// Whether a shell finds it now or not: the file must be the same once it was sourced.
void add_folder(EnvValues& values, const std::string& folder) {
  for (const char* usual : {"/usr/bin", "/bin", "/usr/local/bin"})
    if (folder == usual) return;
  if (std::find(values.path.begin(), values.path.end(), folder) == values.path.end())
    values.path.push_back(folder);
}

struct Package {
  const char* program;  // in the setup's folder; its first part is the package's own folder
  const char* purpose;
  bool optional = false;
};
constexpr Package kNinja = {project::kSetupNinja, "ninja"};
constexpr Package kNvcc = {project::kSetupNvcc, "the CUDA compiler"};
constexpr Package kNvdisasm = {project::kSetupNvdisasm, "nvdisasm", true};

struct Making {
  const Facts& facts;
  const SetupOptions& options;
  const Outside& outside;
  SetupPlan& plan;
  EnvValues& values;
};

// An earlier setup's is found also where PATH has a worse one before it.
void plan_pip(const Making& making, const Package& package, std::vector<std::string> names) {
  Action action;
  action.kind = ActionKind::Pip;
  action.path = making.options.folder / *path(package.program).begin();
  action.result = making.options.folder / package.program;
  add_folder(making.values, action.result.parent_path().string());
  if (sys::FileState state = making.outside.files.state(action.result);
      state.is_file() && state.is_executable) {
    making.plan.found.push_back(fmt::format("{} at {}", package.purpose, action.result.string()));
    return;
  }
  action.optional = package.optional;
  action.python = making.facts.python.program.path;
  action.what = fmt::format("install {} with pip into {}: {}", package.purpose,
                            action.path.string(), text::join(names, " "));
  action.packages = std::move(names);
  making.plan.actions.push_back(std::move(action));
}

void plan_ninja(const Making& making) {
  const Program& ninja = making.facts.ninja;
  bool new_enough =
      ninja.version.empty() || inspect::compare_versions(ninja.version, kOldestNinja) >= 0;
  if (usable(ninja) && new_enough && ninja.path.ends_with("/ninja")) {
    making.plan.found.push_back(fmt::format("ninja {} at {}", ninja.version, ninja.path));
    add_folder(making.values, path(ninja.path).parent_path().string());
    return;
  }
  if (wanted(making.options, Cure::Ninja))
    plan_pip(making, kNinja, {fmt::format("ninja>={}", kOldestNinja)});
}

void plan_nvcc(const Making& making) {
  const Toolkit& toolkit = making.facts.toolkit;
  if (usable(toolkit.nvcc) && !toolkit.home.empty()) {
    making.plan.found.push_back(fmt::format("nvcc {} in {}", toolkit.nvcc.version, toolkit.home));
    making.values.cuda_home = toolkit.home;
    add_folder(making.values, toolkit.home + "/bin");
    return;
  }
  if (!wanted(making.options, Cure::Nvcc)) return;
  std::string release =
      making.facts.torch.cuda.starts_with("13.") ? making.facts.torch.cuda : kCudaRelease;
  std::vector<std::string> packages;
  for (const char* name : kNvccPackages) packages.push_back(fmt::format("{}=={}.*", name, release));
  plan_pip(making, kNvcc, std::move(packages));
  making.values.cuda_home =
      (making.options.folder / project::kSetupNvcc).parent_path().parent_path().string();
}

void plan_nvdisasm(const Making& making) {
  const Program& nvdisasm = making.facts.nvdisasm;
  if (nvdisasm.found()) {
    making.plan.found.push_back(fmt::format("nvdisasm at {}", nvdisasm.path));
    add_folder(making.values, path(nvdisasm.path).parent_path().string());
    return;
  }
  // No fault: only `kiln inspect --sass` misses it.
  if (!making.options.only) plan_pip(making, kNvdisasm, {"nvidia-cuda-nvdisasm"});
}

// Of the environment that an earlier run made. pip installs what torch needs first and writes
// RECORD last: with it all is there.
Torch own_torch(const sys::Files& files, const path& environment) {
  Torch torch;
  for (const std::string& python : files.list(environment / "lib")) {
    path packages = environment / "lib" / python / "site-packages";
    for (const std::string& name : files.list(packages)) {
      if (!name.starts_with("torch-") || !files.state(packages / name / "RECORD").is_file())
        continue;
      torch.folder = (packages / "torch").string();
      if (auto text = files.read(packages / "torch/version.py")) read_torch_version(*text, torch);
    }
  }
  return torch;
}

Status plan_torch(const Making& making) {
  const auto& [facts, options, outside, plan, values] = making;
  path environment = options.folder / "venv";
  Torch earlier = own_torch(outside.files, environment);
  // Also where it is active now, or this run does not ask for torch: the file must stay the same.
  if (earlier.found()) add_folder(values, (environment / "bin").string());
  if (options.torch.empty() || options.only) return {};
  bool cpu = options.torch == "cpu", cuda = options.torch == "cuda";
  if (!cpu && !cuda && (options.torch[0] < '0' || options.torch[0] > '9'))
    return Error{Fault::Usage, fmt::format("unknown kind of torch '{}'", options.torch),
                 "it must be cpu, cuda or a version such as 2.7.1", "kiln setup --torch cpu"};
  const Torch& torch = facts.torch.found() ? facts.torch : earlier;
  bool fits = torch.found() && (cpu || (cuda && !torch.cuda.empty()) ||
                                (!cpu && !cuda && torch.version.starts_with(options.torch)));
  if (fits) {
    plan.found.push_back(fmt::format("torch {} in {}", torch.version, torch.folder));
    return {};
  }
  if (torch.found())
    return Error{
        Fault::Usage, fmt::format("torch {} is not installed", options.torch),
        fmt::format("{} has torch {} already, which would be replaced",
                    &torch == &earlier ? environment.string() : facts.python.program.path,
                    torch.version),
        "activate another environment first: python3 -m venv env && source env/bin/activate"};
  Action action;
  action.kind = ActionKind::Torch;
  action.packages = {cpu || cuda ? "torch" : fmt::format("torch=={}", options.torch)};
  action.index = cpu ? kCpuIndex : "";
  bool own = !facts.python.is_environment || facts.python.prefix == environment.string();
  action.path = own ? environment : path(facts.python.prefix);
  action.python = facts.python.program.path;
  action.what = fmt::format("install torch ({}) with pip into {}{}", options.torch,
                            own ? "a new environment " : "", action.path.string());
  if (own) add_folder(values, (action.path / "bin").string());
  plan.actions.push_back(std::move(action));
  return {};
}

void plan_file(const Outside& outside, SetupPlan& plan, const path& file, std::string content,
               const std::string& what) {
  auto present = outside.files.read(file);
  if (present && *present == content) return;
  Action action;
  action.kind = ActionKind::File;
  action.path = file;
  action.content = std::move(content);
  action.what = fmt::format("{} {}{}", present ? "update" : "write", file.string(), what);
  plan.actions.push_back(std::move(action));
}

Status plan_shells(const SetupOptions& options, const Outside& outside, SetupPlan& plan) {
  if (!options.shells) return {};
  auto home = outside.env.get("HOME");
  if (!home)
    return Error{Fault::Environment, "cannot find the files of your shell", "HOME is not set",
                 "source the env file"};
  std::string file = text::shell_quote(plan.env_file.string());
  std::string line = fmt::format("[ -f {} ] && . {}  # kiln setup\n", file, file);
  for (const char* name : {".bashrc", ".zshrc"}) {
    path rc = path(*home) / name;
    auto present = outside.files.read(rc);
    if (!present || present->find(line) != present->npos) continue;
    Action action;
    action.kind = ActionKind::Line;
    action.path = rc;
    action.content = line;
    action.what = fmt::format("add a line to {}", rc.string());
    plan.actions.push_back(std::move(action));
  }
  return {};
}

Status plan_conda(const SetupOptions& options, const Outside& outside, SetupPlan& plan) {
  if (!options.conda) return {};
  auto prefix = outside.env.get("CONDA_PREFIX");
  if (!prefix)
    return Error{Fault::Usage, "cannot write conda's activation snippets",
                 "no conda environment is active", "conda activate NAME, then kiln setup --conda"};
  path folder = path(*prefix) / "etc/conda";
  std::string file = text::shell_quote(plan.env_file.string());
  plan_file(outside, plan, folder / "activate.d/kiln.sh",
            fmt::format("# Written by kiln setup.\n[ -f {} ] && . {}\n", file, file), "");
  plan_file(outside, plan, folder / "deactivate.d/kiln.sh", conda_deactivate_text(), "");
  return {};
}

void plan_locks(const Facts& facts, const SetupOptions& options, SetupPlan& plan) {
  if (!options.only || !options.only->contains(Cure::RemoveLocks)) return;
  for (const StaleLock& lock : facts.locks) {
    if (lock.owned) continue;
    Action action;
    action.kind = ActionKind::RemoveFile;
    action.path = lock.path;
    action.what = fmt::format("remove {}, which no process holds", lock.path);
    plan.actions.push_back(std::move(action));
  }
}

void plan_cache(const Facts& facts, const SetupOptions& options, SetupPlan& plan,
                EnvValues& values) {
  bool broken = !facts.cache.writable || !facts.cache.refused.empty();
  values.cache = options.cache;
  if (values.cache.empty() && broken && wanted(options, Cure::CacheFolder))
    values.cache = (options.folder / "cache").string();
  if (values.cache.empty()) {
    if (!broken && !facts.cache.folder.empty())
      plan.found.push_back(fmt::format("cache {}", facts.cache.folder));
    return;
  }
  if (values.cache == facts.cache.folder && !broken) {
    plan.found.push_back(fmt::format("cache {}", facts.cache.folder));
    return;
  }
  Action action;
  action.kind = ActionKind::Folder;
  action.path = values.cache;
  action.what = fmt::format("create the cache folder {}", values.cache);
  plan.actions.push_back(std::move(action));
}

bool wants_env_file(const SetupOptions& options, const SetupPlan& plan) {
  if (!options.only) return true;
  bool installs = std::any_of(plan.actions.begin(), plan.actions.end(), [](const Action& action) {
    return action.kind != ActionKind::RemoveFile;
  });
  return installs || options.only->contains(Cure::Environment);
}

}  // namespace

Result<SetupPlan> plan_setup(const Facts& facts, const SetupOptions& options,
                             const Outside& outside) {
  SetupPlan plan;
  EnvValues values;
  plan.env_file = options.folder / "env.sh";
  Making making{facts, options, outside, plan, values};
  plan_ninja(making);
  plan_nvcc(making);
  plan_nvdisasm(making);
  CHECK_OK(plan_torch(making));
  bool needs_pip = std::any_of(plan.actions.begin(), plan.actions.end(), [](const Action& action) {
    return action.kind == ActionKind::Pip || action.kind == ActionKind::Torch;
  });
  if (needs_pip && (!usable(facts.python.program) || !facts.python.has_pip))
    return Error{Fault::Environment, fmt::format("cannot {}", plan.actions.front().what),
                 usable(facts.python.program)
                     ? fmt::format("{} has no pip", facts.python.program.path)
                     : "there is no working python3",
                 "apt install python3-pip, or activate an environment that has pip"};
  plan_cache(facts, options, plan, values);
  plan_locks(facts, options, plan);
  if (!options.arch.empty()) {
    if (auto list = project::parse_arch_list(options.arch); !list) return std::move(list.error());
  }
  auto asked = project::parse_arch_list(facts.variables.arch_list);
  values.arch = !options.arch.empty() ? options.arch
                : asked               ? facts.variables.arch_list
                                      : fitting_arch(facts);
  auto present = outside.files.read(plan.env_file);
  int kept = present ? jobs_in_env_file(*present) : 0;
  // Memory that is free differs from minute to minute: a second run must not change the file for
  // that.
  bool keep = kept > 0 && kept <= facts.machine.cores &&
              !(options.only && options.only->contains(Cure::Environment));
  values.jobs = options.jobs > 0 ? options.jobs : keep ? kept : fitting_jobs(facts.machine);
  values.ccache_depend = facts.ccache.for_nvcc;
  if (wants_env_file(options, plan))
    plan_file(outside, plan, plan.env_file, env_file_text(values, plan.env_file.string()),
              fmt::format(" (arch {}, {} jobs)", values.arch, values.jobs));
  CHECK_OK(plan_conda(options, outside, plan));
  CHECK_OK(plan_shells(options, outside, plan));
  return plan;
}

}  // namespace kiln::doctor
