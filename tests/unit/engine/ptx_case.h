// SPDX-License-Identifier: Apache-2.0
// What does a file of tests/ptx/<chapter> say? One file is one case (tools/ptx/cases.py reads the
// same for a GPU):
//   // in a .s32: 1 -2 0x7fffffff      one value a thread; a register `a` of that type holds it
//   // out d .s32: 2 -4 0xfffffffe     what the register `d` must hold after the body;
//                                      `~1e-6` before the colon: within that ratio
//   // block: 64                       threads, by default 32; those without a value get the last
//   // grid: 2   // cluster: 2         blocks; those of a cluster
//   // reg p .pred                     a register that the body uses beside those
//   // outside TEXT                    stands before the kernel
//   // scratch: 512                    bytes of memory at %scratch; word i holds i
//   // tensor: TYPE RANK OFFSET SIZES STRIDES BOX STEPS SWIZZLE FILL
//                                      %map is a tensor map of the scratch memory
//   // target: sm_90a                  for a GPU: what it has to be
//   // gpu: REASON                     why it does not run on a GPU
// and the rest is the body.
#pragma once

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/memory/tensor_map.h"
#include "engine/numbers/numeric.h"
#include "harness.h"

namespace kiln::engine {

struct Column {
  std::string name, type;
  std::vector<std::string> values;
  double ratio = 0, distance = 0;  // how far off a value may be: `~RATIO`, `~RATIO+DISTANCE`
  std::string kind;                // of what is compared so: `~RATIO/f16x2`; else the column's type
};

struct Case {
  std::vector<Column> inputs, outputs;
  std::string registers, body, outside;
  uint32_t block = 32, grid = 1, cluster = 1, scratch = 0;
  std::vector<uint64_t> tensor;
  std::string target = "sm_90";

  uint32_t threads() const { return block * grid; }
  uint64_t scratch_at() const {
    const uint64_t used = (inputs.size() + outputs.size()) * threads() * 8;
    return (used + 1023) / 1024 * 1024;
  }
};

inline std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

inline Column column(const std::string& line) {
  size_t colon = line.find(':');
  auto head = words(line.substr(0, colon));
  Column out;
  out.name = head.at(1);
  out.type = head.at(2).substr(1);
  if (head.size() > 3) {
    const std::string text = head[3].substr(1);
    const size_t slash = text.find('/'), plus = text.find('+');
    out.ratio = std::stod(text);
    if (plus != text.npos) out.distance = std::stod(text.substr(plus + 1));
    out.kind = slash == text.npos ? out.type : text.substr(slash + 1);
  }
  out.values = words(line.substr(colon + 1));
  return out;
}

inline Case read_case(const std::string& path) {
  Case out;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::string text = line.rfind("// ", 0) == 0 ? line.substr(3) : "";
    if (text.rfind("in ", 0) == 0) {
      out.inputs.push_back(column(text));
    } else if (text.rfind("out ", 0) == 0) {
      out.outputs.push_back(column(text));
    } else if (text.rfind("block:", 0) == 0) {
      out.block = static_cast<uint32_t>(std::stoul(text.substr(6)));
    } else if (text.rfind("grid:", 0) == 0) {
      out.grid = static_cast<uint32_t>(std::stoul(text.substr(5)));
    } else if (text.rfind("cluster:", 0) == 0) {
      out.cluster = static_cast<uint32_t>(std::stoul(text.substr(8)));
    } else if (text.rfind("scratch:", 0) == 0) {
      out.scratch = static_cast<uint32_t>(std::stoul(text.substr(8)));
    } else if (text.rfind("target:", 0) == 0) {
      out.target = words(text.substr(7)).at(0);
    } else if (text.rfind("tensor:", 0) == 0) {
      for (const std::string& word : words(text.substr(7))) out.tensor.push_back(std::stoull(word));
    } else if (text.rfind("gpu:", 0) == 0) {
    } else if (text.rfind("reg ", 0) == 0) {
      auto parts = words(text);
      out.registers += ".reg " + parts.at(2) + " " + parts.at(1) + ";\n";
    } else if (text.rfind("outside ", 0) == 0) {
      out.outside += text.substr(8) + "\n";
    } else {
      out.body += line + "\n";
    }
  }
  return out;
}

// "1.5" for floats, integers in decimal or hexadecimal (which are the bits, for floats too), nan,
// inf.
inline uint64_t bits_of(const std::string& text, const std::string& type) {
  bool is_hex = text.find("0x") != std::string::npos;
  if (type == "f32" && !is_hex) return as_bits(std::strtof(text.c_str(), nullptr));
  if (type == "f64" && !is_hex) return std::bit_cast<uint64_t>(std::strtod(text.c_str(), nullptr));
  if (text[0] == '-') return static_cast<uint64_t>(std::strtoll(text.c_str(), nullptr, 0));
  return std::strtoull(text.c_str(), nullptr, 0);
}

inline double number_of(uint64_t bits, const std::string& kind) {
  if (kind == "f64") return std::bit_cast<double>(bits);
  if (kind == "f16") return half_to_float(static_cast<uint16_t>(bits));
  if (kind == "bf16") return bf16_to_float(static_cast<uint16_t>(bits));
  return as_float(static_cast<uint32_t>(bits));
}

