// SPDX-License-Identifier: Apache-2.0
// Where do the facts come from? From the disk, the environment and a few programs that are asked
// for their version.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "doctor/facts.h"
#include "sys/env.h"
#include "sys/files.h"
#include "sys/process.h"

namespace kiln::doctor {

struct Outside {
  sys::Files& files;
  sys::Processes& processes;
  const sys::Environment& env;
};

// The machine. `process` is a running one whose libraries are looked at; 0: none.
Facts gather_machine(const Outside& outside, int process = 0);

// Parts of it, each in a file of its own.
void gather_programs(const Outside& outside, Facts& facts);
void gather_python(const Outside& outside, Facts& facts);
void gather_gpu(const Outside& outside, Facts& facts);
void gather_caches(const Outside& outside, Facts& facts);

// A .so, .o, .a or .whl as this machine would load it. An error where there is no such file.
Status gather_library(const Outside& outside, const sys::fs::path& file, const std::string& shown,
                      Facts& facts);

// A folder with kiln.toml, setup.py or pyproject.toml. An error where it has none of them.
Status gather_project(const Outside& outside, const sys::fs::path& folder, const std::string& shown,
                      Facts& facts);

// Compiles a small kernel twice in a folder of its own.
void time_compile(const Outside& outside, Facts& facts);

// What a program prints; empty with a reason where it does not run, or not within a few seconds.
struct Answer {
  std::string text;
  std::string trouble;
};
Answer ask(const Outside& outside, std::vector<std::string> words);

// The first "1.2.3" in a text.
std::string version_in(std::string_view text);
std::string search_path(const sys::Environment& env);
// The file system that holds a path, of /proc/self/mounts.
std::string file_system_of(std::string_view mounts, std::string_view path);
// The last gcc and clang in the #error lines of nvcc's host_config.h; 0: unknown.
int newest_compiler(std::string_view host_config, std::string_view name);
// __version__ and cuda of torch/version.py.
void read_torch_version(std::string_view text, Torch& torch);
// Of .ninja_log: the last run of each output, and how long all took.
void read_ninja_log(std::string_view text, Project& project);
SourceFile scan_project_source(std::string_view name, std::string_view text);
// What setup.py says, without running it.
void scan_setup_py(std::string_view text, Project& project);
Wheel read_wheel_name(std::string_view name);

}  // namespace kiln::doctor
