// SPDX-License-Identifier: Apache-2.0
#include "callers/caller.h"

#include <string.h>

namespace kiln::callers {
namespace {

constexpr uint32_t kHasValue = KILN_PARAMETER_HAS_DEFAULT | KILN_PARAMETER_OPTIONAL;

size_t tensor_results(const KilnOpInfo& info) {
  size_t count = 0;
  for (uint32_t i = 0; i < info.result_count; i++)
    count += info.results[i].type == KILN_TYPE_TENSOR;
  return count;
}

Ref text(const char* from) {
  return Ref(PyUnicode_DecodeUTF8(from, static_cast<intptr_t>(strlen(from)), "replace"));
}

}  // namespace

PythonCall::PythonCall(const Caller& caller) : caller_(caller), info_(*caller.info) {
  bound_.resize(info_.parameter_count);
  values_.reserve(info_.parameter_count + info_.result_count);
  values_.resize(info_.parameter_count);
  arrays_.reserve(info_.parameter_count + info_.result_count);
}

// Always false: Python's exception is set.
bool PythonCall::fail(const char* kind, const char* parameter, PyObject* value, const char* why) {
  const Ref words[] = {text(kind), text(info_.schema), text(parameter),
                       shared(value ? value : &_Py_NoneStruct), text(why)};
  PyObject* arguments[] = {words[0].get(), words[1].get(), words[2].get(), words[3].get(),
                           words[4].get()};
  const Ref nothing(PyObject_Vectorcall(caller_.support.fail, arguments, 5, nullptr));
  return false;
}

bool PythonCall::wrong_type(size_t parameter, PyObject* value) {
  PyErr_Clear();
  return fail("type", info_.parameters[parameter].name, value);
}

bool PythonCall::bind(PyObject* const* args, intptr_t count, PyObject* names) {
  size_t positional = 0;
  while (positional < info_.parameter_count &&
         !(info_.parameters[positional].flags & KILN_PARAMETER_KEYWORD_ONLY))
    positional++;
  if (static_cast<size_t>(count) > positional) return fail("too_many", "", args[positional]);
  for (intptr_t i = 0; i < count; i++) bound_[static_cast<size_t>(i)] = args[i];
  const intptr_t keywords = names ? PyTuple_Size(names) : 0;
  for (intptr_t k = 0; k < keywords; k++) {
    PyObject* name = PyTuple_GetItem(names, k);
    size_t at = 0;
    while (at < bound_.size() && name != caller_.names[at] &&
           PyUnicode_CompareWithASCIIString(name, info_.parameters[at].name) != 0)
      at++;
    if (at < bound_.size()) {
      if (bound_[at]) return fail("twice", info_.parameters[at].name, args[count + k]);
      bound_[at] = args[count + k];
    } else if (PyUnicode_CompareWithASCIIString(name, "out") == 0) {
      out_ = is_none(args[count + k]) ? nullptr : args[count + k];
    } else {
      return fail("unknown", "", name);
    }
  }
  return true;
}

bool PythonCall::take_array(const char* name, PyObject* value, bool written, ffi::Any& to) {
  if (!route_of(caller_, value)) return false;
  arrays_.push_back(std::make_unique<BorrowedArray>());
  BorrowedArray& array = *arrays_.back();
  switch (borrow(value, array)) {
    case Borrowed::yes:
      break;
    case Borrowed::not_an_array:
      return fail("not_an_array", name, value);
    case Borrowed::not_a_capsule:
      return fail("not_a_capsule", name, value);
    case Borrowed::used_capsule:
      return fail("used_capsule", name, value);
    case Borrowed::too_new:
      return fail("too_new", name, value);
    case Borrowed::no_memory:
      return fail("no_memory", name, value);
    case Borrowed::refused_by_owner: {
      PyObject *type = nullptr, *error = nullptr, *traceback = nullptr;
      PyErr_Fetch(&type, &error, &traceback);
      const Ref kept[] = {Ref(type), Ref(error), Ref(traceback)};
      const Ref both(PyTuple_New(2));
      PyTuple_SetItem(both.get(), 0, shared(value).give());
      PyTuple_SetItem(both.get(), 1, shared(error ? error : &_Py_NoneStruct).give());
      return fail("refused", name, both.get());
    }
  }
  if (written && array.read_only) return fail("read_only", name, value);
  if (!like_) like_ = value;
  to.type = ffi::kDlTensorPointer;
  to.pointer = array.tensor;
  return true;
}

bool PythonCall::take_number(size_t parameter, PyObject* value, ffi::Any& to) {
  const uint32_t type = info_.parameters[parameter].type;
  if (type == KILN_TYPE_FLOAT) {
    to.type = ffi::kFloat;
    to.f = PyFloat_AsDouble(value);
    return to.f == -1.0 && PyErr_Occurred() ? wrong_type(parameter, value) : true;
  }
  const Ref index(PyNumber_Index(value));
  to.type = ffi::kInt;
  if (index) to.i = PyLong_AsLongLong(index.get());
  return !index || PyErr_Occurred() ? wrong_type(parameter, value) : true;
}

// bool, str, dtype, device.
bool PythonCall::take_special(size_t parameter, PyObject* value, ffi::Any& to) {
  const uint32_t type = info_.parameters[parameter].type;
  if (type == KILN_TYPE_STR) {
    intptr_t size = 0;
    to.type = ffi::kRawString;
    to.s = PyUnicode_AsUTF8AndSize(value, &size);
    if (to.s && strlen(to.s) == static_cast<size_t>(size)) return true;
    return wrong_type(parameter, value);
  }
  const Ref kind(PyLong_FromLongLong(type));
  PyObject* arguments[] = {kind.get(), value};
  const Ref number(PyObject_Vectorcall(caller_.support.number_of, arguments, 2, nullptr));
  if (!number) return false;
  if (is_none(number.get())) return wrong_type(parameter, value);
  to.i = PyLong_AsLongLong(number.get());  // a dtype or a device in DLPack's bits
  to.type = type == KILN_TYPE_BOOL    ? ffi::kBool
            : type == KILN_TYPE_DTYPE ? ffi::kDtype
                                      : ffi::kDevice;
  return true;
}

bool PythonCall::take_list(size_t parameter, PyObject* value, ffi::Any& to) {
  const KilnParameter& p = info_.parameters[parameter];
  const intptr_t count = PySequence_Size(value);
  if (count < 0) return wrong_type(parameter, value);
  lists_.push_back(std::make_unique<List>());
  List& list = *lists_.back();
  list.items.resize(static_cast<size_t>(count) + 1);
  for (intptr_t k = 0; k < count; k++) {
    const Ref item(PySequence_GetItem(value, k));
    if (!item) return wrong_type(parameter, value);
    ffi::Any& to_item = list.items[static_cast<size_t>(k)];
    if (p.type == KILN_TYPE_TENSOR_LIST) {
      if (!take_array(p.name, item.get(), false, to_item)) return false;
    } else if (p.type == KILN_TYPE_FLOAT_LIST) {
      to_item.type = ffi::kFloat;
      to_item.f = PyFloat_AsDouble(item.get());
      if (PyErr_Occurred()) return wrong_type(parameter, value);
    } else {
      const Ref index(PyNumber_Index(item.get()));
      to_item.type = ffi::kInt;
      if (index) to_item.i = PyLong_AsLongLong(index.get());
      if (!index || PyErr_Occurred()) return wrong_type(parameter, value);
    }
  }
  list.array = {{1, ffi::kArray, 0, nullptr}, list.items.data(), count, count, nullptr};
  to.type = ffi::kArray;
  to.object = &list.array.object;
  return true;
}

bool PythonCall::take(size_t parameter) {
  const KilnParameter& p = info_.parameters[parameter];
  PyObject* value = bound_[parameter];
  ffi::Any& to = values_[parameter];
  if (!value) {
    to.type = ffi::kLeftOut;
    return p.flags & kHasValue ? true : fail("missing", p.name, nullptr);
  }
  if (is_none(value) && (p.flags & KILN_PARAMETER_OPTIONAL)) return true;
  switch (p.type) {
    case KILN_TYPE_TENSOR:
      return take_array(p.name, value, p.flags & KILN_PARAMETER_MUTABLE, to);
    case KILN_TYPE_INT:
    case KILN_TYPE_FLOAT:
      return take_number(parameter, value, to);
    case KILN_TYPE_TENSOR_LIST:
    case KILN_TYPE_INT_LIST:
    case KILN_TYPE_FLOAT_LIST:
      return take_list(parameter, value, to);
    default:
      return take_special(parameter, value, to);
  }
}

bool PythonCall::take_out() {
  const size_t wanted = tensor_results(info_);
  if (wanted == 0) return fail("no_results", "out", out_);
  if (wanted == 1) {
    values_.push_back({});
    return take_array("out", out_, true, values_.back());
  }
  if (PySequence_Size(out_) != static_cast<intptr_t>(wanted)) {
    PyErr_Clear();
    return fail("out_count", "out", out_);
  }
  for (size_t i = 0; i < wanted; i++) {
    const Ref item(PySequence_GetItem(out_, static_cast<intptr_t>(i)));
    values_.push_back({});
    if (!item || !take_array("out", item.get(), true, values_.back())) return false;
  }
  return true;
}

PyObject* PythonCall::array(ffi::TensorObject* tensor) {
  // An op without an array among its arguments gives NumPy's.
  const Ref type(like_ ? PyObject_Type(like_) : shared(&_Py_NoneStruct).give());
  PyObject* maker = PyDict_GetItemWithError(caller_.support.makers, type.get());
  if (!maker) {
    PyObject* arguments[] = {like_ ? like_ : &_Py_NoneStruct};
    const Ref found(PyObject_Vectorcall(caller_.support.find_maker, arguments, 1, nullptr));
    maker = found ? PyDict_GetItemWithError(caller_.support.makers, type.get()) : nullptr;
  }
  if (!maker) {
    tensor->object.destroy(tensor, ffi::kDestroyContent | ffi::kFreeMemory);
    return nullptr;
  }
  const bool versioned = !is_none(PyTuple_GetItem(maker, 1));
  const Ref capsule = capsule_of(tensor, versioned);
  PyObject* arguments[] = {capsule.get()};
  return PyObject_Vectorcall(PyTuple_GetItem(maker, 0), arguments, 1, nullptr);
}

PyObject* PythonCall::result(const ffi::Any& any) {
  switch (any.type) {
    case ffi::kNone:
      return shared(&_Py_NoneStruct).give();
    case ffi::kInt:
      return PyLong_FromLongLong(any.i);
    case ffi::kBool:
      return PyBool_FromLong(any.i != 0);
    case ffi::kFloat:
      return PyFloat_FromDouble(any.f);
    case ffi::kTensor:
      return array(reinterpret_cast<ffi::TensorObject*>(any.object));
    default:
      break;
  }
  auto* list = reinterpret_cast<ffi::ArrayObject*>(any.object);
  Ref all(PyTuple_New(list->count));
  bool good = static_cast<bool>(all);
  for (int64_t i = 0; i < list->count; i++) {
    PyObject* item = good ? result(list->items[i]) : nullptr;
    good = good && item;
    if (item) PyTuple_SetItem(all.get(), i, item);
    list->items[i] = {};  // what it held is the item's now
  }
  list->object.destroy(list, ffi::kDestroyContent | ffi::kFreeMemory);
  return good ? all.give() : nullptr;
}

PyObject* PythonCall::run(PyObject* const* args, intptr_t count, PyObject* names) {
  if (!bind(args, count, names)) return nullptr;
  for (size_t i = 0; i < bound_.size(); i++)
    if (!take(i)) return nullptr;
  if (out_ && !take_out()) return nullptr;
  ffi::Any answer = {};
  PyThreadState* state = PyEval_SaveThread();
  const int failed =
      caller_.symbol(nullptr, values_.data(), static_cast<int32_t>(values_.size()), &answer);
  PyEval_RestoreThread(state);
  if (failed) {
    fail("op", "", nullptr, caller_.library->last_error());
    return nullptr;
  }
  if (out_ && answer.type == ffi::kNone) return shared(out_).give();
  return result(answer);
}

}  // namespace kiln::callers
