// SPDX-License-Identifier: Apache-2.0
// How do Values, tensors and Python objects become each other? All of it needs the GIL.
#pragma once

#include <kiln/compat/value.h>

#include "python_api.h"

namespace kiln::compat {

// Throws the Python error that is set, as an at::Error that boundary functions turn back into the
// very same exception.
[[noreturn]] void throw_python_error();
Ref checked(PyObject* made);  // throws if null

const Ref& torch_attribute(const char* module,
                           const char* name);  // kept for the life of the process

bool is_tensor(PyObject* object);
at::Tensor tensor_from(PyObject* object);
Ref object_from(const at::Tensor& tensor);
Ref object_from(const Value& value);
Ref dtype_object(at::ScalarType type);
Ref device_object(at::Device device);
std::string text_of(PyObject* object);  // str(object)

// False: the object is none of this type (nothing is set). `convert`: as pybind11's second pass.
bool load(const Type& type, PyObject* object, bool convert, Value& value);
std::string name_of(const Type& type);  // as pybind11 writes it in a signature

// Sets the Python exception that stands for the C++ exception being handled.
void set_python_error();

at::Tensor adopt_handle(void* handle);
void* new_handle(const at::Tensor& tensor);
bool engine_stands_in();  // CPU tensors are reported as CUDA's: KILN_DEVICE=engine

}  // namespace kiln::compat
