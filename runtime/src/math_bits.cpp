// SPDX-License-Identifier: Apache-2.0
// What does an op that writes to an argument do with a conjugated or negated view (x.conj(),
// z.imag of a conjugated z)? Its kernels know nothing of the view's bit, so the op runs on resolved
// copies, and what it wrote is copied back through the view.
//
// torch has a fallback for such views that reads the written tensor out of the op's first result.
// An op of the form (Tensor a, Tensor(a!) t) -> () has none: the fallback reads past the end of its
// stack and drops a reference too many at each call (torch 2.7 to 2.15).
#include "math_bits.h"

#include <stdlib.h>

#include <new>

#include "dynamic.h"
#include "registry.h"
#include "torch.h"
#include "torch_shim.h"

namespace kiln::detail {
namespace {

// libtorch turns an exception that passes its C shim into a code. The nested call leaves its text
// here, for the caller. (Text: std::exception_ptr needs symbols above our floor with g++ 13.)
thread_local Text* t_failure = nullptr;

class KeptFailure {
 public:
  KeptFailure() : outer_(t_failure) { t_failure = &failure_; }
  ~KeptFailure() { t_failure = outer_; }
  KeptFailure(const KeptFailure&) = delete;
  Text& text() { return failure_; }

 private:
  Text failure_;
  Text* outer_;
};

void add_name(Text& text, const OpRecord* op) {
  text.add(registry().library).add("::").add(op->state->info.name);
}

[[noreturn]] void cannot(const OpRecord* op, const char* what) {
  Text text;
  add_name(text, op);
  text.addf(": torch refused to %s\n  why: an argument is a conjugated or negated view", what);
  text.add("\n  fix: pass x.resolve_conj().resolve_neg()");
  throw_text(static_cast<Text&&>(text));
}

uint64_t raw(void* handle) { return reinterpret_cast<uint64_t>(handle); }
void* handle_of(uint64_t raw) { return reinterpret_cast<void*>(raw); }

// The stack of one call: what is in it is the callee's to delete, and ours until it is called.
class ResolvedCall {
 public:
  ResolvedCall(const OpRecord* op, uint64_t* stack)
      : op_(op),
        stack_(stack),
        call_(reinterpret_cast<int (*)(const char*, const char*, uint64_t*)>(
            find_symbol(torch_library_of_shim(), "aoti_torch_call_dispatcher"))),
        written_(static_cast<Written*>(
            calloc(static_cast<size_t>(op->parameter_count), sizeof(Written)))) {
    if (!written_) throw std::bad_alloc();
  }
  ~ResolvedCall() {
    for (int i = 0; i < op_->parameter_count; i++) {
      if (written_[i].view) torch_delete(written_[i].view);
      if (written_[i].copy) torch_delete(written_[i].copy);
    }
    free(written_);
  }
  ResolvedCall(const ResolvedCall&) = delete;

  void run() {
    if (!call_) cannot(op_, "resolve it");
    for (int i = 0; i < op_->parameter_count; i++) {
      const uint8_t kind = op_->parameter_kinds[i];
      uint64_t* at = &stack_[i];
      if (kind & kOptional) at = reinterpret_cast<uint64_t*>(*at);
      if (!at) continue;
      if ((kind & kBaseMask) == kTensor) resolve_argument(i, *at);
      if ((kind & kBaseMask) == kTensorList) resolve_list(*at);
    }
    Text name;
    add_name(name, op_);
    KeptFailure kept;
    if (call_(name.c_str(), op_->state->info.overload, stack_)) {
      if (kept.text().size()) throw_text(static_cast<Text&&>(kept.text()));
      cannot(op_, "call the op");
    }
    for (int i = 0; i < op_->parameter_count; i++)
      if (written_[i].view) copy_back(written_[i]);
  }

 private:
  struct Written {
    void *view, *copy;
  };

  void* another(void* handle) {
    void* made = nullptr;
    if (bridge().shim.new_handle(handle, &made)) cannot(op_, "share it");
    return made;
  }

  // The tensor without its bits: the same one where it has none. Takes the handle.
  void* resolved(void* handle) {
    static constexpr const char* kSteps[] = {"aten::resolve_conj", "aten::resolve_neg"};
    for (const char* step : kSteps) {
      uint64_t stack[1] = {raw(handle)};
      if (call_(step, "", stack)) cannot(op_, "resolve it");
      handle = handle_of(stack[0]);
    }
    return handle;
  }

  void resolve_argument(int i, uint64_t& slot) {
    void* const given = handle_of(slot);
    void* const plain = resolved(another(given));
    slot = raw(plain);
    if (!(op_->parameter_kinds[i] & kMutable) || tensor_of_torch(given) == tensor_of_torch(plain)) {
      torch_delete(given);
      return;
    }
    written_[i] = {given, nullptr};
    written_[i].copy = another(plain);
  }

  void resolve_list(uint64_t& slot) {
    const Shim& t = bridge().shim;
    void *const given = handle_of(slot), *made = nullptr;
    size_t size = 0;
    if (t.list_size(given, &size) || t.new_list(size, &made)) cannot(op_, "read a list");
    for (size_t k = 0; k < size; k++) {
      uint64_t item = 0;
      if (t.list_get(given, k, &item) || t.list_push(made, raw(resolved(handle_of(item)))))
        cannot(op_, "read a list");
    }
    t.delete_list(given);
    slot = raw(made);
  }

  void copy_back(Written& one) {
    uint64_t stack[3] = {raw(another(one.view)), raw(one.copy), 0};  // non_blocking = False
    one.copy = nullptr;
    if (call_("aten::copy_", "", stack)) cannot(op_, "copy the result back");
    torch_delete(handle_of(stack[0]));
  }

  const OpRecord* op_;
  uint64_t* stack_;
  int (*call_)(const char*, const char*, uint64_t*);
  Written* written_;
};

}  // namespace

void call_resolved(const OpRecord* op, uint64_t* stack) { ResolvedCall(op, stack).run(); }

void keep_failure(const char* text) {
  if (!t_failure) return;
  t_failure->clear();
  t_failure->add(text);
}

}  // namespace kiln::detail
