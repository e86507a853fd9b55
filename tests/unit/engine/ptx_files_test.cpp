// SPDX-License-Identifier: Apache-2.0
// Does every instruction form give the bits that a GPU gives? One file of tests/ptx is one case:
//   // in a .s32: 1 -2 0x7fffffff      one value a lane (thread); a register `a` of that type holds it
//   // out d .s32: 2 -4 0xfffffffe     what the register `d` must hold after the body; `~1e-6` before the colon: within
//   that ratio
//   // block: 64                       threads; 32 when it is not said; lanes without a value get the last one
//   // reg p .pred                     a register that the body uses beside those
// and the rest is the body.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/numeric.h"
#include "harness.h"

namespace kiln::engine {
namespace {

struct Column {
  std::string name, type;
  std::vector<std::string> values;
  double tolerance = 0;
};

struct Case {
  std::vector<Column> inputs, outputs;
  std::string registers, body, outside;
  uint32_t block = 32;
};

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

Column column(const std::string& line) {
  size_t colon = line.find(':');
  auto head = words(line.substr(0, colon));
  Column out;
  out.name = head.at(1);
  out.type = head.at(2).substr(1);
  if (head.size() > 3) out.tolerance = std::stod(head[3].substr(1));
  out.values = words(line.substr(colon + 1));
  return out;
}

Case read_case(const std::string& path) {
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

// "1.5" for floats, integers in decimal or hexadecimal (which are the bits, for floats too), nan, inf.
uint64_t bits_of(const std::string& text, const std::string& type) {
  bool is_hex = text.find("0x") != std::string::npos;
  if (type == "f32" && !is_hex) return as_bits(std::strtof(text.c_str(), nullptr));
  if (type == "f64" && !is_hex) return std::bit_cast<uint64_t>(std::strtod(text.c_str(), nullptr));
  if (text[0] == '-') return static_cast<uint64_t>(std::strtoll(text.c_str(), nullptr, 0));
  return std::strtoull(text.c_str(), nullptr, 0);
}

uint32_t bytes_of_type(const std::string& type) {
  if (type == "pred") return 4;
  return ptx::bytes_of(*ptx::type_named(type));
}

std::string program_of(const Case& c) {
  std::string text = c.outside +
                     ".visible .entry k(.param .u64 memory)\n{\n.reg .b64 %at, %base;\n.reg .b32 %lane, %bool;\n" +
                     c.registers;
  for (const auto* list : {&c.inputs, &c.outputs}) {
    for (const Column& column : *list) text += ".reg ." + column.type + " " + column.name + ";\n";
  }
  text += "ld.param.u64 %base, [memory];\nmov.u32 %lane, %tid.x;\n";
  uint64_t slot = 0;
  auto move = [&](const Column& column, bool load) {
    bool predicate = column.type == "pred";
    std::string bits = predicate ? "b32" : "b" + std::to_string(bytes_of_type(column.type) * 8);
    std::string reg = predicate ? "%bool" : column.name;
    text += "mad.wide.u32 %at, %lane, 8, %base;\n";
    std::string place = "[%at+" + std::to_string(slot * c.block * 8) + "]";
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
  return module_text(text + "ret;\n}\n");
}

class PtxFile : public testing::TestWithParam<std::string> {};

void check(const std::string& path, bool for_rows) {
  Case c = read_case(path);
  ASSERT_FALSE(c.outputs.empty()) << "a case without an expected output proves nothing";
  std::vector<uint64_t> memory((c.inputs.size() + c.outputs.size()) * c.block, 0);
  uint64_t* at = memory.data();
  for (const Column& column : c.inputs) {
    ASSERT_FALSE(column.values.empty());
    for (uint32_t i = 0; i < c.block; ++i)
      *at++ = bits_of(column.values[std::min<size_t>(i, column.values.size() - 1)], column.type);
  }
  Session session(program_of(c));
  session.for_rows = for_rows;
  ASSERT_EQ(session.load_error, "");
  LaunchOutcome outcome = session.launch("k", {{1, 1, 1}, {c.block, 1, 1}}, session.allow(memory, "memory"));
  ASSERT_EQ(outcome.code, 0) << outcome.text << "\n" << program_of(c);
  for (const Column& column : c.outputs) {
    ASSERT_FALSE(column.values.empty());
    for (uint32_t i = 0; i < column.values.size(); ++i) {
      uint32_t bytes = bytes_of_type(column.type);
      uint64_t mask = bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (bytes * 8)) - 1;
      uint64_t wanted = bits_of(column.values[i], column.type) & mask, seen = at[i] & mask;
      if (column.tolerance > 0 && wanted != seen) {
        double w = column.type == "f64" ? std::bit_cast<double>(wanted) : as_float(static_cast<uint32_t>(wanted));
        double s = column.type == "f64" ? std::bit_cast<double>(seen) : as_float(static_cast<uint32_t>(seen));
        EXPECT_LE(std::fabs(s - w), column.tolerance * std::fabs(w)) << column.name << ", lane " << i;
      } else {
        EXPECT_EQ(seen, wanted) << column.name << ", lane " << i << ": wanted " << column.values[i] << std::hex
                                << ", seen 0x" << seen;
      }
    }
    at += c.block;
  }
}

TEST_P(PtxFile, GivesTheExpectedBits) { check(GetParam(), false); }
TEST_P(PtxFile, GivesTheExpectedBitsWhereRowsFillWarps) { check(GetParam(), true); }

std::vector<std::string> files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_TEST_DATA "/ptx")) {
    if (entry.path().extension() == ".ptx") out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(Files, PtxFile, testing::ValuesIn(files()), [](const auto& given) {
  std::string name = std::filesystem::path(given.param).stem().string();
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

}  // namespace
}  // namespace kiln::engine
