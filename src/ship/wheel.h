// SPDX-License-Identifier: Apache-2.0
// How does a built library become a wheel? One file for every Python 3 and every torch since 2.7.
#pragma once

#include <string>
#include <vector>

#include "project/distribution.h"
#include "ship/release.h"
#include "ship/zip.h"

namespace kiln::ship {

struct WheelRequest {
  fs::path project;       // the folder with kiln.toml
  fs::path output;        // the folder that gets the wheel
  bool editable = false;  // PEP 660: the package builds itself when it is imported
};

struct Wheel {
  fs::path file;
  project::Distribution distribution;
  LibraryFacts library;
  LibraryNeeds needs;
  std::string tag;  // "py3-none-manylinux_2_17_aarch64"
  uint64_t bytes = 0;
  std::vector<std::string> notes;  // for people
};

// What can be refused before anything is built: names, version, pyproject.toml. `ops` is the name
// in kiln.toml.
Status check_package(const sys::Files& files, const fs::path& project, const std::string& ops);

Result<Wheel> write_wheel(const build::Outcome& outcome, const WheelRequest& request,
                          const build::World& world);

// METADATA, as core metadata 2.4 where a license is named, else 2.1.
std::string metadata_text(const project::Distribution& distribution);
// All files with dist-info at the end and RECORD last.
std::vector<PackedFile> with_record(std::vector<PackedFile> files, const std::string& dist_info);

}  // namespace kiln::ship
