// SPDX-License-Identifier: Apache-2.0
// How is PTX generated from its grammar? Bodies here; what breaks them is in grammar_breaks.cpp.
#include "grammar.h"

#include <fmt/format.h>

#include <utility>

#include "grammar_breaks.h"

namespace kiln::fuzz {
namespace {

using ptx::OperandKind;
using ptx::Type;

constexpr Type kPooled[] = {Type::b16, Type::b32,  Type::b64,    Type::u16, Type::u32,
                            Type::u64, Type::s16,  Type::s32,    Type::s64, Type::f16,
                            Type::f32, Type::f64,  Type::f16x2,  Type::b8,  Type::u8,
                            Type::s8,  Type::bf16, Type::bf16x2, Type::b128};
constexpr uint32_t kPool = 3;  // registers of each type
constexpr std::string_view kSpecials[] = {"%tid.x",  "%ntid.x",     "%ctaid.x",  "%laneid",
                                          "%warpid", "%tid.y",      "%nctaid.x", "%lanemask_lt",
                                          "%tid.z",  "%clusterid.x"};
constexpr uint64_t kNumbers[] = {1,          0,          2,          31,         32,
                                 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 63, ~0ull};
constexpr uint32_t kMemoryBytes = 2048;  // of the buffer that a kernel may touch

class BodyWriter {
 public:
  BodyWriter(Choices& choices, const Recipes& recipes, const Knobs& knobs, Generated& out)
      : choices_(choices), recipes_(recipes), knobs_(knobs), out_(out), left_(knobs.statements) {}

  // `functions`: those that may be called, by number.
  std::string write(bool kernel, uint32_t functions) {
    functions_ = functions;
    apart_ = !kernel;  // who calls may be a part of a warp
    std::string body = registers("");
    if (kernel) body += "ld.param.u64 %base, [memory];\n";
    if (!kernel) body += "ld.param.u64 %base, [p0];\n";
    body += "mov.u32 %small, 0;\n";
    // The engine has none in device functions. Without it, what the launch brings begins at 0.
    if (kernel && choices_.once_in(2)) {
      body += ".shared .align 16 .b8 tile[1024];\n";
      tile_ = "tile";
    }
    shared_ = kernel;
    body += block(0);
    return body + (kernel ? "" : "st.param.b32 [r0], %b32_0;\n") + "ret;\n";
  }

 private:
  static std::string pool_name(Type type, uint32_t i) {
    return fmt::format("%{}_{}", ptx::name_of(type), i);
  }

  // Declared and given a value: what is not written yet could differ from run to run.
  std::string registers(std::string_view only) {
    std::string text;
    if (only.empty()) text += ".reg .b64 %base; .reg .b32 %small; .reg .pred %pred_<3>;\n";
    for (Type type : kPooled) {
      if (!only.empty() && ptx::name_of(type) != only) continue;
      text += fmt::format(".reg .{} %{}_<{}>;\n", ptx::name_of(type), ptx::name_of(type), kPool);
    }
    if (only.empty()) text += "mov.u32 %b32_0, %tid.x;\n";
    for (Type type : kPooled) {
      if (!only.empty() && ptx::name_of(type) != only) continue;
      for (uint32_t i = 0; i < kPool; ++i) text += set_first(type, pool_name(type, i), i);
    }
    if (only.empty())
      text +=
          "setp.ne.u32 %pred_0, %b32_0, 0;\nsetp.lt.u32 %pred_1, %b32_0, 7;\nsetp.eq.u32 %pred_2, "
          "0, 0;\n";
    return text;
  }

  std::string set_first(Type type, const std::string& name, uint32_t i) {
    if (type == Type::b32 && i == 0) return "mov.u32 %b32_0, %tid.x;\n";
    const uint64_t bits = choices_.of(kNumbers);
    switch (ptx::bytes_of(type)) {
      case 1:
        return fmt::format("cvt.u8.u32 {}, {};\n", name, bits & 0x7f);
      case 2:
        return fmt::format("mov.b16 {}, {};\n", name, bits & 0x7fff);
      case 4:
        return fmt::format("mov.b32 {}, 0x{:x};\n", name, bits & 0xffffffff);
      case 8:
        return fmt::format("mov.b64 {}, 0x{:x};\n", name, bits);
      default:
        return fmt::format("mov.b128 {}, {{%b64_0, %b64_1}};\n", name);  // %base has no value yet
    }
  }

