// SPDX-License-Identifier: Apache-2.0
// How does PTX text become memory and programs?
#include "engine/decode/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "engine/decode/lowering.h"
#include "ptx/parser.h"

namespace kiln::engine {

namespace {

// A function is decoded inside the first call to it. No compiler produces call chains of this
// length, and the stack is limited.
constexpr uint32_t kMaxDecodingDepth = 256;

}  // namespace

Image::~Image() {
  for (auto& [name, variable] : variables_) heap_.release(variable.at);
  for (auto& [name, variable] : function_variables_) heap_.release(variable.at);
}

Status Image::load(std::string text) {
  text_ = std::move(text);
  TRY(module_, ptx::parse_module(text_));
  uint64_t shared = 0;
  std::vector<const ptx::Variable*> filled;
  for (const ptx::Variable& v : module_.variables) {
    if (v.space == ptx::Space::Shared) {
      shared_[v.name] = &v;
      if (v.unsized || v.is_extern) {
        dynamic_shared_alignment_ = std::max(dynamic_shared_alignment_, v.align);
        continue;
      }
      shared = (shared + v.align - 1) / v.align * v.align;
      shared_offsets_[v.name] = shared;
      shared += v.bytes();
      continue;
    }
    if (v.is_extern && !v.unsized && v.init.empty() && variables_.count(v.name)) continue;
    if (!variables_.count(v.name)) {
      TRY(VariableMemory memory, allocate(v));
      variables_.emplace(v.name, memory);
    }
    filled.push_back(&v);
  }
  common_shared_bytes_ = shared;
  place_shared_of_functions();
  // Values may refer to later variables; all have their memory by now.
  for (const ptx::Variable* v : filled) CHECK_OK(fill(*v, variables_[v->name].at, nullptr));
  loaded_ = true;
  return {};
}

Result<Image::VariableMemory> Image::allocate(const ptx::Variable& v) {
  void* memory = heap_.allocate(v.bytes(), AllocationKind::Variable,
                                std::string(v.name.substr(0, v.name.find('@'))).c_str());
  if (!memory) {
    return Error{Fault::Environment, fmt::format("cannot load the variable {}", v.name),
                 fmt::format("out of memory for {} bytes", v.bytes()),
                 "free some memory, or make the variable smaller"};
  }
  std::memset(memory, 0, v.bytes());
  return VariableMemory{memory, v.bytes()};
}

Status Image::declare_in_function(const ptx::Function& function, const ptx::Variable& v) {
  if (function_variable(function, v.name)) return {};
  TRY(VariableMemory memory, allocate(v));
  const auto made =
      function_variables_.emplace(fmt::format("{}/{}", function.name, v.name), memory).first;
  try {
    return fill(v, memory.at, &function);
  } catch (...) {  // otherwise the next launch would take it for initialised
    heap_.release(memory.at);
    function_variables_.erase(made);
    throw;
  }
}

std::optional<uint64_t> Image::function_variable(const ptx::Function& function,
                                                 std::string_view name) const {
  if (function_variables_.empty()) return std::nullopt;
  auto found = function_variables_.find(fmt::format("{}/{}", function.name, name));
  if (found == function_variables_.end()) return std::nullopt;
  return reinterpret_cast<uint64_t>(found->second.at);
}

Status Image::fill(const ptx::Variable& v, void* memory, const ptx::Function* inside) {
  uint32_t bytes = ptx::bytes_of(v.type);
  auto* to = static_cast<std::byte*>(memory);
  if (v.init.size() * bytes > v.bytes()) {
    return Error{Fault::Work, fmt::format("cannot load the variable {}", v.name),
                 "more values than elements", ""};
  }
  for (const ptx::InitialValue& value : v.init) {
    uint64_t bits = value.bits;
    if (!value.symbol.empty()) {
      if (auto local = inside ? function_variable(*inside, value.symbol) : std::nullopt) {
        bits += *local;
      } else {
        TRY(uint64_t address, symbol_address(value.symbol));
        bits += address;
      }
    }
    std::memcpy(to, &bits, std::min<uint32_t>(bytes, 8));
    to += bytes;
  }
  return {};
}

// Kernels are decoded before their callees, and place their own variables after those of the
// callees. So all variables of device functions get a place before any kernel is decoded. If a body
// cannot be parsed, this is reported when its function is decoded.
void Image::place_shared_of_functions() {
  for (const ptx::Function& function : module_.functions) {
    if (function.is_entry || function.body_text.find(".shared .") == std::string_view::npos)
      continue;
    const Result<ptx::Body> body = ptx::parse_body(module_, function);
    if (!body) continue;
    for (const ptx::Variable& v : body->variables) {
      if (v.space != ptx::Space::Shared || v.unsized) continue;
      uint64_t& end = common_shared_bytes_;
      end = (end + v.align - 1) / v.align * v.align;
      function_shared_.emplace(fmt::format("{}/{}", function.name, v.name), end);
      end += v.bytes();
    }
  }
}

uint64_t Image::shared_offset_in(const ptx::Function& function, std::string_view name) const {
  return function_shared_.at(fmt::format("{}/{}", function.name, name));
}

const Image::VariableMemory* Image::variable(std::string_view name) const {
  auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &found->second;
}

bool Image::is_constant(uint64_t address) const {
  for (const ptx::Variable& v : module_.variables) {
    if (v.space != ptx::Space::Const) continue;
    const VariableMemory* memory = variable(v.name);
    if (memory && address - reinterpret_cast<uint64_t>(memory->at) < memory->bytes) return true;
  }
  return false;
}

const ptx::Variable* Image::shared_variable(std::string_view name) const {
  auto found = shared_.find(name);
  return found == shared_.end() ? nullptr : found->second;
}

uint64_t Image::shared_variable_offset(std::string_view name) const {
  return shared_offsets_.at(name);
}

Result<uint64_t> Image::symbol_address(std::string_view name) {
  if (const VariableMemory* variable = this->variable(name))
    return reinterpret_cast<uint64_t>(variable->at);
  if (const ptx::Function* function = module_.find(name);
      function && !function->body_text.empty()) {
    TRY(const Program* program, this->program(*function, {}));
    uint64_t pointer = reinterpret_cast<uint64_t>(program);
    by_pointer_[pointer] = program;
    return pointer;
  }
  return Error{Fault::Work, "cannot find a symbol",
               fmt::format("the symbol '{}' is not defined", name), ""};
}

// A function pointer is always the address of the plain program. A watched caller runs the watched
// variant, which is decoded at its first call.
const Program* Image::program_at(uint64_t pointer, Variant of_caller) {
  std::lock_guard lock(mutex_);
  auto found = by_pointer_.find(pointer);
  if (found == by_pointer_.end()) return nullptr;
  if (of_caller.events == 0) return found->second;
  auto watched = program(*found->second->function, {false, of_caller.events});
  return watched ? *watched : nullptr;
}

Result<const Program*> Image::program(const ptx::Function& function, Variant variant) {
  Decoded& decoded = programs_[variant.index()][function.name];
  if (decoded.error) return *decoded.error;
  if (decoded.program) return static_cast<const Program*>(decoded.program.get());
  if (decoding_depth_ == kMaxDecodingDepth) {
    return Error{Fault::Work, fmt::format("cannot run {}", function.name),
                 fmt::format("line {}: functions call each other more than {} deep", function.line,
                             kMaxDecodingDepth),
                 ""};
  }
  decoded.round = round_;
  decoded.program = std::make_unique<Program>();
  Program& program = *decoded.program;
  ++decoding_depth_;
  Status status = Lowering(*this, module_, function, variant, program).run();
  --decoding_depth_;
  if (status) {
    // In a watched variant, events are between the Ops that machine code would run as one.
    if (function.is_entry && variant.events == 0) program.tiering = make_tiering(program);
    return static_cast<const Program*>(&program);
  }
  fail(program, status.error());
  return status.error();
}

// Its callers fail too: in a recursion, a caller may already be decoded completely.
void Image::fail(const Program& program, const Error& error) {
  std::vector<const Program*> open{&program};
  while (!open.empty()) {
    const Program* failed = open.back();
    open.pop_back();
    by_pointer_.erase(reinterpret_cast<uint64_t>(failed));
    for (auto& [index, table] : programs_) {
      for (auto& [name, decoded] : table) {
        if (!decoded.program || decoded.error) continue;
        const auto& callees = decoded.program->callees;
        const bool calls = std::find(callees.begin(), callees.end(), failed) != callees.end();
        if (decoded.program.get() != failed && !calls) continue;
        decoded.error = std::make_unique<Error>(error);
        if (calls) open.push_back(decoded.program.get());
      }
    }
  }
}

Result<const Program*> Image::kernel(std::string_view name, Variant variant) {
  std::lock_guard lock(mutex_);
  const ptx::Function* function = module_.find(name);
  if (!function || !function->is_entry || function->body_text.empty()) {
    return Error{Fault::Work, fmt::format("cannot launch {}", name),
                 "the library's PTX has no kernel of this name",
                 "build it with PTX inside: --arch 9.0+PTX"};
  }
  ++round_;
  try {
    return program(*function, variant);
  } catch (...) {
    forget_round();
    throw;
  }
}

// If memory runs out, decoding may stop anywhere, and what it has begun must not count as complete
// the next time. Complete functions are dropped too, because they may call an incomplete one.
void Image::forget_round() noexcept {
  decoding_depth_ = 0;
  for (auto& [index, programs] : programs_) {
    std::erase_if(programs, [&](const auto& entry) { return entry.second.round == round_; });
  }
  std::erase_if(by_pointer_, [&](const auto& entry) {
    const Program* known = entry.second;
    auto holds = [&](const auto& decoded) { return decoded.second.program.get() == known; };
    return std::ranges::none_of(
        programs_, [&](const auto& table) { return std::ranges::any_of(table.second, holds); });
  });
}

namespace {

// Searches the text, because nothing has been decoded yet. If the answer is wrong, the kernel is
// only slower.
bool runs_straight(std::string_view body) {
  constexpr size_t kLongest = 64 << 10;  // longer bodies are not short kernels
  if (body.size() > kLongest) return false;
  for (std::string_view word : {"bar.", "barrier", "call", ".local"}) {
    if (body.find(word) != body.npos) return false;
  }
  constexpr std::string_view kBranch = "bra";
  for (size_t at = body.find(kBranch); at != body.npos; at = body.find(kBranch, at + 1)) {
    const size_t end = body.find(';', at);
    if (end == body.npos) return false;
    const size_t before = body.find_last_of(" \t", end);
    const std::string_view label = body.substr(before + 1, end - before - 1);
    const size_t place = body.find(std::string(label) + ":");
    if (place == body.npos || place < at) return false;
  }
  return true;
}

}  // namespace

bool Kernel::runs_straight() {
  Straight known = straight_.load(std::memory_order_relaxed);
  if (known == Straight::Unknown) {
    const ptx::Function* function = image_.module().find(name_);
    const bool yes = function && engine::runs_straight(function->body_text);
    known = yes ? Straight::Yes : Straight::No;
    straight_.store(known, std::memory_order_relaxed);
  }
  return known == Straight::Yes;
}

Result<const Program*> Kernel::decode(Variant variant) {
  TRY(const Program* program, image_.kernel(name_, variant));
  static_shared_bytes_.store(image_.static_shared_bytes(*program));
  any_.store(program, std::memory_order_release);
  if (variant.index() < Variant::kPlain)
    decoded_[variant.index()].store(program, std::memory_order_release);
  return program;
}

uint64_t Image::static_shared_bytes(const Program& kernel) const {
  uint64_t most = 0;
  std::set<const Program*> seen;
  std::vector<const Program*> open{&kernel};
  while (!open.empty()) {
    const Program* program = open.back();
    open.pop_back();
    if (!seen.insert(program).second) continue;
    most = std::max(most, program->shared_bytes);
    open.insert(open.end(), program->callees.begin(), program->callees.end());
  }
  return most;
}

}  // namespace kiln::engine
