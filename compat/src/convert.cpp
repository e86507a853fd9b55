// SPDX-License-Identifier: Apache-2.0
// How do Values, tensors and Python objects become each other? Tensors through torch._C._aoti,
// which hands out and takes the handles of the C shim.
#include "convert.h"

#include <limits.h>
#include <string.h>

#include <new>
#include <stdexcept>

#include "dynamic.h"
#include "front.h"
#include "shim.h"
#include "torch.h"

namespace kiln::compat {

namespace {

// The Python exception that an at::Error of kind python stands for, until the boundary.
struct Raised {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
};
thread_local Raised t_raised;

bool is_instance(PyObject* object, char* type) {
  return PyObject_IsInstance(object, reinterpret_cast<PyObject*>(type)) == 1;
}

struct DtypeName {
  at::ScalarType type;
  const char* name;
};
constexpr DtypeName kDtypeNames[] = {{at::kByte, "uint8"},
                                     {at::kChar, "int8"},
                                     {at::kShort, "int16"},
                                     {at::kInt, "int32"},
                                     {at::kLong, "int64"},
                                     {at::kHalf, "float16"},
                                     {at::kFloat, "float32"},
                                     {at::kDouble, "float64"},
                                     {at::kComplexHalf, "complex32"},
                                     {at::kComplexFloat, "complex64"},
                                     {at::kComplexDouble, "complex128"},
                                     {at::kBool, "bool"},
                                     {at::kBFloat16, "bfloat16"},
                                     {at::kFloat8_e5m2, "float8_e5m2"},
                                     {at::kFloat8_e4m3fn, "float8_e4m3fn"},
                                     {at::kUInt16, "uint16"},
                                     {at::kUInt32, "uint32"},
                                     {at::kUInt64, "uint64"},
                                     {at::kQInt8, "qint8"},
                                     {at::kQUInt8, "quint8"},
                                     {at::kQInt32, "qint32"}};

bool is_none(PyObject* object) { return object == py_none(); }

bool load_integer(const Type& type, PyObject* object, bool convert, Value& value) {
  if (is_instance(object, PyFloat_Type)) return false;
  if (!convert && !is_instance(object, PyLong_Type) && !PyIndex_Check(object)) return false;
  Ref index(PyIndex_Check(object) ? PyNumber_Index(object) : nullptr);
  if (!index) {
    PyErr_Clear();
    return false;
  }
  value.kind = Value::Kind::integer;
  if (type.is_unsigned && type.bytes == 8) {
    value.i = static_cast<int64_t>(PyLong_AsUnsignedLongLong(index.get()));
  } else {
    value.i = PyLong_AsLongLong(index.get());
  }
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  if (type.bytes == 8) return true;
  const int bits = 8 * type.bytes;
  const int64_t low = type.is_unsigned ? 0 : -(int64_t(1) << (bits - 1));
  const int64_t high = type.is_unsigned ? (int64_t(1) << bits) - 1 : (int64_t(1) << (bits - 1)) - 1;
  return value.i >= low && value.i <= high;
}

bool load_real(PyObject* object, bool convert, Value& value) {
  if (!convert && !is_instance(object, PyFloat_Type)) return false;
  value.f = PyFloat_AsDouble(object);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  value.kind = Value::Kind::real;
  return true;
}

bool load_text(PyObject* object, Value& value) {
  Ref bytes;
  if (is_instance(object, PyUnicode_Type))
    bytes = Ref(PyUnicode_AsUTF8String(object));
  else if (is_instance(object, PyBytes_Type))
    bytes = Ref::to(object);
  if (!bytes) return false;
  char* text = nullptr;
  Py_ssize_t size = 0;
  PyBytes_AsStringAndSize(bytes.get(), &text, &size);
  value.kind = Value::Kind::text;
  value.text.assign(text, static_cast<size_t>(size));
  return true;
}

bool load_list(const Type& type, PyObject* object, bool convert, Value& value) {
  if (is_instance(object, PyUnicode_Type) || is_instance(object, PyBytes_Type) ||
      !PySequence_Check(object))
    return false;
  if (is_tensor(object)) return false;
  const Py_ssize_t size = PySequence_Size(object);
  if (size < 0) {
    PyErr_Clear();
    return false;
  }
  const bool is_tuple = type.kind == Type::Kind::tuple;
  if (type.count && size != type.count) return false;
  if (is_tuple && size != type.count) return false;
  value.kind = Value::Kind::list;
  value.list.resize(static_cast<size_t>(size));
  for (Py_ssize_t i = 0; i < size; i++) {
    Ref item(PySequence_GetItem(object, i));
    if (!item) {
      PyErr_Clear();
      return false;
    }
    if (!load(*type.inner[is_tuple ? i : 0], item.get(), convert,
              value.list[static_cast<size_t>(i)]))
      return false;
  }
  return true;
}

bool load_dict(const Type& type, PyObject* object, bool convert, Value& value) {
  if (!is_instance(object, PyDict_Type)) return false;
  value.kind = Value::Kind::dict;
  value.list.resize(2 * static_cast<size_t>(PyDict_Size(object)));
  Py_ssize_t at = 0;
  PyObject *key = nullptr, *item = nullptr;
  for (size_t i = 0; i + 1 < value.list.size() && PyDict_Next(object, &at, &key, &item); i += 2)
    if (!load(*type.inner[0], key, convert, value.list[i]) ||
        !load(*type.inner[1], item, convert, value.list[i + 1]))
      return false;
  return true;
}

bool load_dtype(PyObject* object, Value& value) {
  if (PyObject_IsInstance(object, torch_attribute("torch", "dtype").get()) != 1) return false;
  for (const DtypeName& row : kDtypeNames)
    if (object == torch_attribute("torch", row.name).get()) {
      value.kind = Value::Kind::dtype;
      value.i = static_cast<int64_t>(row.type);
      return true;
    }
  return false;
}

bool load_device(PyObject* object, Value& value) {
  if (PyObject_IsInstance(object, torch_attribute("torch", "device").get()) != 1) {
    if (!is_instance(object, PyUnicode_Type)) return false;
  }
  const at::Device device(text_of(object));
  value.kind = Value::Kind::device;
  value.i = static_cast<int64_t>(device.type());
  value.device_index = device.index();
  return true;
}

}  // namespace

bool engine_stands_in() {
  static const bool wished = kiln::detail::wished_device() == kiln::detail::Wish::engine;
  return wished;
}

void throw_python_error() {
  Raised& r = t_raised;
  for (PyObject* old : {r.type, r.value, r.trace})
    if (old) Py_DecRef(old);
  PyErr_Fetch(&r.type, &r.value, &r.trace);
  PyErr_NormalizeException(&r.type, &r.value, &r.trace);
  std::string text = r.value ? text_of(r.value) : "an error without text";
  throw at::Error(at::ErrorKind::python, text);
}

Ref checked(PyObject* made) {
  if (!made) throw_python_error();
  return Ref(made);
}

const Ref& torch_attribute(const char* module, const char* name) {
  struct Kept {
    const char *module, *name;
    Ref object;
    Kept* next;
  };
  static Kept* kept = nullptr;  // under the GIL
  for (Kept* one = kept; one; one = one->next)
    if (!strcmp(one->name, name) && !strcmp(one->module, module)) return one->object;
  Ref parent = checked(PyImport_ImportModule(module));
  auto* one = new Kept{strdup(module), strdup(name),
                       checked(PyObject_GetAttrString(parent.get(), name)), kept};
  kept = one;
  return one->object;
}

bool is_tensor(PyObject* object) {
  return PyObject_IsInstance(object, torch_attribute("torch", "Tensor").get()) == 1;
}

namespace {

// May this be a fake tensor, or a subclass of Python's? Asked before every other question: nobody
// may ask for the memory of those, and their sizes may be symbols. A handle points to a tensor of
// torch's.
bool answered_by_python(void* handle) {
  using Ask = bool (*)(const void*);
  static const Ask ask = reinterpret_cast<Ask>(kiln::detail::find_symbol(
      kiln::detail::torch_library_of_shim(), "_ZN2at4impl19tensor_has_dispatchERKNS_6TensorE"));
  return ask && ask(handle);
}

bool is_on_meta(void* handle) {
  static const auto ask = shim<int (*)(void*, int32_t*)>("aoti_torch_get_device_type");
  int32_t type = 0;
  return !ask(handle, &type) && type == static_cast<int32_t>(at::kMeta);
}

// The numbers of a tensor's shape or strides; a symbol becomes the number that it stands for.
std::vector<int64_t> numbers_of(const Ref& list) {
  std::vector<int64_t> numbers(static_cast<size_t>(PySequence_Size(list.get())));
  for (size_t d = 0; d < numbers.size(); d++) {
    Ref one = checked(PySequence_GetItem(list.get(), static_cast<Py_ssize_t>(d)));
    numbers[d] = PyLong_AsLongLong(checked(PyNumber_Long(one.get())).get());
  }
  return numbers;
}

// Through Python, where every kind of tensor knows its sizes; null for one that has memory.
kiln::detail::Rep* fake_of(void* handle) {
  WithGil gil;
  Ref words = checked(PyTuple_New(1));
  PyTuple_SetItem(words.get(), 0, checked(PyCapsule_New(handle, nullptr, nullptr)).take());
  Ref tensor = checked(PyObject_CallObject(
      torch_attribute("torch._C._aoti", "alloc_tensor_by_stealing_from_void_ptr").get(),
      words.get()));
  Ref type(PyObject_Type(tensor.get()));
  const bool plain = type.get() == torch_attribute("torch", "Tensor").get() ||
                     type.get() == torch_attribute("torch.nn", "Parameter").get();
  if (plain && !is_on_meta(handle)) return nullptr;
  Ref none = checked(PyTuple_New(0));
  const std::vector<int64_t> sizes =
      numbers_of(checked(PyObject_GetAttrString(tensor.get(), "shape")));
  const std::vector<int64_t> strides = numbers_of(checked(PyObject_CallObject(
      checked(PyObject_GetAttrString(tensor.get(), "stride")).get(), none.get())));
  return kiln::detail::torch_adopt_fake(handle, sizes.data(), strides.data(),
                                        static_cast<int>(sizes.size()));
}

}  // namespace

at::Tensor adopt_handle(void* handle) {
  kiln::detail::torch_require();
  if (has_python() && (answered_by_python(handle) || is_on_meta(handle)))
    if (kiln::detail::Rep* fake = fake_of(handle))
      return at::Tensor::adopt(
          reinterpret_cast<at::kiln_detail::Rep*>(static_cast<kiln::detail::TensorRep*>(fake)));
  return at::Tensor::adopt(reinterpret_cast<at::kiln_detail::Rep*>(
      static_cast<kiln::detail::TensorRep*>(kiln::detail::torch_adopt(handle))));
}

void* new_handle(const at::Tensor& tensor) {
  using NewHandle = int (*)(void*, void**);
  static const auto make = shim<NewHandle>("aoti_torch_new_tensor_handle");
  auto* rep = static_cast<kiln::detail::Rep*>(
      reinterpret_cast<kiln::detail::TensorRep*>(tensor.unsafe_rep()));
  void* handle = nullptr;
  if (make(rep->handle, &handle)) throw at::Error("torch refused to share a tensor");
  return handle;
}

at::Tensor tensor_from(PyObject* object) {
  static PyObject* function =
      torch_attribute("torch._C._aoti", "unsafe_alloc_void_ptr_from_tensor").get();
  Ref arguments = checked(PyTuple_New(1));
  Py_IncRef(object);
  PyTuple_SetItem(arguments.get(), 0, object);
  Ref capsule = checked(PyObject_CallObject(function, arguments.get()));
  void* handle = PyCapsule_GetPointer(capsule.get(), PyCapsule_GetName(capsule.get()));
  if (!handle) throw_python_error();
  return adopt_handle(handle);
}

Ref object_from(const at::Tensor& tensor) {
  if (!tensor.defined()) return Ref::to(py_none());
  static PyObject* function =
      torch_attribute("torch._C._aoti", "alloc_tensor_by_stealing_from_void_ptr").get();
  // Unlike its name, it takes nothing: it copies the tensor, and the handle stays ours.
  auto* rep = static_cast<kiln::detail::Rep*>(
      reinterpret_cast<kiln::detail::TensorRep*>(tensor.unsafe_rep()));
  Ref arguments = checked(PyTuple_New(1));
  PyTuple_SetItem(arguments.get(), 0, checked(PyCapsule_New(rep->handle, nullptr, nullptr)).take());
  return checked(PyObject_CallObject(function, arguments.get()));
}

Ref dtype_object(at::ScalarType type) {
  for (const DtypeName& row : kDtypeNames)
    if (row.type == type) return Ref::to(torch_attribute("torch", row.name).get());
  throw at::Error(c10::str("torch has no Python name for the dtype ", type));
}

Ref device_object(at::Device device) {
  if (device.is_cuda() && engine_stands_in()) device = at::Device(at::kCPU);
  std::string text = device.str();
  Ref arguments = checked(PyTuple_New(1));
  PyTuple_SetItem(arguments.get(), 0,
                  PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
  return checked(PyObject_CallObject(torch_attribute("torch", "device").get(), arguments.get()));
}

std::string text_of(PyObject* object) {
  Ref text(PyObject_Str(object));
  Value value;
  if (!text || !load_text(text.get(), value)) {
    PyErr_Clear();
    return "?";
  }
  return value.text;
}

Ref object_from(const Value& value) {
  switch (value.kind) {
    case Value::Kind::none:
      return Ref::to(py_none());
    case Value::Kind::tensor:
      return object_from(value.tensor);
    case Value::Kind::integer:
      return checked(value.f != 0
                         ? PyLong_FromUnsignedLongLong(static_cast<unsigned long long>(value.i))
                         : PyLong_FromLongLong(value.i));
    case Value::Kind::real:
      return checked(PyFloat_FromDouble(value.f));
    case Value::Kind::complex:
      return checked(PyComplex_FromDoubles(value.f, value.imaginary));
    case Value::Kind::boolean:
      return checked(PyBool_FromLong(value.i != 0));
    case Value::Kind::text:
      return checked(PyUnicode_FromStringAndSize(value.text.data(),
                                                 static_cast<Py_ssize_t>(value.text.size())));
    case Value::Kind::dtype:
      return dtype_object(static_cast<at::ScalarType>(value.i));
    case Value::Kind::device:
      return device_object(at::Device(static_cast<at::DeviceType>(value.i), value.device_index));
    case Value::Kind::object:
      return Ref(value.object);
    case Value::Kind::dict: {
      Ref dict = checked(PyDict_New());
      for (size_t i = 0; i + 1 < value.list.size(); i += 2)
        if (PyObject_SetItem(dict.get(), object_from(value.list[i]).get(),
                             object_from(value.list[i + 1]).get()))
          throw_python_error();
      return dict;
    }
    case Value::Kind::list:
      break;
  }
  const bool is_tuple = value.i == 1;
  const auto size = static_cast<Py_ssize_t>(value.list.size());
  Ref list = checked(is_tuple ? PyTuple_New(size) : PyList_New(size));
  for (Py_ssize_t i = 0; i < size; i++) {
    Ref item = object_from(value.list[static_cast<size_t>(i)]);
    if (is_tuple)
      PyTuple_SetItem(list.get(), i, item.take());
    else
      PyList_SetItem(list.get(), i, item.take());
  }
  return list;
}

bool load(const Type& type, PyObject* object, bool convert, Value& value) {
  switch (type.kind) {
    case Type::Kind::tensor:
      if (!is_tensor(object)) return false;
      value.kind = Value::Kind::tensor;
      value.tensor = tensor_from(object);
      return true;
    case Type::Kind::integer:
      return load_integer(type, object, convert, value);
    case Type::Kind::real:
      return load_real(object, convert, value);
    case Type::Kind::boolean:
      value.kind = Value::Kind::boolean;
      value.i = object == reinterpret_cast<PyObject*>(_Py_TrueStruct);
      if (value.i || object == reinterpret_cast<PyObject*>(_Py_FalseStruct)) return true;
      if (!convert || is_tensor(object)) return false;
      if (is_none(object)) return true;
      return false;
    case Type::Kind::text:
      return load_text(object, value);
    case Type::Kind::optional:
      if (is_none(object)) {
        value.kind = Value::Kind::none;
        return true;
      }
      return load(*type.inner[0], object, convert, value);
    case Type::Kind::list:
    case Type::Kind::tuple:
      return load_list(type, object, convert, value);
    case Type::Kind::dict:
      return load_dict(type, object, convert, value);
    case Type::Kind::dtype:
      return load_dtype(object, value);
    case Type::Kind::device:
      return load_device(object, value);
    case Type::Kind::scalar:
      if (is_instance(object, PyFloat_Type)) return load_real(object, convert, value);
      if (object == reinterpret_cast<PyObject*>(_Py_TrueStruct) ||
          object == reinterpret_cast<PyObject*>(_Py_FalseStruct)) {
        value.kind = Value::Kind::boolean;
        value.i = object == reinterpret_cast<PyObject*>(_Py_TrueStruct);
        return true;
      }
      if (is_instance(object, PyComplex_Type)) {
        value.kind = Value::Kind::complex;
        value.f = PyComplex_RealAsDouble(object);
        value.imaginary = PyComplex_ImagAsDouble(object);
        return true;
      }
      value.f = 0;
      if (load_integer({Type::Kind::integer, false, 8, 0, nullptr}, object, convert, value))
        return true;
      value.f = 1;  // above the signed numbers
      return load_integer({Type::Kind::integer, true, 8, 0, nullptr}, object, convert, value);
    case Type::Kind::object:  // of torch's classes sources take the generator
      if (PyObject_IsInstance(object, torch_attribute("torch", "Generator").get()) != 1)
        return false;
      value.kind = Value::Kind::object;
      value.object = object;
      return true;
    case Type::Kind::none:
      break;
  }
  return false;
}

std::string name_of(const Type& type) {
  switch (type.kind) {
    case Type::Kind::tensor:
      return "torch.Tensor";
    case Type::Kind::integer:
      return "typing.SupportsInt";
    case Type::Kind::real:
      return "typing.SupportsFloat";
    case Type::Kind::boolean:
      return "bool";
    case Type::Kind::text:
      return "str";
    case Type::Kind::optional:
      return name_of(*type.inner[0]) + " | None";
    case Type::Kind::list:
      return "collections.abc.Sequence[" + name_of(*type.inner[0]) + "]";
    case Type::Kind::tuple: {
      std::string text = "tuple[";
      for (int i = 0; i < type.count; i++) text += (i ? ", " : "") + name_of(*type.inner[i]);
      return text + "]";
    }
    case Type::Kind::dict:
      return "dict[" + name_of(*type.inner[0]) + ", " + name_of(*type.inner[1]) + "]";
    case Type::Kind::dtype:
      return "torch.dtype";
    case Type::Kind::device:
      return "torch.device";
    case Type::Kind::scalar:
      return "Union[Number, torch.Tensor]";
    default:
      return "object";
  }
}

void set_python_error() {
  auto set = [](PyObject* type, const char* text) { PyErr_SetString(type, text); };
  try {
    throw;
  } catch (const at::Error& e) {
    switch (e.kind()) {
      case at::ErrorKind::python:
        if (t_raised.type) {
          PyErr_Restore(t_raised.type, t_raised.value, t_raised.trace);
          t_raised = {};
          return;
        }
        return set(PyExc_RuntimeError, e.what());
      case at::ErrorKind::index:
        return set(PyExc_IndexError, e.what());
      case at::ErrorKind::value:
        return set(PyExc_ValueError, e.what());
      case at::ErrorKind::type:
        return set(PyExc_TypeError, e.what());
      case at::ErrorKind::not_implemented:
        return set(PyExc_NotImplementedError, e.what());
      case at::ErrorKind::out_of_memory:
        return set(torch_attribute("torch", "OutOfMemoryError").get(), e.what());
      case at::ErrorKind::linear_algebra:
        return set(torch_attribute("torch._C", "_LinAlgError").get(), e.what());
      default:
        return set(PyExc_RuntimeError, e.what());
    }
  } catch (const std::bad_alloc& e) {
    set(PyExc_MemoryError, e.what());
  } catch (const std::domain_error& e) {
    set(PyExc_ValueError, e.what());
  } catch (const std::invalid_argument& e) {
    set(PyExc_ValueError, e.what());
  } catch (const std::length_error& e) {
    set(PyExc_ValueError, e.what());
  } catch (const std::out_of_range& e) {
    set(PyExc_IndexError, e.what());
  } catch (const std::range_error& e) {
    set(PyExc_ValueError, e.what());
  } catch (const std::overflow_error& e) {
    set(PyExc_OverflowError, e.what());
  } catch (const std::exception& e) {
    set(PyExc_RuntimeError, e.what());
  } catch (...) {
    set(PyExc_RuntimeError, "Caught an unknown exception!");
  }
}

}  // namespace kiln::compat