  std::string block(uint32_t depth) {
    // The same names in every scope: each means its own.
    std::string text;
    const uint32_t here = 1 + choices_.below(8);
    const bool loops = choices_.once_in(3);
    const bool apart_before = std::exchange(apart_, apart_ || loops);
    if (loops) text += "BACK:\n";
    for (uint32_t i = 0; i < here && left_ > 0 && choices_.left(); ++i) {
      --left_;
      text += statement(depth);
    }
    if (loops)
      text +=
          fmt::format("@{}%pred_{} bra BACK;\n", choices_.once_in(2) ? "!" : "", choices_.below(3));
    text += "AHEAD:\n";
    apart_ = apart_before;
    return text;
  }

  std::string statement(uint32_t depth) {
    switch (choices_.below(20)) {
      case 8:
      case 9:
        return element();
      case 16:
      case 17:
      case 18:
      case 19:
        return depth < knobs_.depth && counting_ < 3 ? counted(depth) : instruction();
      case 10:
      case 11:
        return depth < knobs_.depth ? scope(depth) : instruction();
      case 12:
        apart_ = true;
        return fmt::format("@%pred_{} bra{} AHEAD;\n", choices_.below(3),
                           choices_.once_in(4) ? ".uni" : "");
      case 13:
        return functions_ ? call() : instruction();
      case 14:
        return table();
      case 15:
        return choices_.once_in(2)
                   ? fmt::format(".loc 1 {} {}\n", choices_.below(999), choices_.below(9))
                   : memory_access();
      default:
        return instruction();
    }
  }

  // Its end is known: what is in it runs compiled.
  std::string counted(uint32_t depth) {
    const uint32_t rounds = 2 + choices_.below(20);
    ++counting_;
    const std::string body = block(depth + 1);
    --counting_;
    return "{\n.reg .b32 %round; .reg .pred %more;\nmov.u32 %round, 0;\nROUND:\n" + body +
           fmt::format("add.u32 %round, %round, 1;\nsetp.lt.u32 %more, %round, {};\n", rounds) +
           "@%more bra ROUND;\n}\n";
  }

  // Of an array, where every lane has an index of its own, or some have the same.
  std::string element() {
    const Type type = choices_.of(kPooled);
    const uint32_t bytes = ptx::bytes_of(type);
    const uint32_t room = shared_ && choices_.once_in(2) ? 1024 : kMemoryBytes;
    const bool beyond = choices_.once_in(16), loads = choices_.once_in(2);
    std::string text = fmt::format(
        "{{\n.reg .b32 %at; .reg .b64 %far;\nand.b32 %at, %b32_{}, 0x{:x};\n"
        "mul.lo.u32 %at, %at, {};\n",
        choices_.below(kPool), (beyond ? 2 : 1) * room / bytes - 1, bytes);
    std::string address = "[%far]";
    if (room == 1024) {
      text += fmt::format("mov.u32 %small, {};\nadd.u32 %at, %at, %small;\nmov.u32 %small, 0;\n",
                          choices_.once_in(2) ? tile_ : "more");
      address = "[%at]";
    } else {
      text += "cvt.u64.u32 %far, %at;\nadd.s64 %far, %base, %far;\n";
    }
    if (choices_.once_in(3)) text += fmt::format("@%pred_{} ", choices_.below(3));
    const std::string where = room == 1024 ? "shared" : "global";
    const std::string value = pool_name(type, choices_.below(kPool));
    text += loads ? fmt::format("ld.{}.b{} {}, {};\n", where, 8 * bytes, value, address)
                  : fmt::format("st.{}.b{} {}, {};\n", where, 8 * bytes, address, value);
    return text + "}\n";
  }

  std::string scope(uint32_t depth) {
    std::string text = "{\n";
    if (choices_.once_in(3)) text += registers(ptx::name_of(choices_.of(kPooled)));
    if (choices_.once_in(4))
      text += fmt::format(".local .align 8 .b8 room[{}];\n", 8 + 8 * choices_.below(16));
    return text + block(depth + 1) + "}\n";
  }

  std::string call() {
    const uint32_t target = choices_.below(functions_);
    std::string text = "{\n.param .b64 p0;\n.param .b32 p1;\n.param .b32 r0;\n";
    text += "st.param.b64 [p0], %base;\nst.param.b32 [p1], %b32_1;\n";
    if (choices_.once_in(3)) {
      out_.repeatable = false;  // the address of a function
      text += fmt::format(
          "mov.u64 %b64_0, f{};\nP: .callprototype (.param .b32 _) _ (.param .b64 _, .param .b32 "
          "_);\n"
          "call (r0), %b64_0, (p0, p1), P;\n",
          target);
    } else {
      text += fmt::format("call (r0), f{}, (p0, p1);\n", target);
    }
    return text + "ld.param.b32 %b32_2, [r0];\n}\n";
  }

