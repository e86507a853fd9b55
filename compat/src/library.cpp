// SPDX-License-Identifier: Apache-2.0
// How do TORCH_LIBRARY blocks reach torch's dispatcher? Through the C shim, which calls a kernel
// with a stack of words and no context: each kernel gets one of the thunks below, which knows its
// number.
#include <kiln/compat/library.h>
#include <stdio.h>
#include <string.h>

#include <stdexcept>

#include "convert.h"
#include "dynamic.h"
#include "front.h"
#include "invoke.h"
#include "python_kernel.h"
#include "text.h"
#include "torch.h"

namespace kiln::compat {

namespace {

using Boxed = void (*)(uint64_t*, uint64_t, uint64_t);

struct Shim {
  int (*init_fragment)(const char*, const char*, uint32_t, void**);
  int (*init_impl)(const char*, const char*, const char*, uint32_t, void**);
  int (*define)(void*, const char*);
  int (*implement)(void*, const char*, Boxed);
  int (*implement_2_10)(void*, const char*, Boxed, uint64_t);
  int (*new_list)(size_t, void**);
  int (*list_size)(void*, size_t*);
  int (*list_get)(void*, size_t, uint64_t*);
  int (*list_push)(void*, uint64_t);
  int (*delete_list)(void*);
  int (*string_length)(void*, size_t*);
  int (*string_text)(void*, const char**);
  int (*delete_string)(void*);
  int (*new_string)(const char*, size_t, void**);
};

template <class F>
void find(F& f, const char* name) {
  f = reinterpret_cast<F>(kiln::detail::find_symbol(kiln::detail::torch_library_of_shim(), name));
}

const Shim& shim() {
  static const Shim found = [] {
    Shim s = {};
    find(s.init_fragment, "aoti_torch_library_init_fragment");
    find(s.init_impl, "aoti_torch_library_init_impl");
    find(s.define, "aoti_torch_library_def");
    find(s.implement, "aoti_torch_library_impl");
    find(s.implement_2_10, "torch_library_impl");
    find(s.new_list, "torch_new_list_reserve_size");
    find(s.list_size, "torch_list_size");
    find(s.list_get, "torch_list_get_item");
    find(s.list_push, "torch_list_push_back");
    find(s.delete_list, "torch_delete_list");
    find(s.string_length, "torch_string_length");
    find(s.string_text, "torch_string_c_str");
    find(s.delete_string, "torch_delete_string");
    find(s.new_string, "torch_new_string_handle");
    return s;
  }();
  return found;
}

// Lists and strings cross the shim from 2.10 on.
void need_lists(const char* op) {
  if (!shim().new_list)
    throw at::Error(c10::str("error: cannot call ", op,
                             "\n  why: libtorch_cpu.so has no torch_new_list_reserve_size, which "
                             "lists and strings need; torch 2.10 and "
                             "newer have it\n  fix: pip install 'torch>=2.10', or build with kiln "
                             "build --compat=never"));
}

bool has_list(const Type& type) {
  switch (type.kind) {
    case Type::Kind::text:
    case Type::Kind::list:
      return true;
    case Type::Kind::optional:
      return has_list(*type.inner[0]);
    case Type::Kind::tuple:
      for (int i = 0; i < type.count; i++)
        if (has_list(*type.inner[i])) return true;
      return false;
    default:
      return false;
  }
}

// An older torch refuses such a call before it reaches the kernel, in words that say neither what
// is lacking nor since when.
void warn_of_lists(const std::string& op, const Function& f) {
  if (shim().new_list) return;
  bool lists = f.result && has_list(*f.result);
  for (int i = 0; i < f.parameter_count; i++) lists |= has_list(*f.parameters[i]);
  if (!lists) return;
  fprintf(stderr,
          "warning: calls of %s will fail\n  why: it has a list or a string, and libtorch_cpu.so "
          "has no "
          "torch_new_list_reserve_size to pass it; torch 2.10 and newer have it\n  fix: pip "
          "install 'torch>=2.10', or "
          "build "
          "with kiln build --compat=never\n",
          op.c_str());
}

void take(const Type& type, uint64_t raw, Value& v, const char* op) {
  switch (type.kind) {
    case Type::Kind::optional: {
      auto* box = reinterpret_cast<uint64_t*>(raw);
      if (!box) return;
      raw = *box;
      operator delete(box);  // torch made it with new
      return take(*type.inner[0], raw, v, op);
    }
    case Type::Kind::tensor:
      v.kind = Value::Kind::tensor;
      v.tensor = adopt_handle(reinterpret_cast<void*>(raw));
      return;
    case Type::Kind::integer:
      v.kind = Value::Kind::integer;
      v.i = static_cast<int64_t>(raw);
      return;
    case Type::Kind::boolean:
      v.kind = Value::Kind::boolean;
      v.i = static_cast<uint8_t>(raw) != 0;
      return;
    case Type::Kind::real:
      v.kind = Value::Kind::real;
      memcpy(&v.f, &raw, sizeof raw);
      return;
    case Type::Kind::dtype:
      v.kind = Value::Kind::dtype;
      v.i = static_cast<int32_t>(raw);
      return;
    case Type::Kind::device: {
      const bool packed = shim().implement_2_10 != nullptr;
      v.kind = Value::Kind::device;
      v.device_index =
          packed ? static_cast<int8_t>(static_cast<int32_t>(raw)) : static_cast<int8_t>(raw >> 8);
      v.i = static_cast<int64_t>(packed ? raw >> 32 : raw & 0xff);
      return;
    }
    case Type::Kind::text: {
      need_lists(op);
      const char* text = nullptr;
      size_t size = 0;
      auto* handle = reinterpret_cast<void*>(raw);
      if (shim().string_text(handle, &text) | shim().string_length(handle, &size))
        throw at::Error("torch refused to return a string");
      v.kind = Value::Kind::text;
      v.text.assign(text, size);
      shim().delete_string(handle);
      return;
    }
    case Type::Kind::list: {
      need_lists(op);
      size_t size = 0;
      auto* handle = reinterpret_cast<void*>(raw);
      if (shim().list_size(handle, &size))
        throw at::Error("torch refused to report the length of a list");
      v.kind = Value::Kind::list;
      v.list.resize(size);
      for (size_t i = 0; i < size; i++) {
        uint64_t item = 0;
        if (shim().list_get(handle, i, &item))
          throw at::Error("torch refused to return an item of a list");
        take(*type.inner[0], item, v.list[i], op);
      }
      shim().delete_list(handle);
      return;
    }
    default:
      throw at::Error(c10::str("error: cannot call ", op, "\n  why: a parameter of type ",
                               name_of(type),
                               " does not cross torch's C shim\n  fix: kiln build --compat=never"));
  }
}

uint64_t give(const Type& type, Value& v, const char* op) {
  uint64_t raw = 0;
  switch (type.kind) {
    case Type::Kind::tensor:
      if (!v.tensor.defined()) throw at::Error(c10::str(op, " returned an undefined tensor"));
      return reinterpret_cast<uint64_t>(new_handle(v.tensor));
    case Type::Kind::integer:
    case Type::Kind::dtype:
      return static_cast<uint64_t>(v.i);
    case Type::Kind::boolean:
      return v.i != 0;
    case Type::Kind::real:
      memcpy(&raw, &v.f, sizeof raw);
      return raw;
    case Type::Kind::optional:
      if (v.kind == Value::Kind::none) return 0;
      return reinterpret_cast<uint64_t>(new uint64_t(give(*type.inner[0], v, op)));
    case Type::Kind::text: {
      need_lists(op);
      void* handle = nullptr;
      if (shim().new_string(v.text.data(), v.text.size(), &handle))
        throw at::Error("torch refused to make a string");
      return reinterpret_cast<uint64_t>(handle);
    }
    case Type::Kind::list: {
      need_lists(op);
      void* list = nullptr;
      if (shim().new_list(v.list.size(), &list)) throw at::Error("torch refused to make a list");
      for (Value& one : v.list)
        if (shim().list_push(list, give(*type.inner[0], one, op)))
          throw at::Error("torch refused to fill a list");
      return reinterpret_cast<uint64_t>(list);
    }
    default:
      throw at::Error(c10::str("error: cannot call ", op, "\n  why: a result of type ",
                               name_of(type),
                               " does not cross torch's C shim\n  fix: kiln build --compat=never"));
  }
}

constexpr int kMostKernels = 1024;
Kernel* g_kernels[kMostKernels];
int g_kernel_count = 0;

// torch knows the standard exceptions as pybind11 does: that keeps the Python type of the
// commonest.
[[noreturn]] void rethrow_for_torch(const at::Error& e) {
  switch (e.kind()) {
    case at::ErrorKind::index:
      throw std::out_of_range(e.what());
    case at::ErrorKind::value:
      throw std::invalid_argument(e.what());
    default:
      throw std::runtime_error(e.what());
  }
}

void run_kernel(int number, uint64_t* stack) {
  const Kernel& kernel = *g_kernels[number];
  const Function& f = kernel.function;
  const char* op = kernel.name.c_str();
  try {
    std::vector<Value> arguments(static_cast<size_t>(f.parameter_count) + 1);
    for (int i = 0; i < f.parameter_count; i++)
      take(*f.parameters[i], stack[i], arguments[static_cast<size_t>(i)], op);
    Value result;
    invoke(f, op, arguments.data(), result);
    if (!f.result) return;
    if (f.result->kind == Type::Kind::tuple) {
      for (int i = 0; i < f.result->count; i++)
        stack[i] = give(*f.result->inner[i], result.list[static_cast<size_t>(i)], op);
    } else {
      stack[0] = give(*f.result, result, op);
    }
  } catch (const at::Error& e) {
    rethrow_for_torch(e);
  }
}

template <int N>
void thunk(uint64_t* stack, uint64_t, uint64_t) {
  run_kernel(N, stack);
}
template <int... N>
constexpr Boxed thunk_at(int number, std::integer_sequence<int, N...>) {
  constexpr Boxed all[] = {&thunk<N>...};
  return all[number];
}

int add_kernel(const std::string& name, const Function& function) {
  if (g_kernel_count == kMostKernels)
    throw at::Error(
        c10::str("error: cannot register ", name, "\n  why: a library can register ", kMostKernels,
                 " kernels through kiln's compat headers\n  fix: kiln build --compat=never"));
  g_kernels[g_kernel_count] = new Kernel{name, function};
  return g_kernel_count++;
}

std::string schema_type(const Type& type) {
  switch (type.kind) {
    case Type::Kind::tensor:
      return "Tensor";
    case Type::Kind::integer:
      return "int";
    case Type::Kind::real:
      return "float";
    case Type::Kind::boolean:
      return "bool";
    case Type::Kind::text:
      return "str";
    case Type::Kind::dtype:
      return "ScalarType";
    case Type::Kind::device:
      return "Device";
    case Type::Kind::scalar:
      return "Scalar";
    case Type::Kind::object:
      return "Generator";
    case Type::Kind::dict:
      return "Dict(" + schema_type(*type.inner[0]) + ", " + schema_type(*type.inner[1]) + ")";
    case Type::Kind::optional:
      return schema_type(*type.inner[0]) + "?";
    case Type::Kind::list:
      return schema_type(*type.inner[0]) + "[]";
    case Type::Kind::tuple: {
      std::string text = "(";
      for (int i = 0; i < type.count; i++) text += (i ? ", " : "") + schema_type(*type.inner[i]);
      return text + ")";
    }
    default:
      return "()";
  }
}

std::string inferred_schema(const std::string& name, const Function& f) {
  std::string text = name + "(";
  for (int i = 0; i < f.parameter_count; i++)
    text += (i ? ", " : "") + schema_type(*f.parameters[i]) + " _" + std::to_string(i);
  return text + ") -> " + (f.result ? schema_type(*f.result) : "()");
}

}  // namespace

struct OpLibrary {
  std::string ns, key, file;
  uint32_t line;
  void* handle;
};

namespace {

// torch keeps the pointer to the file's name: it has to be that of an OpLibrary, which stays.
void* open(const std::string& ns, const char* key, const std::string& file, uint32_t line) {
  void* handle = nullptr;
  const int failed = *key ? shim().init_impl(ns.c_str(), key, file.c_str(), line, &handle)
                          : shim().init_fragment(ns.c_str(), file.c_str(), line, &handle);
  if (failed) throw at::Error(c10::str("torch refused to open the namespace ", ns, " ", key));
  return handle;  // never deleted: a cached torch.ops object would crash
}

constexpr uint64_t kShim210 = (2ull << 56) | (10ull << 48);

bool crosses_shim(const Type& type) {
  switch (type.kind) {
    case Type::Kind::scalar:
    case Type::Kind::dict:
    case Type::Kind::tuple:
    case Type::Kind::object:
    case Type::Kind::none:
      return false;
    case Type::Kind::optional:
    case Type::Kind::list:
      return crosses_shim(*type.inner[0]);
    default:
      return true;
  }
}

bool crosses_shim(const Function& f) {
  for (int i = 0; i < f.parameter_count; i++)
    if (!crosses_shim(*f.parameters[i])) return false;
  if (!f.result || f.result->kind != Type::Kind::tuple) return !f.result || crosses_shim(*f.result);
  for (int i = 0; i < f.result->count; i++)
    if (!crosses_shim(*f.result->inner[i])) return false;
  return true;
}

void implement(void* handle, const std::string& ns, const std::string& key, const std::string& name,
               int kernel) {
  if (!crosses_shim(g_kernels[kernel]->function)) {
    implement_in_python(ns, key, name, *g_kernels[kernel]);
    return;
  }
  const Boxed boxed = thunk_at(kernel, std::make_integer_sequence<int, kMostKernels>());
  const int failed = shim().implement_2_10
                         ? shim().implement_2_10(handle, name.c_str(), boxed, kShim210)
                         : shim().implement(handle, name.c_str(), boxed);
  if (failed)
    throw at::Error(c10::str("torch refused to implement ", name, "; see its reason above"));
}

// Kernels for CUDA alone also serve CPU tensors where the engine runs them: known when all blocks
// of a library have run.
struct Pending {
  std::string ns, name;
  int kernel;
};
std::vector<Pending>& pending() {
  static auto* list = new std::vector<Pending>;
  return *list;
}
std::vector<std::string>& cpu_kernels() {
  static auto* list = new std::vector<std::string>;
  return *list;
}

void remember(const std::string& ns, const std::string& name, const std::string& key, int kernel) {
  if (key == "CUDA")
    pending().push_back({ns, name, kernel});
  else if (key != "Meta" && key.rfind("Autograd", 0) != 0)
    cpu_kernels().push_back(ns + "::" + name);
}

// The archive stands last on the link line: every TORCH_LIBRARY block of the library has run.
__attribute__((constructor)) void serve_cpu_tensors_too() {
  if (pending().empty() || (kiln::detail::machine_has_gpu() && !engine_stands_in())) return;
  try {
    for (const Pending& one : pending()) {
      const std::string full = one.ns + "::" + one.name;
      bool has_own = false;
      for (const std::string& other : cpu_kernels()) has_own |= other == full;
      if (!has_own) implement(open(one.ns, "CPU", "kiln", 0), one.ns, "CPU", one.name, one.kernel);
    }
  } catch (const std::exception& e) {
    fprintf(stderr, "%s\n", e.what());
  }
}

// `error: what / why / fix` of below keeps its why and its fix.
[[noreturn]] void registration_failed(const OpLibrary* library, const char* what,
                                      const std::exception& e) {
  if (!library) throw std::runtime_error(e.what());
  std::string text = e.what();
  if (text.rfind("error: ", 0) == 0) text = text.substr(7);
  const size_t why = text.find("\n  why: ");
  if (why != std::string::npos) text = text.substr(0, why) + ": " + text.substr(why + 8);
  throw std::runtime_error(
      c10::str("error: ", what, " (", library->file, ":", library->line, ")\n  why: ", text));
}

}  // namespace

OpLibrary* open_library(const char* kind, const char* ns, const char* key, const char* file,
                        uint32_t line) {
  std::string space = !strcmp(ns, "_") ? "" : ns;
  // Builds show a source's folder to the compilers under this name.
  constexpr char kOwnFolder[] = "/proc/self/cwd/";
  if (!strncmp(file, kOwnFolder, sizeof kOwnFolder - 1)) file += sizeof kOwnFolder - 1;
  auto* library = new OpLibrary{space, key, file, line, nullptr};
  try {
    kiln::detail::torch_require();
    library->handle = open(space, !strcmp(kind, "IMPL") ? key : "", library->file, line);
  } catch (const std::exception& e) {
    registration_failed(library, "cannot register ops", e);
  }
  return library;
}

void define_op(OpLibrary* library, const char* schema) {
  const kiln::detail::CLocale locale;
  if (!shim().define(library->handle, schema)) return;
  throw std::runtime_error(c10::str(
      "error: cannot define an op (", library->file, ":", library->line,
      ")\n  why: torch refused the schema ", schema,
      "; see its reason above\n  fix: a process defines an op once: after an edit, or where "
      "another library has the op, start a new one"));
}

void implement_op(OpLibrary* library, const char* name, const char* key, const Function& function) {
  try {
    const std::string plain = strstr(name, "::") ? strstr(name, "::") + 2 : name;
    warn_of_lists(library->ns + "::" + plain, function);
    const std::string wanted = key && *key ? key : library->key;
    const int kernel = add_kernel(library->ns + "::" + plain, function);
    void* handle = library->handle;
    if (key && *key && library->key.empty())
      handle = open(library->ns, key, library->file, library->line);
    implement(handle, library->ns, wanted, plain, kernel);
    remember(library->ns, plain, wanted, kernel);
  } catch (const std::exception& e) {
    registration_failed(library, "cannot implement an op", e);
  }
}

void define_from(OpLibrary* library, const char* name_or_schema, const Function& function) {
  std::string text = name_or_schema;
  if (!library) {  // RegisterOperators: "ns::name"
    const size_t colon = text.find("::");
    if (colon == std::string::npos)
      throw std::runtime_error("RegisterOperators: no namespace in " + text);
    library = new OpLibrary{text.substr(0, colon), "", "kiln", 0, nullptr};
    library->handle = open(library->ns, "", library->file, 0);
  }
  if (const size_t colon = text.find("::"); colon != std::string::npos && colon < text.find('('))
    text = text.substr(colon + 2);
  const bool whole = text.find('(') != std::string::npos;
  const std::string name = text.substr(0, text.find('('));
  define_op(library, whole ? text.c_str() : inferred_schema(text, function).c_str());
  implement_op(library, name.c_str(), nullptr, function);
}

const char* key_name(c10::DispatchKey key) {
  switch (key) {
#define X(name)                \
  case c10::DispatchKey::name: \
    return #name;
    KILN_DISPATCH_KEYS(X)
#undef X
  }
  return "CompositeImplicitAutograd";
}

const char* key_name(c10::DeviceType type) {
  switch (type) {
    case at::kCPU:
      return "CPU";
    case at::kCUDA:
      return "CUDA";
    case at::kMeta:
      return "Meta";
    case c10::DeviceType::XPU:
      return "XPU";
    case c10::DeviceType::MPS:
      return "MPS";
    case c10::DeviceType::PrivateUse1:
      return "PrivateUse1";
    default:
      throw std::runtime_error("torch::dispatch: a device of type " + DeviceTypeName(type, true) +
                               " is not supported by kiln's compat headers");
  }
}

}  // namespace kiln::compat
