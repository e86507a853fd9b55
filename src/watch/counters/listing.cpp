// SPDX-License-Identifier: Apache-2.0
// The decoder keeps no operands: the function's text is parsed again, once per program.
#include "watch/counters/listing.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "engine/machine/fault.h"
#include "ptx/forms.h"
#include "ptx/parser.h"
#include "ptx/print.h"

namespace kiln::watch {
namespace {

using results::Metric;

// "add.cu:12", as messages of the engine have it.
std::string place(const ptx::Module& module, uint32_t file, uint32_t line) {
  if (file == 0) return "";
  const std::string path = module.file_name(file);
  return path.substr(path.rfind('/') + 1) + ":" + std::to_string(line);
}

template <class Then>
void each_register(const ptx::Operand& operand, Then then) {
  using enum ptx::OperandKind;
  if (operand.kind == Register || operand.kind == Predicate ||
      (operand.kind == Address && operand.base_is_register))
    then(operand.reg);
  for (const ptx::Operand& element : operand.elements) each_register(element, then);
}

// How often each register is read; what stands first and is written does not count.
std::vector<uint32_t> reads_of(const ptx::Body& body) {
  std::vector<uint32_t> reads(body.registers.size(), 0);
  for (const ptx::Instruction& ins : body.instructions) {
    const auto match = ptx::match_form(ins);
    if (ins.guard != ptx::kNoRegister) ++reads[ins.guard];
    for (const ptx::Operand& operand : ins.operands)
      each_register(operand, [&](uint32_t reg) { ++reads[reg]; });
    if (!match) continue;
    ptx::each_written(ptx::forms()[match->form], ins, [&](const ptx::Operand& operand) {
      if (operand.kind != ptx::OperandKind::Address)
        each_register(operand, [&](uint32_t reg) { --reads[reg]; });
    });
  }
  return reads;
}

// PTX and SASS have no reduction that exchanges or compares: these stay atomics, read or not.
bool has_reduction(const ptx::Instruction& ins) {
  return std::none_of(ins.modifiers.begin(), ins.modifiers.end(),
                      [](std::string_view word) { return word == "exch" || word == "cas"; });
}

bool result_is_unread(const ptx::Instruction& ins, const std::vector<uint32_t>& reads) {
  if (ins.operands.empty()) return true;
  const ptx::Operand& to = ins.operands[0];
  if (to.kind == ptx::OperandKind::Sink) return true;
  if (to.kind == ptx::OperandKind::Address) return false;  // has no result
  bool read = false;
  each_register(to, [&](uint32_t reg) { read |= reads[reg] > 0; });
  return !read;
}

// "m16n8k16": what a warp multiplies. A warpgroup's product has m64, and four warps share it.
uint32_t matrix_flops(const ptx::Instruction& ins) {
  for (std::string_view word : ins.modifiers) {
    uint32_t sizes[3] = {};
    size_t found = 0;
    const char *at = word.data(), *end = at + word.size();
    for (char letter : {'m', 'n', 'k'}) {
      if (at == end || *at != letter) break;
      const auto [next, error] = std::from_chars(at + 1, end, sizes[found]);
      if (error != std::errc()) break;
      at = next;
      ++found;
    }
    if (found == 3 && at == end)
      return 2 * sizes[0] * sizes[1] * sizes[2] / (sizes[0] == 64 ? 4 : 1);
  }
  return 0;
}

// "f16x2" has two elements.
void find_flops(const ptx::Instruction& ins, const ptx::FormMatch& match, ListedInstruction* out) {
  const ptx::Form& form = ptx::forms()[match.form];
  if (out->kind == ptx::Kind::Matrix) {
    out->flops_of = Metric::flops_tensor;
    out->flops = matrix_flops(ins);
    return;
  }
  if (!form.has(ptx::kFlop) && !form.has(ptx::kFma)) return;
  std::string_view type = "f32";
  for (std::string_view word : ins.modifiers) {
    if (word.find('f') != word.npos && word.find_first_of("0123456789") != word.npos) {
      type = word;
      break;
    }
  }
  out->flops = (form.has(ptx::kFma) ? 2 : 1) * (type.ends_with("x2") ? 2 : 1);
  out->flops_of = type.find("16") != type.npos   ? Metric::flops_fp16
                  : type.find("64") != type.npos ? Metric::flops_fp64
                                                 : Metric::flops_fp32;
}

const ptx::Operand* address_of(const ptx::Instruction& ins) {
  for (const ptx::Operand& operand : ins.operands) {
    if (operand.kind == ptx::OperandKind::Address) return &operand;
  }
  return nullptr;
}

// Variables of shared memory are neighbours, in an order that ptxas chooses.
bool have_one_base(const ptx::Operand& a, const ptx::Operand& b) {
  return a.base_is_register == b.base_is_register && (!a.base_is_register || a.reg == b.reg);
}
bool are_near(const ptx::Operand& a, const ptx::Operand& b) {
  if (!a.base_is_register && a.name != b.name) return true;
  const int64_t distance = b.offset - a.offset;
  return distance != 0 && distance > -16 && distance < 16;
}

// "ld.shared.f32" and "ld.shared.u32" are one access to ptxas.
bool have_one_width(const ptx::Instruction& a, const ptx::Instruction& b) {
  if (a.mnemonic != b.mnemonic || a.modifiers.size() != b.modifiers.size() || a.modifiers.empty())
    return false;
  return std::equal(a.modifiers.begin(), a.modifiers.end() - 1, b.modifiers.begin()) &&
         a.modifiers.back().substr(1) == b.modifiers.back().substr(1);
}

// Those of one opcode and base within 16 bytes of each other. Whether ptxas joined them, its code
// says; here it is only found out where it could.
void find_mergeable(const ptx::Body& body, std::vector<ListedInstruction>& listed) {
  constexpr size_t kNear = 64;  // instructions; unrolled loops mix the loads of two arrays
  for (size_t i = 0; i < listed.size(); ++i) {
    const ptx::Instruction& ins = body.instructions[i];
    const ptx::Operand* at = address_of(ins);
    if (listed[i].kind != ptx::Kind::Memory || !at) continue;
    const size_t end = std::min(listed.size(), i + kNear);
    for (size_t k = i + 1; k < end; ++k) {
      const ptx::Operand* other = address_of(body.instructions[k]);
      if (!other || listed[k].kind != ptx::Kind::Memory ||
          !have_one_width(body.instructions[k], ins) || !have_one_base(*at, *other))
        continue;
      if (are_near(*at, *other)) listed[i].may_merge = listed[k].may_merge = true;
    }
  }
}

}  // namespace

Listing list_program(const engine::Program& program) {
  Listing out;
  out.program.id = program.serial;
  out.program.name = engine::demangled(program.name);
  auto body = ptx::parse_body(*program.module, *program.function);
  if (!body) return out;
  const std::vector<uint32_t> reads = reads_of(*body);
  for (const ptx::Instruction& ins : body->instructions) {
    results::CounterInstruction listed;
    const ptx::SourceLine& source = ins.source;
    listed.at = place(*program.module, source.file, source.line);
    if (source.outer_file != source.file || source.outer_line != source.line)
      listed.inlined_at = place(*program.module, source.outer_file, source.outer_line);
    listed.ptx_line = ins.line;
    listed.ptx = ptx::print(ins, *body);
    ListedInstruction facts;
    if (const auto match = ptx::match_form(ins)) {
      const ptx::Form& form = ptx::forms()[match->form];
      facts.kind = ptx::kind_of(match->form);
      facts.conditional = ins.guard != ptx::kNoRegister || !form.has(ptx::kGuarded);
      facts.becomes_reduction = has_reduction(ins) && result_is_unread(ins, reads);
      for (const std::string_view word : ins.modifiers)
        facts.rounds |= word.starts_with('f') && word.find_first_of("136") == 1;
      find_flops(ins, *match, &facts);
    }
    listed.kind = ptx::name_of(facts.kind);
    out.program.instructions.push_back(std::move(listed));
    out.instructions.push_back(facts);
  }
  find_mergeable(*body, out.instructions);
  return out;
}

}  // namespace kiln::watch