inline bool is_near(uint64_t seen, uint64_t wanted, const Column& column) {
  if (column.kind.empty()) return false;
  const bool is_pair = column.kind.ends_with("x2");
  const std::string kind = is_pair ? column.kind.substr(0, column.kind.size() - 2) : column.kind;
  for (int half = 0; half < (is_pair ? 2 : 1); ++half) {
    const uint64_t mask = is_pair ? 0xffff : ~uint64_t{0};
    const double a = number_of(seen >> (16 * half) & mask, kind),
                 b = number_of(wanted >> (16 * half) & mask, kind);
    if (a == b || (a != a && b != b)) continue;
    if (!(std::fabs(a - b) <= column.ratio * std::fabs(b) + column.distance)) return false;
  }
  return true;
}

inline uint32_t bytes_of_type(const std::string& type) {
  if (type == "pred") return 4;
  return ptx::bytes_of(*ptx::type_named(type));
}

inline std::string program_of(const Case& c) {
  std::string parameters = ".param .u64 memory";
  if (!c.tensor.empty()) parameters += ", .param .align 64 .b8 map[128]";
  std::string text = ".version 9.0\n.target " + c.target + "\n.address_size 64\n" + c.outside +
                     ".visible .entry k(" + parameters +
                     ")\n{\n.reg .b64 %at, %base, %scratch, %map;\n" +
                     ".reg .b32 %lane, %bool, %cta, %size;\n" + c.registers;
  for (const auto* list : {&c.inputs, &c.outputs}) {
    for (const Column& column : *list) text += ".reg ." + column.type + " " + column.name + ";\n";
  }
  text +=
      "ld.param.u64 %base, [memory];\nmov.u32 %lane, %tid.x;\nmov.u32 %cta, %ctaid.x;\nmov.u32 "
      "%size, %ntid.x;\n";
  text += "mad.lo.u32 %lane, %cta, %size, %lane;\n";
  text += "add.u64 %scratch, %base, " + std::to_string(c.scratch_at()) + ";\n";
  if (!c.tensor.empty()) text += "mov.b64 %map, map;\ncvta.param.u64 %map, %map;\n";
  uint64_t slot = 0;
  auto move = [&](const Column& column, bool load) {
    bool predicate = column.type == "pred";
    std::string bits = predicate ? "b32" : "b" + std::to_string(bytes_of_type(column.type) * 8);
    std::string reg = predicate ? "%bool" : column.name;
    text += "mad.wide.u32 %at, %lane, 8, %base;\n";
    std::string place = "[%at+" + std::to_string(slot * c.threads() * 8) + "]";
    if (load) {
      text += "ld.global." + bits + " " + reg + ", " + place + ";\n";
      if (predicate) text += "setp.ne.u32 " + column.name + ", %bool, 0;\n";
    } else {
      if (predicate) text += "selp.u32 %bool, 1, 0, " + column.name + ";\n";
      text += "st.global." + bits + " " + place + ", " + reg + ";\n";
    }
    ++slot;
  };
  for (const Column& column : c.inputs) move(column, true);
  text += "{\n" + c.body + "}\n";
  for (const Column& column : c.outputs) move(column, false);
  return text + "ret;\n}\n";
}

// The map of the case's tensor, as the driver's function makes it; `base` is where the scratch
// memory begins.
inline int make_tensor_map(const Case& c, std::byte* base, TensorMap* map) {
  using Encode = int (*)(TensorMap*, int, uint32_t, void*, const uint64_t*, const uint64_t*,
                         const uint32_t*, const uint32_t*, int, int, int, int);
  auto encode = reinterpret_cast<Encode>(driver_function("cuTensorMapEncodeTiled"));
  auto next = c.tensor.begin();
  const uint64_t type = *next++, rank = *next++, offset = *next++;
  uint64_t sizes[5] = {}, strides[5] = {};
  uint32_t box[5] = {}, steps[5] = {};
  for (uint64_t i = 0; i < rank; ++i) sizes[i] = *next++;
  for (uint64_t i = 0; i + 1 < rank; ++i) strides[i] = *next++;
  for (uint64_t i = 0; i < rank; ++i) box[i] = static_cast<uint32_t>(*next++);
  for (uint64_t i = 0; i < rank; ++i) steps[i] = static_cast<uint32_t>(*next++);
  const int swizzle = static_cast<int>(*next++), fill = static_cast<int>(*next);
  return encode(map, static_cast<int>(type), static_cast<uint32_t>(rank), base + offset, sizes,
                strides, box, steps, 0, swizzle, 0, fill);
}

// Every case under tests/ptx: one folder per chapter of the PTX manual, those that were generated
// under generated/. The whole programs under kernels/ are not cases.
inline std::vector<std::string> case_files() {
  const std::filesystem::path root = KILN_TEST_DATA "/ptx";
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const bool is_program = entry.path().parent_path() == root / "kernels";
    if (entry.path().extension() == ".ptx" && !is_program) out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace kiln::engine
