// SPDX-License-Identifier: Apache-2.0
// Which programs does nvcc start for given flags?
//
//   #$ NVVMIR_LIBRARY_DIR=/usr/local/cuda/bin/../nvvm/libdevice
//   #$ gcc -D__CUDA_ARCH__=900 ... -E ... "/kiln/source.cu" -o
//   "/tmp/tmpxft_0001_0-8_source.compute_90.cpp1.ii"
//   #$ "$CICC_PATH/cicc" ... -arch compute_90 ... -o "/tmp/tmpxft_0001_0-6_source.compute_90.ptx"
//   #$ ptxas -arch=sm_90 ...   fatbinary ...   gcc ... -c ... -o "/kiln/source.o"
#include "build/plan/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/json.h"
#include "base/text.h"

namespace kiln::build {

namespace {

// The programs read these; the rest of what nvcc.profile sets is spelled out on their command
// lines.
constexpr std::array kProgramVariables = {"NVVMIR_LIBRARY_DIR", "LD_LIBRARY_PATH", "PATH", "TOP",
                                          "CICC_PATH"};
constexpr std::string_view kTemporary = "tmpxft_";

std::string value_after(const Words& words, std::string_view option) {
  auto at = std::find(words.begin(), words.end(), option);
  return at == words.end() || at + 1 == words.end() ? "" : *(at + 1);
}

bool has(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

class Reader {
 public:
  std::optional<Recipe> read(std::string_view text) {
    for (std::string_view line : text::lines(text)) {
      if (!line.starts_with("#$ ")) {
        if (!text::trim(line).empty())
          return std::nullopt;  // a warning: nvcc may do something else than it shows
        continue;
      }
      if (!take(text::trim(line.substr(3)))) return std::nullopt;
    }
    return finish();
  }

 private:
  bool take(std::string_view line) {
    size_t equals = line.find('=');
    bool is_variable = equals != std::string_view::npos &&
                       line.substr(0, equals).find_first_of(" \"") == line.npos;
    if (is_variable) {
      set(line.substr(0, equals), line.substr(equals + 1));
      return true;
    }
    if (line.starts_with("rm ") || line.starts_with("-- ")) return true;
    std::string expanded(line);
    for (const auto& [name, value] : variables_)
      expanded = text::replace_all(expanded, "$" + name, value);
    Words words = text::shell_split(expanded);
    if (words.empty()) return false;
    return sort_in(std::move(words));
  }

  void set(std::string_view name, std::string_view value) {
    variables_[std::string(name)] = value;
    if (std::find(kProgramVariables.begin(), kProgramVariables.end(), name) !=
        kProgramVariables.end())
      recipe_.env.emplace_back(name, value);
  }

  bool sort_in(Words words) {
    std::string program = base_name(words[0]);
    if (program == "cudafe++") {
      roles_[value_after(words, "--gen_c_file_name")] = "cpp";
      roles_[value_after(words, "--module_id_file_name")] = "module_id";
      stub_name_ = value_after(words, "--stub_file_name");
      std::erase(words, "--gen_module_id_file");  // else the device chain would have to wait for it
      recipe_.cudafe = std::move(words);
    } else if (program == "cicc") {
      DeviceRecipe& device = device_of(value_after(words, "-arch"));
      std::string compute = device.compute;
      roles_[value_after(words, "-o")] = compute + ".ptx";
      roles_[value_after(words, "--gen_c_file_name")] = compute + ".c";
      roles_[value_after(words, "--gen_device_file_name")] = compute + ".gpu";
      std::string stub = value_after(words, "--stub_file_name");
      if (base_name(stub) == stub_name_) recipe_.stub_compute = compute;
      roles_[stub] = compute + ".stub.c";
      roles_[value_after(words, "--include_file_name")] = "fatbin.c";
      device.cicc = std::move(words);
    } else if (program == "ptxas") {
      return sort_in_ptxas(std::move(words));
    } else if (program == "fatbinary") {
      recipe_.fatbinary = std::move(words);
    } else if (has(words, "-E")) {
      sort_in_preprocess(std::move(words));
    } else if (has(words, "-c") && value_after(words, "-o") == kDryRunObject) {
      roles_[std::string(kDryRunObject)] = "o";
      recipe_.compile = std::move(words);
    } else {
      return false;  // nvlink, -lto, a host compiler of another kind
    }
    return true;
  }

  bool sort_in_ptxas(Words words) {
    for (const std::string& word : words) {
      auto role = roles_.find(word);
      if (role == roles_.end() || !role->second.ends_with(".ptx")) continue;
      std::string compute = role->second.substr(0, role->second.size() - 4);
      for (const std::string& option : words) {
        if (!option.starts_with("-arch=sm_")) continue;
        std::string sm = option.substr(9);
        roles_[value_after(words, "-o")] = fmt::format("{}.sm_{}.cubin", compute, sm);
        device_of("compute_" + compute).assemblies.push_back({sm, std::move(words)});
        return true;
      }
    }
    return false;
  }

  void sort_in_preprocess(Words words) {
    std::string output = value_after(words, "-o");
    bool device = std::any_of(words.begin(), words.end(), [](const std::string& word) {
      return word.starts_with("-D__CUDA_ARCH__=");
    });
    if (device) {
      preprocesses_.push_back(std::move(words));
    } else {
      roles_[output] = "ii";
      recipe_.preprocess = std::move(words);
    }
  }

  DeviceRecipe& device_of(std::string_view arch) {
    std::string compute(arch.substr(arch.starts_with("compute_") ? 8 : 0));
    for (DeviceRecipe& device : recipe_.devices)
      if (device.compute == compute) return device;
    recipe_.devices.push_back({compute, {}, {}, {}});
    return recipe_.devices.back();
  }

  std::optional<Recipe> finish() {
    for (Words& words : preprocesses_) {
      // Its output is what one cicc reads.
      std::string output = value_after(words, "-o");
      for (DeviceRecipe& device : recipe_.devices) {
        if (!has(device.cicc, output)) continue;
        roles_[output] = device.compute + ".ii";
        device.preprocess = std::move(words);
        break;
      }
    }
    roles_[stub_name_] = "stub.c";
    bool whole = !recipe_.preprocess.empty() && !recipe_.cudafe.empty() &&
                 !recipe_.compile.empty() && !recipe_.fatbinary.empty() &&
                 !recipe_.devices.empty() && !recipe_.stub_compute.empty();
    for (const DeviceRecipe& device : recipe_.devices) whole &= !device.preprocess.empty();
    if (!whole) return std::nullopt;
    // Relocatable device code needs nvcc's own link.
    if (has(recipe_.fatbinary, "--device-c") || has(recipe_.cudafe, "--device-c"))
      return std::nullopt;
    bool known = name_files(recipe_.preprocess) && name_files(recipe_.cudafe) &&
                 name_files(recipe_.compile) && name_files(recipe_.fatbinary);
    for (DeviceRecipe& device : recipe_.devices) {
      known = known && name_files(device.preprocess) && name_files(device.cicc);
      for (Assembly& assembly : device.assemblies) known = known && name_files(assembly.ptxas);
    }
    if (!known) return std::nullopt;
    return std::move(recipe_);
  }

  // False when a temporary file is left whose role is not known.
  bool name_files(Words& words) const {
    for (std::string& word : words) {
      size_t value = word.find("file=");
      size_t start = value == std::string::npos ? (word.starts_with("--") ? word.find('=') + 1 : 0)
                                                : value + 5;
      if (auto role = roles_.find(word.substr(start)); role != roles_.end())
        word = word.substr(0, start) + std::string(kFile) + role->second;
      if (word.substr(start) == kDryRunSource) word = word.substr(0, start) + std::string(kSource);
      bool embedded = word.starts_with("--embedded-fatbin=");
      if (embedded) word = "--create=" + std::string(kFile) + "fatbin";
      if (word.find(kTemporary) != std::string::npos) return false;
    }
    return true;
  }

  Recipe recipe_;
  std::string stub_name_;
  std::vector<Words> preprocesses_;
  std::map<std::string, std::string> variables_, roles_;
};

}  // namespace

std::optional<Recipe> parse_dryrun(std::string_view text) { return Reader().read(text); }

std::string write_recipe(const Recipe& recipe) {
  Json devices = Json::array();
  for (const DeviceRecipe& device : recipe.devices) {
    Json assemblies = Json::array();
    for (const Assembly& one : device.assemblies)
      assemblies.push_back({{"sm", one.sm}, {"ptxas", one.ptxas}});
    devices.push_back({{"compute", device.compute},
                       {"preprocess", device.preprocess},
                       {"cicc", device.cicc},
                       {"assemblies", assemblies}});
  }
  Json env = Json::array();
  for (const auto& [name, value] : recipe.env) env.push_back({name, value});
  return dump({{"kiln_recipe", 1},
               {"env", env},
               {"preprocess", recipe.preprocess},
               {"cudafe", recipe.cudafe},
               {"devices", devices},
               {"stub_compute", recipe.stub_compute},
               {"fatbinary", recipe.fatbinary},
               {"compile", recipe.compile}});
}

std::optional<Recipe> read_recipe(std::string_view text) {
  auto json = parse_json(text, "recipe");
  if (!json || !json->is_object() || json->value("kiln_recipe", 0) != 1) return std::nullopt;
  try {
    Recipe recipe;
    for (const Json& pair : json->at("env")) recipe.env.emplace_back(pair.at(0), pair.at(1));
    recipe.preprocess = json->at("preprocess").get<Words>();
    recipe.cudafe = json->at("cudafe").get<Words>();
    recipe.stub_compute = json->at("stub_compute");
    recipe.fatbinary = json->at("fatbinary").get<Words>();
    recipe.compile = json->at("compile").get<Words>();
    for (const Json& one : json->at("devices")) {
      DeviceRecipe device{
          one.at("compute"), one.at("preprocess").get<Words>(), one.at("cicc").get<Words>(), {}};
      for (const Json& assembly : one.at("assemblies"))
        device.assemblies.push_back({assembly.at("sm"), assembly.at("ptxas").get<Words>()});
      recipe.devices.push_back(std::move(device));
    }
    return recipe;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // damaged: nvcc is asked again
  }
}

}  // namespace kiln::build
