// SPDX-License-Identifier: Apache-2.0
// What does an op library tell and do for a caller without torch? The ops below are in this
// program; the archive describes and calls them through kiln/abi.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kiln/abi.h"
#include "kiln/op.h"

extern "C" const KilnLibrary* kiln_library(void);

namespace ops {

kiln::Tensor same_sizes(const kiln::Tensor& a, const kiln::Tensor& b) {
  KILN_CHECK(a.sizes() == b.sizes(), "shapes differ: ", a.sizes(), " and ", b.sizes(), " of ",
             a.dtype());
  return kiln::empty_like(a);
}
KILN_OP(same_sizes, "a, b").fake("like(a)").doc("Nothing but a check.");

void negate(kiln::Tensor& x) {
  kiln::dispatch<float, int>(x.dtype(), [&](auto t) {
    using T = typename decltype(t)::type;
    for (T *p = x.data<T>(), *end = p + x.numel(); p < end; p++) *p = -*p;
  });
}
KILN_OP(negate, "x");

kiln::Tuple<int64_t, double, bool> scalars(int64_t n, double f, bool g, kiln::Str s,
                                           kiln::Span<const int64_t> list,
                                           kiln::Optional<kiln::Tensor> maybe, kiln::Dtype d) {
  int64_t sum = n + static_cast<int64_t>(s.size()) + static_cast<int64_t>(d);
  for (int64_t v : list) sum += v;
  return {sum, 2 * f, g == maybe.has_value()};
}
KILN_OP(scalars, "scalars.all(n, f=1.5, g=True, *, s='ab', list=[10, 20], maybe=None, d)");

int narrow(int n) { return n; }
KILN_OP(narrow);

kiln::TensorVec split(const kiln::Tensor& x, int64_t parts) {
  kiln::TensorVec all;
  for (int64_t i = 0; i < parts; i++)
    all.push(kiln::zeros({x.numel() / parts}, x.dtype(), x.device()));
  return all;
}
KILN_OP(split, "x, parts=2");

kiln::Tensor transposed_like(const kiln::Tensor& x) { return kiln::empty_like(x); }
KILN_OP(transposed_like, "x");

float first(const kiln::Tensor& x) { return x.view<const float, 2>().data[0]; }
KILN_OP(first, "x");

int64_t per_tile(int64_t n) {
  int64_t seen = 0;
  kiln::dispatch_value<64, 128>(n, [&](auto v) { seen = v * 2; });
  return seen;
}
KILN_OP(per_tile, "n");

}  // namespace ops

