// SPDX-License-Identifier: Apache-2.0
// How does one thread after the other run? A switch over decoded instructions on an array of 64-bit
// registers.
#include "engine/bench/scalar.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <map>
#include <vector>

#include "engine/numbers/numeric.h"
#include "ptx/parser.h"

namespace kiln::engine {
namespace {

enum class Code : uint8_t {
  Move,
  WidenSigned,
  Add32,
  Add64,
  Shift64,
  MulWide,
  AddFloat,
  MulFloat,
  FmaFloat,
  Less,
  GreaterOrEqual,
  Branch,
  BranchIf,
  Load,
  Store,
  Return
};

struct Step {
  Code code;
  bool negated = false;
  uint32_t d = 0, a = 0, b = 0, c = 0, guard = 0, target = 0;
  int64_t offset = 0;
};

struct Decoder {
  const ptx::Body& body;
  const ptx::Function& function;
  std::vector<uint64_t> registers;  // those of the body, then constants and special registers
  std::map<std::string_view, uint32_t> specials;
  std::vector<Step> steps;

  uint32_t constant(uint64_t bits) {
    registers.push_back(bits);
    return static_cast<uint32_t>(registers.size() - 1);
  }
  uint32_t read(const ptx::Operand& o) {
    if (o.kind == ptx::OperandKind::Special) {
      auto [at, added] = specials.try_emplace(o.name, 0);
      if (added) at->second = constant(0);
      return at->second;
    }
    return o.kind == ptx::OperandKind::Integer || o.kind == ptx::OperandKind::Float
               ? constant(o.bits)
               : o.reg;
  }

  bool decode(const ptx::Instruction& ins, std::span<const uint64_t> arguments) {
    const std::string text = ins.text();
    Step step{};
    const auto& o = ins.operands;
    if (text == "ld.param.u64") {
      for (size_t i = 0; i < function.parameters.size(); ++i) {
        if (function.parameters[i].name == o[1].name) registers[o[0].reg] = arguments[i];
      }
      return true;  // the same for all threads: filled once
    }
    if (ins.mnemonic == "bra") {
      step.code = ins.guard == ptx::kNoRegister ? Code::Branch : Code::BranchIf;
      step.guard = ins.guard == ptx::kNoRegister ? 0 : ins.guard;
      step.negated = ins.guard_negated;
      step.target = body.labels.at(o[0].name);  // of an instruction; made a step below
    } else if (ins.mnemonic == "ret") {
      step.code = Code::Return;
    } else if (text == "ld.global.f32" || text == "ld.global.nc.f32") {
      step = {Code::Load, false, o[0].reg, o[1].reg, 0, 0, 0, 0, o[1].offset};
    } else if (text == "st.global.f32") {
      step = {Code::Store, false, 0, o[0].reg, o[1].reg, 0, 0, 0, o[0].offset};
    } else {
      static const std::map<std::string_view, Code> kCodes = {
          {"mov.u32", Code::Move},
          {"mov.u64", Code::Move},
          {"cvta.to.global.u64", Code::Move},
          {"cvt.u64.u32", Code::Move},
          {"cvt.s64.s32", Code::WidenSigned},
          {"add.s32", Code::Add32},
          {"add.s64", Code::Add64},
          {"shl.b64", Code::Shift64},
          {"mul.wide.u32", Code::MulWide},
          {"add.f32", Code::AddFloat},
          {"add.rn.f32", Code::AddFloat},
          {"mul.f32", Code::MulFloat},
          {"fma.rn.f32", Code::FmaFloat},
          {"setp.lt.s64", Code::Less},
          {"setp.ge.s64", Code::GreaterOrEqual}};
      auto code = kCodes.find(text);
      if (code == kCodes.end() || ins.guard != ptx::kNoRegister) return false;
      step.code = code->second;
      step.d = o[0].reg;
      step.a = read(o[1]);
      if (o.size() > 2) step.b = read(o[2]);
      if (o.size() > 3) step.c = read(o[3]);
    }
    steps.push_back(step);
    return true;
  }
};

struct Machine {
  std::span<const KilnRegion> regions;
  const KilnRegion* last = nullptr;

