// SPDX-License-Identifier: Apache-2.0
#include "autograd.h"

#include <stdlib.h>

#include "dynamic.h"
#include "registry.h"
#include "torch.h"

namespace kiln::detail {
namespace {

// The C shim cannot add a node to torch's graph, but Python can, and a process that trains has one.
// `text` is the address of a C string that lives as long as the process. Written to be run by each
// library, and by several threads.
constexpr const char* kPython = R"python(
def kiln_define_autograd():
    import ctypes, threading, torch
    with torch.__dict__.setdefault("_kiln_autograd_lock", threading.Lock()):
        if hasattr(torch, "_kiln_autograd"):
            return
        class NoBackward(torch.autograd.Function):
            @staticmethod
            def forward(ctx, result, source, text):
                ctx.text = text
                ctx.mark_dirty(result)
                return result
            @staticmethod
            def backward(ctx, *gradients):
                raise RuntimeError(ctypes.string_at(ctx.text).decode())
        def record(result, source, text):
            NoBackward.apply(result, source, text)
        library = torch.library.Library("kiln_autograd", "FRAGMENT")
        library.define("no_backward(Tensor(a!) result, Tensor source, int text) -> ()")
        library.impl("no_backward", record, "Autograd")
        library.impl("no_backward", lambda result, source, text: None, "CompositeExplicitAutograd")
        torch._kiln_autograd = library
kiln_define_autograd()
del kiln_define_autograd
)python";

template <class F>
F in_process(const char* name) {
  return reinterpret_cast<F>(find_symbol(nullptr, name));
}

bool run_python() {
  const auto is_ready = in_process<int (*)()>("Py_IsInitialized");
  const auto lock = in_process<int (*)()>("PyGILState_Ensure");
  const auto unlock = in_process<void (*)(int)>("PyGILState_Release");
  const auto run = in_process<int (*)(const char*, void*)>("PyRun_SimpleStringFlags");
  if (!is_ready || !lock || !unlock || !run || !is_ready()) return false;
  const int state = lock();
  const bool good = run(kPython, nullptr) == 0;
  unlock(state);
  return good;
}

// Not a static with a guard: a thread that waits for the guard may hold the lock that Python needs.
bool has_node() {
  static int known = 0;  // 1: yes, -1: no
  int answer = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
  if (!answer) {
    answer = run_python() ? 1 : -1;
    __atomic_store_n(&known, answer, __ATOMIC_RELEASE);
  }
  return answer > 0;
}

void add_names(Text& text, const OpRecord* op) {
  text.add(registry().library).add("::").add(op->state->info.name);
}

const char* text_of(const OpRecord* op) {
  char*& kept = op->state->no_backward_text;
  if (const char* known = __atomic_load_n(&kept, __ATOMIC_ACQUIRE)) return known;
  Text what, text;
  add_names(what, op);
  what.add(" has no backward");
  add_error(text, what.c_str(), "a gradient was asked for through its result",
            "give it one with @op.backward, or keep it out of the graph: call it under "
            "torch.no_grad(), or detach() its "
            "arguments");
  char *made = text.take(), *expected = nullptr;
  if (__atomic_compare_exchange_n(&kept, &expected, made, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    return made;
  free(made);
  return expected;
}

bool is_differentiable(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::f32:
    case Dtype::f64:
    case Dtype::c64:
    case Dtype::c128:
      return true;
    default:
      return false;
  }
}

struct Marking {
  int (*new_handle)(void*, void**);
  int (*call)(const char*, const char*, uint64_t*);
  RequiresGradient* requires_gradient;
  const char* text;
  const OpRecord* op;
};

// Without its mark, backward() would leave the gradient out without a word.
[[noreturn]] void fail_to_mark(const OpRecord* op) {
  Text what, text;
  what.add("cannot record that ");
  add_names(what, op);
  what.add(" has no backward");
  add_error(text, what.c_str(), "torch refused to add it to the graph",
            "call it under torch.no_grad(), or detach() its arguments");
  throw_text(static_cast<Text&&>(text));
}

// Tensors that the op was given back are not its own to mark.
void mark(const Marking& m, const Tensor& result, const Tensor& source) {
  if (!result.defined() || !source.defined() || !is_differentiable(result.dtype())) return;
  const Rep *to = static_cast<const Rep*>(result.rep()),
            *from = static_cast<const Rep*>(source.rep());
  if (to->memory != Rep::Memory::of_torch_made_here ||
      !m.requires_gradient(tensor_of_torch(from->handle)))
    return;
  void *a = nullptr, *b = nullptr;
  if (m.new_handle(to->handle, &a)) fail_to_mark(m.op);
  if (m.new_handle(from->handle, &b)) {
    torch_delete(a);
    fail_to_mark(m.op);
  }
  uint64_t stack[3] = {reinterpret_cast<uint64_t>(a), reinterpret_cast<uint64_t>(b),
                       reinterpret_cast<uint64_t>(m.text)};
  // Takes both handles, also where it fails.
  if (m.call("kiln_autograd::no_backward", "", stack)) fail_to_mark(m.op);
}

template <class F>
void each_tensor(const OpRecord* op, const Slot* arguments, F&& f) {
  for (int i = 0; i < op->parameter_count; i++) {
    const uint8_t kind = op->parameter_kinds[i] & kBaseMask;
    if (kind == kTensor) f(arguments[i].tensor);
    if (kind != kTensorList) continue;
    const auto* tensors = static_cast<const Tensor*>(arguments[i].list.data);
    for (size_t k = 0; k < arguments[i].list.count; k++) f(tensors[k]);
  }
}

}  // namespace

RequiresGradient* find_requires_gradient() {
  void* c10 = open_mapped("libc10.so");
  return c10 ? reinterpret_cast<RequiresGradient*>(
                   find_symbol(c10, "_ZNK3c1010TensorImpl13requires_gradEv"))
             : nullptr;
}

ForwardGradient* find_forward_gradient() {
  void* c10 = open_mapped("libc10.so");
  if (!c10 || !undefined_tensor_of_torch()) return nullptr;
  return reinterpret_cast<ForwardGradient*>(
      find_symbol(c10, "_ZNK3c1010TensorImpl8_fw_gradEmRKN2at10TensorBaseE"));
}

const void* undefined_tensor_of_torch() {
  static const void* const undefined = [] {
    void* c10 = open_mapped("libc10.so");
    return c10 ? find_symbol(c10, "_ZN3c1019UndefinedTensorImpl10_singletonE") : nullptr;
  }();
  return undefined;
}

void refuse_tangents(const OpRecord* op) {
  Text what, text;
  add_names(what, op);
  what.add(" has no forward-mode derivative");
  add_error(text, what.c_str(), "an argument has a tangent (torch.autograd.forward_ad)",
            "use reverse mode, which @op.backward serves, or pass the primal alone");
  throw_text(static_cast<Text&&>(text));
}

bool torch_records_gradients() {
  static const auto ask = reinterpret_cast<bool (*)()>(
      find_symbol(torch_library_of_shim(), "aoti_torch_grad_mode_is_enabled"));
  return ask && ask();
}

void refuse_to_write(const OpRecord* op) {
  for (int i = 0; i < op->parameter_count; i++) {
    if (!(op->parameter_kinds[i] & kMutable)) continue;
    Text what, text;
    add_names(what, op);
    what.add(" cannot be differentiated");
    Text why;
    why.addf("it writes to '%s', and one of its arguments requires a gradient",
             parameter_name(op, i));
    add_error(text, what.c_str(), why.c_str(),
              "call it under torch.no_grad(), or detach() the arguments that require one");
    throw_text(static_cast<Text&&>(text));
  }
}

void refuse_gradients(const OpRecord* op, const Slot* arguments, const Slot* results) {
  if (!has_node()) return;  // torch's own warning stands
  void* const torch = torch_library_of_shim();
  const Marking m = {
      reinterpret_cast<int (*)(void*, void**)>(find_symbol(torch, "aoti_torch_new_tensor_handle")),
      reinterpret_cast<int (*)(const char*, const char*, uint64_t*)>(
          find_symbol(torch, "aoti_torch_call_dispatcher")),
      find_requires_gradient(), text_of(op), op};
  if (!m.new_handle || !m.call || !m.requires_gradient) return;
  each_tensor(op, arguments, [&](const Tensor& source) {
    for (int i = 0; i < op->result_count; i++) {
      mark(m, results[i].tensor, source);
      for (size_t k = 0; results[i].tensors && k < results[i].tensors->size(); k++)
        mark(m, (*results[i].tensors)[k], source);
    }
  });
}

}  // namespace kiln::detail