namespace {

using testing::HasSubstr;

struct Host {
  float data[6] = {1, 2, 3, 4, 5, 6};
  int64_t sizes[2] = {2, 3};
  int64_t strides[2] = {3, 1};
  KilnTensor tensor{data, sizes, strides, 2, KILN_F32, KILN_DEVICE_CPU, 0, nullptr, nullptr};
  KilnValue value() {
    KilnValue v{};
    v.type = KILN_TYPE_TENSOR;
    v.as.tensor = &tensor;
    return v;
  }
};

KilnValue integer(int64_t i) {
  KilnValue v{};
  v.type = KILN_TYPE_INT;
  v.as.i = i;
  return v;
}

uint32_t op_named(const char* name) {
  for (uint32_t i = 0; i < kiln_library()->op_count; i++)
    if (!strcmp(kiln_library()->ops[i].name, name)) return i;
  ADD_FAILURE() << "no op " << name;
  return 0;
}

// KILN_DEVICE=engine is set for this program by its CMakeLists: CPU tensors are allowed on a
// machine with a GPU too.
int call(const char* op, std::initializer_list<KilnValue> arguments, KilnValue* results) {
  return kiln_library()->call(op_named(op), arguments.begin(),
                              static_cast<uint32_t>(arguments.size()), results);
}
std::string error() { return kiln_library()->last_error(); }

TEST(Library, DescribesItsOps) {
  const KilnLibrary* library = kiln_library();
  EXPECT_EQ(library->abi_version, KILN_ABI_VERSION);
  EXPECT_STREQ(library->name, "runtime_test");
  ASSERT_EQ(library->op_count, 8u);
  const KilnOpInfo& op = library->ops[op_named("same_sizes")];
  EXPECT_STREQ(op.schema, "same_sizes(Tensor a, Tensor b) -> Tensor");
  EXPECT_STREQ(op.fake, "like(a)");
  EXPECT_STREQ(op.doc, "Nothing but a check.");
  EXPECT_THAT(op.file, HasSubstr("library_test.cpp"));
  EXPECT_STREQ(library->ops[op_named("negate")].schema, "negate(Tensor(a!) x) -> ()");
  EXPECT_EQ(library->ops[op_named("negate")].parameters[0].flags, uint32_t{KILN_PARAMETER_MUTABLE});
  EXPECT_STREQ(library->ops[op_named("narrow")].schema, "narrow(SymInt arg0) -> SymInt");
  EXPECT_STREQ(library->ops[op_named("split")].schema,
               "split(Tensor x, SymInt parts=2) -> Tensor[]");
}

TEST(Library, ReadsDefaultsAndMarks) {
  const KilnOpInfo& op = kiln_library()->ops[op_named("scalars")];
  EXPECT_STREQ(op.overload, "all");
  EXPECT_STREQ(op.schema,
               "scalars.all(SymInt n, float f=1.5, bool g=True, *, str s=\"ab\", SymInt[] "
               "list=[10, 20], Tensor? maybe=None, "
               "ScalarType d) -> (SymInt, float, bool)");
  EXPECT_EQ(op.parameters[1].default_value.as.f, 1.5);
  EXPECT_EQ(op.parameters[2].default_value.as.i, 1);
  EXPECT_STREQ(op.parameters[3].default_value.as.s, "ab");
  EXPECT_EQ(op.parameters[3].flags,
            uint32_t{KILN_PARAMETER_KEYWORD_ONLY | KILN_PARAMETER_HAS_DEFAULT});
  EXPECT_EQ(op.parameters[4].default_value.count, 2u);
  EXPECT_EQ(op.parameters[4].default_value.as.ints[1], 20);
  EXPECT_EQ(op.parameters[5].default_value.type, uint32_t{KILN_TYPE_NONE});
}

TEST(Library, CallsAnOpAndGivesItsResult) {
  Host a, b;
  KilnValue result;
  ASSERT_EQ(call("same_sizes", {a.value(), b.value()}, &result), 0) << error();
  ASSERT_EQ(result.type, uint32_t{KILN_TYPE_TENSOR});
  const KilnTensor* out = result.as.tensor;
  EXPECT_EQ(out->ndim, 2);
  EXPECT_EQ(out->sizes[1], 3);
  EXPECT_EQ(out->dtype, KILN_F32);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(out->data) % 256, 0u);
  result.as.tensor->release(result.as.tensor);
}

TEST(Library, WritesInPlace) {
  Host a;
  ASSERT_EQ(call("negate", {a.value()}, nullptr), 0) << error();
  EXPECT_EQ(a.data[5], -6);
}

TEST(Library, PassesScalarsListsAndOptionals) {
  KilnValue f{}, g{}, s{}, list{}, none{}, d{}, results[3];
  f.type = KILN_TYPE_FLOAT;
  f.as.f = 4.5;
  g.type = KILN_TYPE_BOOL;
  s.type = KILN_TYPE_STR;
  s.as.s = "four";
  s.count = 4;
  const int64_t values[] = {100, 200};
  list.type = KILN_TYPE_INT_LIST;
  list.as.ints = values;
  list.count = 2;
  d.type = KILN_TYPE_DTYPE;
  d.as.i = KILN_F32;
  ASSERT_EQ(call("scalars", {integer(1), f, g, s, list, none, d}, results), 0) << error();
  EXPECT_EQ(results[0].as.i, 1 + 4 + 6 + 300);
  EXPECT_EQ(results[1].as.f, 9.0);
  EXPECT_EQ(results[2].as.i, 1);
}

TEST(Library, GivesListsOfTensors) {
  Host a;
  KilnValue result;
  ASSERT_EQ(call("split", {a.value(), integer(3)}, &result), 0) << error();
  ASSERT_EQ(result.count, 3u);
  for (uint32_t i = 0; i < 3; i++) {
    EXPECT_EQ(result.as.tensors[i]->sizes[0], 2);
    EXPECT_EQ(static_cast<float*>(result.as.tensors[i]->data)[1], 0);
    result.as.tensors[i]->release(result.as.tensors[i]);
  }
  free(const_cast<KilnTensor**>(result.as.tensors));
}

