// SPDX-License-Identifier: Apache-2.0
// How is each part of a module written?
#include "ptx/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ptx/parser.h"
#include "ptx/view_check.h"

namespace kiln::ptx {
namespace {

// A name of an inner scope has an '@', which no name in PTX has.
std::string name_in_text(std::string_view name) {
  std::string out(name);
  if (size_t at = out.find('@'); at != out.npos) out.replace(at, 1, "$scope");
  return out;
}

std::string with_offset(int64_t offset) { return offset ? fmt::format("{:+}", offset) : ""; }

std::string register_name(uint32_t reg) { return fmt::format("%k{}", reg); }

std::string_view space_name(Space space) {
  switch (space) {
    case Space::Global:
      return ".global";
    case Space::Shared:
      return ".shared";
    case Space::Local:
      return ".local";
    case Space::Const:
      return ".const";
    default:
      return ".param";
  }
}

std::string joined(const std::vector<Operand>& list, const Body& body) {
  std::string out;
  for (const Operand& one : list) out += (out.empty() ? "" : ", ") + print(one, body);
  return out;
}

std::string print(const Variable& v) {
  std::string out = fmt::format("{} .align {} ", space_name(v.space), v.align);
  if (v.managed) out += ".attribute(.managed) ";
  if (v.vector > 1) out += fmt::format(".v{} ", v.vector);
  out += fmt::format(".{} {}", name_of(v.type), name_in_text(v.name));
  if (v.unsized) {
    out += "[]";
  } else if (v.count != 1) {
    out += fmt::format("[{}]", v.count);
  }
  if (v.init.empty()) return out;
  std::string values;
  for (const InitialValue& value : v.init) {
    std::string one = fmt::format("0x{:x}", value.bits);
    if (!value.symbol.empty()) {
      one = value.generic ? fmt::format("generic({})", name_in_text(value.symbol))
                          : name_in_text(value.symbol);
      one += with_offset(static_cast<int64_t>(value.bits));
    }
    values += (values.empty() ? "" : ", ") + one;
  }
  return out + (v.count != 1 || v.vector != 1 || v.init.size() != 1 ? " = {" + values + "}"
                                                                    : " = " + values);
}

std::string print(const std::vector<Variable>& parameters) {
  std::string out;
  for (const Variable& v : parameters) out += (out.empty() ? "" : ", ") + print(v);
  return "(" + out + ")";
}

std::string location(const SourceLine& at) {
  std::string out = fmt::format(".loc {} {} 0\n", at.outer_file, at.outer_line);
  if (at.file == at.outer_file && at.line == at.outer_line) return out;
  return out + fmt::format(".loc {} {} 0, function_name $inlined, inlined_at {} {} 0\n", at.file,
                           at.line, at.outer_file, at.outer_line);
}

bool same(const SourceLine& a, const SourceLine& b) {
  return a.file == b.file && a.line == b.line && a.outer_file == b.outer_file &&
         a.outer_line == b.outer_line;
}

std::string signature(const Function& f) {
  std::string out = f.is_extern ? ".extern " : f.is_weak ? ".weak " : ".visible ";
  out += f.is_entry ? ".entry " : ".func ";
  if (!f.results.empty()) out += print(f.results) + " ";
  out += std::string(f.name) + print(f.parameters) + "\n";
  const uint32_t *t = f.required_threads, *c = f.required_cluster;
  if (f.max_threads) out += fmt::format(".maxntid {}\n", f.max_threads);
  if (t[0]) out += fmt::format(".reqntid {}, {}, {}\n", t[0], t[1], t[2]);
  if (c[0]) out += fmt::format(".reqnctapercluster {}, {}, {}\n", c[0], c[1], c[2]);
  if (f.noreturn) out += ".noreturn\n";
  return out;
}

}  // namespace

std::string print(const Operand& o, const Body& body) {
  constexpr std::string_view kParts[] = {"", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
  switch (o.kind) {
    case OperandKind::Register:
      return register_name(o.reg) + std::string(kParts[o.part]);
    case OperandKind::Predicate:
      return (o.negated ? "!" : "") + register_name(o.reg);
    case OperandKind::Integer:
      return fmt::format("0x{:x}", o.bits);
    case OperandKind::Float:
      return o.wide ? fmt::format("0d{:016X}", o.bits) : fmt::format("0f{:08X}", o.bits);
    case OperandKind::Special:
      return "%" + std::string(o.name);
    case OperandKind::Symbol:
      return name_in_text(o.name) + with_offset(o.offset);
    case OperandKind::Vector:
      return "{" + joined(o.elements, body) + "}";
    case OperandKind::Address: {
      std::string base = o.base_is_register ? register_name(o.reg) + with_offset(o.offset)
                         : o.name.empty()   ? fmt::format("{}", o.offset)
                                            : name_in_text(o.name) + with_offset(o.offset);
      return "[" + base + (o.elements.empty() ? "" : ", " + joined(o.elements, body)) + "]";
    }
    default:
      return "_";
  }
}

std::string print(const Instruction& ins, const Body& body) {
  std::string out;
  if (ins.guard != kNoRegister)
    out = fmt::format("@{}{} ", ins.guard_negated ? "!" : "", register_name(ins.guard));
  if (ins.mnemonic == "kiln" && ins.operands.size() == 4) {
    return view_check_text(print(ins.operands[0], body), print(ins.operands[1], body),
                           print(ins.operands[2], body), ins.operands[3].bits);
  }
  out += ins.text();
  if (ins.mnemonic != "call")
    return out + (ins.operands.empty() ? "" : " " + joined(ins.operands, body)) + ";";
  const auto first = ins.operands.begin(), target = first + ins.call_results;
  if (ins.call_results) out += " (" + joined({first, target}, body) + "),";
  out += " " + print(*target, body);
  out += ", (" + joined({target + 1, ins.operands.end()}, body) + ")";
  if (!ins.prototype.empty()) out += ", " + name_in_text(ins.prototype);
  return out + ";";
}

std::string print(const Body& body) {
  std::string out;
  for (uint32_t i = 0; i < body.registers.size(); ++i)
    out += fmt::format(".reg .{} {};\n", name_of(body.registers[i].type), register_name(i));
  for (const Variable& v : body.variables) out += print(v) + ";\n";
  std::vector<std::pair<uint32_t, std::string_view>> labels;
  for (const auto& [name, at] : body.labels) labels.emplace_back(at, name);
  std::sort(labels.begin(), labels.end());
  std::vector<std::string> lists;
  for (const auto& [name, targets] : body.branch_targets) {
    std::string line = fmt::format("{}: .branchtargets ", name_in_text(name));
    for (size_t i = 0; i < targets.size(); ++i) line += (i ? ", " : "") + name_in_text(targets[i]);
    lists.push_back(line + ";\n");
  }
  for (const auto& [name, prototype] : body.prototypes) {
    std::string results = prototype.results.empty() ? "" : print(prototype.results) + " ";
    lists.push_back(fmt::format("{}: .callprototype {}_ {};\n", name_in_text(name), results,
                                print(prototype.parameters)));
  }
  std::sort(lists.begin(), lists.end());
  for (const std::string& line : lists) out += line;
  auto label = labels.begin();
  SourceLine source;
  for (uint32_t i = 0; i <= body.instructions.size(); ++i) {
    for (; label != labels.end() && label->first == i; ++label)
      out += name_in_text(label->second) + ":\n";
    if (i == body.instructions.size()) break;
    const Instruction& ins = body.instructions[i];
    if (!same(ins.source, source)) out += location(ins.source);
    source = ins.source;
    out += print(ins, body) + "\n";
  }
  return out;
}

Result<std::string> print(const Module& module) {
  std::string out = fmt::format(".version {}.{}\n", module.version_major, module.version_minor);
  if (!module.target.empty()) out += fmt::format(".target {}\n", module.target);
  out += ".address_size 64\n";
  for (const auto& [index, name] : module.files)
    out += fmt::format(".file {} \"{}\"\n", index, name);
  for (const Variable& v : module.variables) {
    out += (v.is_extern ? ".extern " : ".visible ") + print(v) + ";\n";
  }
  for (const Function& function : module.functions) {
    out += signature(function);
    if (function.body_text.empty()) {
      out += ";\n";
      continue;
    }
    TRY(Body body, parse_body(module, function));
    out += "{\n" + print(body) + "}\n";
  }
  std::vector<std::string> aliases;
  for (const auto& [name, target] : module.aliases)
    aliases.push_back(fmt::format(".alias {}, {};\n", name, target));
  std::sort(aliases.begin(), aliases.end());
  for (const std::string& line : aliases) out += line;
  return out;
}

}  // namespace kiln::ptx