  std::string table() {
    const bool apart_before = std::exchange(apart_, true);
    std::string text = fmt::format(
        "{{\nT: .branchtargets ONE, TWO, AHEAD;\nrem.u32 %u32_0, %b32_0, 3;\nbrx.idx %u32_0, T;\n"
        "ONE: {}TWO: {}AHEAD:\n}}\n",
        instruction(), instruction());
    apart_ = apart_before;
    return text;
  }

  std::string memory_access() {
    const bool load = choices_.once_in(2);
    const uint32_t at = 8 * choices_.below(kMemoryBytes / 8 + (choices_.once_in(16) ? 8 : 0));
    const Type type = choices_.of(kPooled);
    const std::string address = shared_ && choices_.once_in(3)
                                    ? fmt::format("[{}+{}]", at % 3 ? tile_ : "more", at % 1024)
                                    : fmt::format("[%base+{}]", at);
    const std::string_view space = address[1] == '%' ? "global" : "shared";
    const std::string value = pool_name(type, choices_.below(kPool));
    const std::string bits = fmt::format("b{}", 8 * ptx::bytes_of(type));
    return load ? fmt::format("ld.{}.{} {}, {};\n", space, bits, value, address)
                : fmt::format("st.{}.{} {}, {};\n", space, bits, address, value);
  }

  std::string instruction() {
    if (recipes_.all().empty()) return "";
    const Recipe* chosen = &choices_.of(recipes_.all());
    // What waits for others waits for ever in most texts, and the engine notices that by the clock.
    if (waits(*chosen->instruction) && !choices_.once_in(16)) chosen = &recipes_.all().front();
    if (reads_warp(*chosen->instruction) && apart_) chosen = &recipes_.all().front();
    const Recipe& recipe = *chosen;
    const ptx::Instruction& ins = *recipe.instruction;
    std::string text;
    if (choices_.once_in(6) && !reads_warp(ins))
      text += fmt::format("@{}%pred_{} ", choices_.once_in(2) ? "!" : "", choices_.below(3));
    text += std::string(ins.mnemonic) + modifiers(ins, ptx::forms()[recipe.form]);
    for (size_t i = 0; i < ins.operands.size(); ++i)
      text += (i ? ", " : " ") + operand(ins.operands[i], *recipe.body);
    return text + ";\n";
  }

  static bool waits(const ptx::Instruction& ins) {
    return ins.mnemonic == "bar" || ins.mnemonic == "barrier" || ins.has("try_wait") ||
           ins.has("test_wait");
  }

  // PTX does not say what these do for a part of a warp: they read the registers of all its lanes.
  static bool reads_warp(const ptx::Instruction& ins) {
    return ins.mnemonic.find("mma") != ins.mnemonic.npos ||
           ins.mnemonic.find("matrix") != ins.mnemonic.npos;
  }

  // Mostly as in the recipe; now and then others that the form allows.
  std::string modifiers(const ptx::Instruction& ins, const ptx::Form& form) {
    std::string text;
    if (!choices_.once_in(40)) {
      for (std::string_view modifier : ins.modifiers) text += "." + std::string(modifier);
      return text;
    }
    for (std::string_view word : words_of(form.modifiers, ' ')) {
      if (word.ends_with('?')) {
        if (choices_.once_in(2)) continue;
        word.remove_suffix(1);
      }
      std::vector<std::string_view> one_of = words_of(word, '|');
      if (word == "T") one_of = words_of(form.types, ' ');
      if (word == "U") one_of = words_of(form.other_types, ' ');
      if (one_of.empty()) continue;
      std::string chosen(choices_.of(one_of));
      if (size_t star = chosen.find('*'); star != chosen.npos) chosen.replace(star, 1, "8");
      text += "." + chosen;
    }
    return text;
  }

  static std::vector<std::string_view> words_of(std::string_view text, char separator) {
    std::vector<std::string_view> out;
    while (!text.empty()) {
      const size_t end = text.find(separator);
      if (end != 0) out.push_back(text.substr(0, end));
      text = end == text.npos ? "" : text.substr(end + 1);
    }
    return out;
  }

