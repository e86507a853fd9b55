// SPDX-License-Identifier: Apache-2.0
// Where are those of torch's own headers that cost little, without the others?
#include "build/plan/light_headers.h"

#include "base/hash.h"
#include "project/own_cache.h"

namespace kiln::build {

namespace {

constexpr std::string_view kLight[] = {
#define LIGHT(name) name,
#include "build/plan/light_headers.def"
#undef LIGHT
};

bool is_below(std::string_view name, std::string_view folder) {
  return name == folder ||
         (name.starts_with(folder) && name.size() > folder.size() && name[folder.size()] == '/');
}

}  // namespace

bool is_light_header(std::string_view name) {
  for (std::string_view light : kLight)
    if (is_below(name, light)) return true;
  return false;
}

// The stand-in for torch/version.h reads the version in one of torch's own.
bool needs_light_headers(std::string_view name) {
  return name == kPybindHeader || name == "kiln/compat/version.h" ||
         name.ends_with("torch/version.h") || is_light_header(name);
}

bool is_stable_header(std::string_view name) {
  return is_below(name, "torch/csrc/stable") || is_below(name, "torch/csrc/inductor/aoti_torch");
}

// One folder per torch and per list. It is complete once its last link exists.
Result<fs::path> make_light_folder(const fs::path& torch_package, const World& world) {
  TRY(fs::path cache, project::own_cache_folder(world.files, world.env));
  Hasher hasher;
  hasher.add_field(torch_package.string());
  for (std::string_view light : kLight) hasher.add_field(light);
  constexpr size_t kDigits = 16;
  const fs::path folder = cache / "compat" / ("headers-" + hasher.hex().substr(0, kDigits));
  const fs::path finished = folder / "finished";
  if (world.files.state(finished).is_file()) return folder;
  for (std::string_view light : kLight) {
    const fs::path link = folder / light;
    CHECK_OK(world.files.make_directories(link.parent_path()));
    CHECK_OK(world.files.point_link(link, torch_package / "include" / light));
  }
  CHECK_OK(world.files.write(finished, torch_package.string(), sys::Durable::No));
  return folder;
}

}  // namespace kiln::build