TEST(Library, KeepsTheOrderOfStrides) {
  Host a;
  a.strides[0] = 1;
  a.strides[1] = 2;
  KilnValue result;
  ASSERT_EQ(call("transposed_like", {a.value()}, &result), 0) << error();
  EXPECT_EQ(result.as.tensor->strides[0], 1);
  EXPECT_EQ(result.as.tensor->strides[1], 2);
  result.as.tensor->release(result.as.tensor);
  a.strides[0] = 0;  // a broadcast row has no dense strides to keep
  a.strides[1] = 1;
  ASSERT_EQ(call("transposed_like", {a.value()}, &result), 0) << error();
  EXPECT_EQ(result.as.tensor->strides[0], 3);
  EXPECT_EQ(result.as.tensor->strides[1], 1);
  result.as.tensor->release(result.as.tensor);
}

TEST(LibraryErrors, SayWhatTheAuthorWrote) {
  Host a, b;
  b.sizes[1] = 2;
  KilnValue result;
  ASSERT_EQ(call("same_sizes", {a.value(), b.value()}, &result), 1);
  EXPECT_THAT(error(), HasSubstr("same_sizes: shapes differ: [2, 3] and [2, 2] of f32"));
  EXPECT_THAT(error(), HasSubstr("at: library_test.cpp:"));
}

TEST(LibraryErrors, NameTheDtypesOfADispatch) {
  Host a;
  a.tensor.dtype = KILN_F64;
  ASSERT_EQ(call("negate", {a.value()}, nullptr), 1);
  EXPECT_THAT(error(), HasSubstr("negate: dtype f64 is not supported"));
  EXPECT_THAT(error(), HasSubstr("f32, i32"));
}

TEST(LibraryErrors, NameTheValuesOfADispatch) {
  KilnValue result;
  ASSERT_EQ(call("per_tile", {integer(128)}, &result), 0) << error();
  EXPECT_EQ(result.as.i, 256);
  ASSERT_EQ(call("per_tile", {integer(96)}, &result), 1);
  EXPECT_THAT(error(), HasSubstr("the value 96 is not supported"));
  EXPECT_THAT(error(), HasSubstr("64, 128"));
}

TEST(LibraryErrors, RefuseWrongAccess) {
  Host a;
  KilnValue result;
  a.tensor.dtype = KILN_I32;
  ASSERT_EQ(call("first", {a.value()}, &result), 1);
  EXPECT_THAT(error(), HasSubstr("x.view<f32>() on a tensor of i32"));
  a.tensor.dtype = KILN_F32;
  a.tensor.ndim = 1;
  ASSERT_EQ(call("first", {a.value()}, &result), 1);
  EXPECT_THAT(error(), HasSubstr("with 2 dimensions on a tensor of sizes [2]"));
  Host t;
  t.strides[0] = 1;
  t.strides[1] = 2;
  ASSERT_EQ(call("negate", {t.value()}, nullptr), 1);
  EXPECT_THAT(error(), HasSubstr("not contiguous: sizes [2, 3], strides [1, 2]"));
}

TEST(LibraryErrors, RefuseValuesThatDoNotFit) {
  KilnValue result;
  ASSERT_EQ(call("narrow", {integer(int64_t{1} << 40)}, &result), 1);
  EXPECT_THAT(error(), HasSubstr("1099511627776 does not fit"));
}

TEST(LibraryErrors, RefuseWrongTypesAndCounts) {
  KilnValue result;
  ASSERT_EQ(call("same_sizes", {integer(1), integer(2)}, &result), 1);
  EXPECT_THAT(error(), HasSubstr("argument a of same_sizes has the wrong type"));
  ASSERT_EQ(call("same_sizes", {}, &result), 1);
  EXPECT_THAT(error(), HasSubstr("takes 2 arguments and got 0"));
  EXPECT_EQ(kiln_library()->call(99, nullptr, 0, nullptr), 1);
}

TEST(LibraryErrors, RefuseTwoDevices) {
  Host a, b;
  b.tensor.device_type = KILN_DEVICE_CUDA;
  KilnValue result;
  ASSERT_EQ(call("same_sizes", {a.value(), b.value()}, &result), 1);
  EXPECT_THAT(error(), HasSubstr("tensors on two devices"));
  EXPECT_THAT(error(), HasSubstr("a is on cpu, b is on cuda:0"));
}

TEST(Library, SaysThatTorchIsNotHere) {
  EXPECT_NE(kiln_library()->register_torch(), 0);
  EXPECT_THAT(kiln_library()->torch_status(), HasSubstr("import torch first"));
}

}  // namespace