  std::string operand(const ptx::Operand& o, const ptx::Body& body) {
    switch (o.kind) {
      case OperandKind::Register:
        return register_of(body.registers[o.reg].type) +
               (o.part ? fmt::format(".b{}", choices_.below(4)) : "");
      case OperandKind::Predicate:
        return fmt::format("{}%pred_{}", o.negated ? "!" : "", choices_.below(3));
      case OperandKind::Integer:
        return choices_.once_in(4) ? number() : fmt::format("0x{:x}", o.bits);
      case OperandKind::Float:
        return o.wide ? fmt::format("0d{:016X}", choices_.bits())
                      : fmt::format("0f{:08X}", choices_.bits() & 0xffffffff);
      case OperandKind::Special:
        return std::string(choices_.of(kSpecials));
      case OperandKind::Vector:
        return "{" + list(o.elements, body) + "}";
      case OperandKind::Address:
        return address(o, body);
      default:
        return "_";
    }
  }

  std::string list(const std::vector<ptx::Operand>& operands, const ptx::Body& body) {
    std::string text;
    for (const ptx::Operand& one : operands)
      text += (text.empty() ? "" : ", ") + operand(one, body);
    return text;
  }

  std::string address(const ptx::Operand& o, const ptx::Body& body) {
    std::string base = choices_.once_in(32) ? number() : "%base";
    if (o.base_is_register && ptx::bytes_of(body.registers[o.reg].type) == 4)
      base = shared_ && choices_.once_in(4) ? tile_ : "%small";
    if (base[0] != '0') base += fmt::format("+{}", 16 * choices_.below(kMemoryBytes / 32));
    return "[" + base + (o.elements.empty() ? "" : ", " + list(o.elements, body)) + "]";
  }

  std::string register_of(Type type) {
    for (Type known : kPooled) {
      if (known == type) return pool_name(type, choices_.below(kPool));
    }
    const Type plain[] = {Type::b8, Type::b16, Type::b32, Type::b64, Type::b128};
    for (Type other : plain) {
      if (ptx::bytes_of(other) == ptx::bytes_of(type))
        return pool_name(other, choices_.below(kPool));
    }
    return "%b32_0";
  }

  std::string number() { return fmt::format("0x{:x}", choices_.of(kNumbers)); }

  Choices& choices_;
  const Recipes& recipes_;
  const Knobs& knobs_;
  Generated& out_;
  uint32_t left_;
  uint32_t functions_ = 0;
  uint32_t counting_ = 0;  // loops around
  bool shared_ = false;
  bool apart_ = false;              // some lanes of a warp may be elsewhere
  std::string_view tile_ = "more";  // shared memory that is there in any launch, if there is some
};

std::string variables(Choices& choices, Generated& out) {
  std::string text;
  for (uint32_t i = choices.once_in(4) ? choices.below(3) : 0; i > 0; --i) {
    out.repeatable = false;  // later variables may hold the address of an earlier one
    text += fmt::format(".global .align 8 .b32 v{}[{}] = {{0x{:x}, {{2}}}};\n", i,
                        2 + choices.below(9), choices.of(kNumbers) & 0xffffffff);
    text += fmt::format(".const .align 8 .u64 c{}[2] = {{v{}+4, generic(v{})}};\n", i, i, i);
  }
  return text;
}

}  // namespace

Generated generate_ptx(Choices& choices, const Recipes& recipes, const Knobs& knobs) {
  Generated out;
  out.repeatable = true;
  out.text =
      ".version 9.0\n.target sm_90a\n.address_size 64\n.file 1 \"a.cu\"\n"
      ".extern .shared .align 16 .b8 more[];\n" +
      variables(choices, out);
  const uint32_t functions = choices.below(knobs.functions + 1);
  for (uint32_t i = 0; i < functions; ++i) {
    // A function may call itself and those before it: recursion ends at the engine's limit.
    const uint32_t callable = choices.once_in(8) ? functions : i;
    out.text += fmt::format(".func (.param .b32 r0) f{}(.param .b64 p0, .param .b32 p1);\n", i);
    out.text +=
        fmt::format(".func (.param .b32 r0) f{}(.param .b64 p0, .param .b32 p1)\n{{\n{}}}\n", i,
                    BodyWriter(choices, recipes, knobs, out).write(false, callable));
  }
  for (uint32_t i = 0; i < knobs.kernels; ++i) {
    out.text += fmt::format(".visible .entry k{}(.param .u64 memory)\n{{\n{}}}\n", i,
                            BodyWriter(choices, recipes, knobs, out).write(true, functions));
  }
  for (std::string_view clock : {"clock", "globaltimer", "%smid", "nanosleep", "activemask"}) {
    if (out.text.find(clock) != out.text.npos) out.repeatable = false;
  }
  if (knobs.may_break && choices.once_in(4)) {
    out.broken = true;
    out.repeatable = false;
    break_ptx(choices, knobs, out.text);
  }
  return out;
}

}  // namespace kiln::fuzz