  bool allowed(uint64_t address) {
    auto holds = [&](const KilnRegion& r) {
      const auto begin = reinterpret_cast<uint64_t>(r.begin);
      return address >= begin && address - begin + 4 <= r.bytes;
    };
    if (last && holds(*last)) return true;
    for (const KilnRegion& r : regions) {
      if (!holds(r)) continue;
      last = &r;
      return true;
    }
    return false;
  }
};

float real(uint64_t bits) { return as_float(static_cast<uint32_t>(bits)); }

// False: an address out of bounds.
bool run_thread(const Step* steps, uint64_t* r, Machine& machine) {
  for (const Step* s = steps;; ++s) {
    switch (s->code) {
      case Code::Move:
        r[s->d] = r[s->a];
        break;
      case Code::WidenSigned:
        r[s->d] = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(r[s->a])));
        break;
      case Code::Add32:
        r[s->d] = static_cast<uint32_t>(r[s->a] + r[s->b]);
        break;
      case Code::Add64:
        r[s->d] = r[s->a] + r[s->b];
        break;
      case Code::Shift64:
        r[s->d] = r[s->b] > 63 ? 0 : r[s->a] << r[s->b];
        break;
      case Code::MulWide:
        r[s->d] = (r[s->a] & 0xffffffffu) * (r[s->b] & 0xffffffffu);
        break;
      case Code::AddFloat:
        r[s->d] = as_bits(canonical(real(r[s->a]) + real(r[s->b])));
        break;
      case Code::MulFloat:
        r[s->d] = as_bits(canonical(real(r[s->a]) * real(r[s->b])));
        break;
      case Code::FmaFloat:
        r[s->d] = as_bits(canonical(std::fma(real(r[s->a]), real(r[s->b]), real(r[s->c]))));
        break;
      case Code::Less:
        r[s->d] = static_cast<int64_t>(r[s->a]) < static_cast<int64_t>(r[s->b]);
        break;
      case Code::GreaterOrEqual:
        r[s->d] = static_cast<int64_t>(r[s->a]) >= static_cast<int64_t>(r[s->b]);
        break;
      case Code::BranchIf:
        if ((r[s->guard] != 0) == s->negated) break;
        [[fallthrough]];
      case Code::Branch:
        s = steps + s->target - 1;
        break;
      case Code::Load: {
        const uint64_t address = r[s->a] + static_cast<uint64_t>(s->offset);
        if (!machine.allowed(address)) return false;
        uint32_t value;
        std::memcpy(&value, reinterpret_cast<const void*>(address), 4);
        r[s->d] = value;
        break;
      }
      case Code::Store: {
        const uint64_t address = r[s->a] + static_cast<uint64_t>(s->offset);
        if (!machine.allowed(address)) return false;
        const uint32_t value = static_cast<uint32_t>(r[s->b]);
        std::memcpy(reinterpret_cast<void*>(address), &value, 4);
        break;
      }
      case Code::Return:
        return true;
    }
  }
}

}  // namespace

Status run_scalar(const ptx::Module& module, const char* kernel, uint32_t blocks, uint32_t threads,
                  std::span<const uint64_t> arguments, std::span<const KilnRegion> regions) {
  const ptx::Function* function = module.find(kernel);
  if (!function)
    return Error{Fault::Work, "run one thread after the other", fmt::format("no kernel {}", kernel),
                 ""};
  TRY(ptx::Body body, ptx::parse_body(module, *function));
  Decoder decoder{body, *function, std::vector<uint64_t>(body.registers.size()), {}, {}};
  std::vector<uint32_t> first_step;  // by instruction
  for (const ptx::Instruction& ins : body.instructions) {
    first_step.push_back(static_cast<uint32_t>(decoder.steps.size()));
    if (!decoder.decode(ins, arguments)) {
      return Error{Fault::Work, "run one thread after the other",
                   fmt::format("'{}' is not known", ins.text()), ""};
    }
  }
  for (Step& step : decoder.steps) {
    if (step.code == Code::Branch || step.code == Code::BranchIf)
      step.target = first_step[step.target];
  }
  std::vector<uint64_t>& r = decoder.registers;
  auto set = [&](std::string_view name, uint64_t value) {
    if (auto at = decoder.specials.find(name); at != decoder.specials.end()) r[at->second] = value;
  };
  set("ntid.x", threads);
  Machine machine{regions};
  for (uint32_t block = 0; block < blocks; ++block) {
    set("ctaid.x", block);
    auto tid = decoder.specials.find("tid.x");
    for (uint32_t thread = 0; thread < threads; ++thread) {
      if (tid != decoder.specials.end()) r[tid->second] = thread;
      if (!run_thread(decoder.steps.data(), r.data(), machine)) {
        return Error{
            Fault::Work, "run one thread after the other",
            fmt::format("thread {} of block {} reads or writes out of bounds", thread, block), ""};
      }
    }
  }
  return {};
}

}  // namespace kiln::engine
