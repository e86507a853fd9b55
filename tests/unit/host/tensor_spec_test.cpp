// SPDX-License-Identifier: Apache-2.0
// Does each form of the grammar of tensors give the tensor that it says, and each wrong one a
// reason?
#include "host/tensor_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kiln/abi.h>

#include <cmath>

#include "host/generate.h"

namespace kiln::host {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Array made_of(const std::string& text, uint64_t seed = 0) {
  Result<TensorSpec> spec = parse_tensor_spec(text);
  EXPECT_TRUE(spec) << (spec ? "" : format(spec.error()));
  if (!spec) return {};
  Result<Array> array = make_array(*spec, seed);
  EXPECT_TRUE(array) << (array ? "" : format(array.error()));
  return array ? std::move(*array) : Array{};
}

// The elements in row-major order of the view.
std::vector<std::string> elements_of(const Array& array) {
  std::vector<std::string> texts;
  const DType& type = array.type();
  for_each_element(array.layout, [&](int64_t, int64_t offset) {
    const uint8_t* at = array.storage.data() + static_cast<size_t>(offset) * type.bytes;
    texts.push_back(element_text(type, load_element(type, at), 0));
  });
  return texts;
}

std::vector<std::string> elements_of(const std::string& text) { return elements_of(made_of(text)); }

std::string refused_spec(const std::string& text) {
  Result<TensorSpec> spec = parse_tensor_spec(text);
  EXPECT_FALSE(spec) << text;
  return spec ? "" : format(spec.error());
}

TEST(TensorSpec, Shapes) {
  EXPECT_THAT(made_of("zeros:f32:4x5").layout.sizes, ElementsAre(4, 5));
  EXPECT_THAT(made_of("zeros:f32:2^10").layout.sizes, ElementsAre(1024));
  EXPECT_THAT(made_of("zeros:f32:3x2^2x1").layout.sizes, ElementsAre(3, 4, 1));
  EXPECT_THAT(made_of("zeros:f32:scalar").layout.sizes, ElementsAre());
  EXPECT_EQ(element_count(made_of("zeros:f32:scalar")), 1);
  EXPECT_EQ(element_count(made_of("zeros:f32:0")), 0);
  EXPECT_EQ(element_count(made_of("zeros:f32:3x0x2")), 0);
  EXPECT_THAT(made_of("zeros:f32:3x0x2").layout.strides, ElementsAre(2, 2, 1));
}

TEST(TensorSpec, Kinds) {
  EXPECT_THAT(elements_of("arange:i64:5"), ElementsAre("0", "1", "2", "3", "4"));
  EXPECT_THAT(elements_of("arange=10,-3:i16:3"), ElementsAre("10", "7", "4"));
  EXPECT_THAT(elements_of("arange=0.5,0.25:f64:3"), ElementsAre("0.5", "0.75", "1"));
  EXPECT_THAT(elements_of("ones:bf16:2"), ElementsAre("1", "1"));
  EXPECT_THAT(elements_of("ones:bool:2"), ElementsAre("true", "true"));
  EXPECT_THAT(elements_of("zeros:c64:1"), ElementsAre("0+0j"));
  EXPECT_THAT(elements_of("full=3:f32:2"), ElementsAre("3", "3"));
  EXPECT_THAT(elements_of("full=0.1:f32:1"), ElementsAre("0.1"));
  EXPECT_THAT(elements_of("full=1,-2:c128:1"), ElementsAre("1-2j"));
  EXPECT_THAT(elements_of("full=18446744073709551615:u64:1"), ElementsAre("18446744073709551615"));
  EXPECT_THAT(elements_of("full=-128:i8:1"), ElementsAre("-128"));
  EXPECT_THAT(elements_of("full=-inf:f16:1"), ElementsAre("-inf"));
  EXPECT_THAT(elements_of("full=nan:f8e4m3:1"), ElementsAre("nan"));
  EXPECT_THAT(elements_of("full=448:f8e4m3:1"), ElementsAre("448"));
  EXPECT_THAT(elements_of("eye:i32:2x3"), ElementsAre("1", "0", "0", "0", "1", "0"));
  EXPECT_THAT(elements_of("eye:f32:2x2:t"), ElementsAre("1", "0", "0", "1"));
  EXPECT_THAT(elements_of("empty:f32:1"), ElementsAre("nan"));
  EXPECT_THAT(elements_of("empty:u8:1"), ElementsAre("165"));
}

TEST(TensorSpec, RandomKindsFollowTheSeed) {
  EXPECT_EQ(elements_of("randn:f32:100:seed=3"), elements_of("randn:f32:100:seed=3"));
  EXPECT_NE(elements_of("randn:f32:100:seed=3"), elements_of("randn:f32:100:seed=4"));
  EXPECT_EQ(elements_of(made_of("randn:f32:9", 5)), elements_of("randn:f32:9:seed=5"));
  for (const std::string& value : elements_of("rand:bf16:1000")) {
    EXPECT_GE(std::stod(value), 0);
    EXPECT_LT(std::stod(value), 1);
  }
  for (const std::string& value : elements_of("randint=-2,3:i8:100")) {
    EXPECT_GE(std::stoi(value), -2);
    EXPECT_LT(std::stoi(value), 3);
  }
}

// A thread must not change a value: the array is large enough for several.
TEST(TensorSpec, ThreadsDoNotChangeTheValues) {
  const Array large = made_of("randn:f32:2^20:seed=1");
  const Array one_row = made_of("randn:f32:2^20x1:seed=1:strides=1,0");
  EXPECT_EQ(large.storage, one_row.storage);
}

TEST(TensorSpec, StridedViewsHavePoisonBetween) {
  const Array array = made_of("arange:f32:2x3:strides=8,2:offset=1");
  EXPECT_THAT(elements_of(array), ElementsAre("0", "1", "2", "3", "4", "5"));
  EXPECT_EQ(array.layout.offset, 1);
  EXPECT_EQ(array.storage.size(), 4u * (1 + 8 + 4 + 1));
  Array whole = array;
  whole.layout = {Dims(1, 14), Dims(1, 1), 0};
  EXPECT_THAT(elements_of(whole), ElementsAre("nan", "0", "nan", "1", "nan", "2", "nan", "nan",
                                              "nan", "3", "nan", "4", "nan", "5"));
}

TEST(TensorSpec, TransposedIsTheSameTensorOtherwiseInMemory) {
  const Array array = made_of("arange:i32:2x3:t");
  EXPECT_THAT(array.layout.strides, ElementsAre(1, 2));
  EXPECT_THAT(elements_of(array), ElementsAre("0", "1", "2", "3", "4", "5"));
  EXPECT_THAT(made_of("zeros:f32:5x2x3:t").layout.strides, ElementsAre(6, 1, 2));
}

TEST(TensorSpec, StrideZeroRepeats) {
  const Array array = made_of("arange:f32:2x3:strides=0,1");
  EXPECT_THAT(elements_of(array), ElementsAre("0", "1", "2", "0", "1", "2"));
  EXPECT_EQ(array.storage.size(), 12u);
}

TEST(TensorSpec, OffsetMisaligns) {
  const Array array = made_of("ones:f16:4:offset=3");
  EXPECT_EQ(array.layout.offset, 3);
  EXPECT_EQ(array.storage.size(), 14u);
  EXPECT_THAT(elements_of(array), ElementsAre("1", "1", "1", "1"));
}

TEST(TensorSpec, Devices) {
  EXPECT_EQ(parse_tensor_spec("zeros:f32:4@cuda:1")->device, (Device{KILN_DEVICE_CUDA, 1}));
  EXPECT_EQ(parse_tensor_spec("zeros:f32:4:offset=1@cpu")->device, (Device{KILN_DEVICE_CPU, 0}));
  EXPECT_EQ(parse_tensor_spec("a@b.npy")->path, "a@b.npy");
  EXPECT_EQ(parse_tensor_spec("a.npy@cuda")->path, "a.npy");
  EXPECT_EQ(parse_tensor_spec("dir:x/a.npy:t")->path, "dir:x/a.npy");
}

TEST(TensorSpec, WrongOnesSayWhy) {
  EXPECT_THAT(refused_spec("ran:f32:4"), HasSubstr("'ran' is not a kind of tensor"));
  EXPECT_THAT(refused_spec("randn"), HasSubstr("a tensor is KIND:DTYPE:SHAPE"));
  EXPECT_THAT(refused_spec("randn:f32"), HasSubstr("for example randn:f32:1024x1024"));
  EXPECT_THAT(refused_spec("randn:f33:4"), HasSubstr("unknown dtype 'f33'"));
  EXPECT_THAT(refused_spec("randn:i32:4"), HasSubstr("randint=0,10:i32"));
  EXPECT_THAT(refused_spec("ones:f32:4xx5"), HasSubstr("'' is not a size"));
  EXPECT_THAT(refused_spec("ones:f32:-4"), HasSubstr("'-4' is not a size"));
  EXPECT_THAT(refused_spec("ones:f32:99999999999999999999"), HasSubstr("is not a size"));
  EXPECT_THAT(refused_spec("ones:f32:2^40x2^40"), HasSubstr("too many elements"));
  EXPECT_THAT(refused_spec("ones:f32:0x2^40x2^40"), HasSubstr("too many elements"));
  EXPECT_THAT(refused_spec("ones:f32:4:color=3"), HasSubstr("unknown option 'color=3'"));
  EXPECT_THAT(refused_spec("ones:f32:4:strides=1,1"), HasSubstr("2 strides for 1 dimensions"));
  EXPECT_THAT(refused_spec("ones:f32:4:strides=-1"), HasSubstr("'-1' is not a stride"));
  EXPECT_THAT(refused_spec("ones:f32:2^30:strides=2^40"), HasSubstr("is too large"));
  EXPECT_THAT(refused_spec("ones:f32:2^40:strides=0:offset=2^62"), HasSubstr("is too large"));
  EXPECT_THAT(refused_spec("ones:f32:4x4:strides=4,1:t"), HasSubstr("leave one of them out"));
  EXPECT_THAT(refused_spec("ones:f32:4:t"), HasSubstr("two dimensions"));
  EXPECT_THAT(refused_spec("full:f32:4"), HasSubstr("takes 1 to 2 numbers"));
  EXPECT_THAT(refused_spec("full=300:u8:4"), HasSubstr("300 does not fit in u8"));
  EXPECT_THAT(refused_spec("full=2:bool:4"), HasSubstr("2 does not fit in bool"));
  EXPECT_THAT(refused_spec("full=1.5:i32:4"), HasSubstr("'1.5' is not an integer"));
  EXPECT_THAT(refused_spec("full=1,2:f32:4"), HasSubstr("imaginary"));
  EXPECT_THAT(refused_spec("randint=5,5:i32:4"), HasSubstr("LOW below HIGH"));
  EXPECT_THAT(refused_spec("randint=5:i32:4"), HasSubstr("takes 2 to 2"));
  EXPECT_THAT(refused_spec("eye:f32:4"), HasSubstr("two dimensions"));
  EXPECT_THAT(refused_spec("ones:f32:4@tpu"), HasSubstr("unknown device 'tpu'"));
  EXPECT_THAT(refused_spec("ones:f32:4@cuda:x"), HasSubstr("unknown device"));
  EXPECT_THAT(refused_spec("a.npy:as=f99"), HasSubstr("unknown dtype 'f99'"));
  std::string many = "ones:f32:1";
  for (int i = 0; i < 64; ++i) many += "x1";
  EXPECT_THAT(refused_spec(many), HasSubstr("65 dimensions"));
}

TEST(TensorSpec, WhatDoesNotFitInMemoryIsAnErrorOfTheEnvironment) {
  Result<TensorSpec> spec = parse_tensor_spec("zeros:f64:2^50");
  ASSERT_TRUE(spec);
  Result<Array> array = make_array(*spec, 0);
  ASSERT_FALSE(array);
  EXPECT_EQ(array.error().fault, Fault::Environment);
}

TEST(Numbers, Integers) {
  EXPECT_EQ(parse_integer("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(parse_integer("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parse_integer("9223372036854775808"), std::nullopt);
  EXPECT_EQ(parse_integer("0x10"), 16);
  EXPECT_EQ(parse_integer("2^62"), int64_t{1} << 62);
  EXPECT_EQ(parse_integer("2^63"), std::nullopt);
  for (const char* bad :
       {"", "-", "1.5", "1e3", "12a", " 1", "0x", "--1", "-+1", "2^", "^2", "2^-1"})
    EXPECT_EQ(parse_integer(bad), std::nullopt) << bad;
}

TEST(Numbers, Floats) {
  EXPECT_EQ(parse_float("1e3"), 1000.0);
  EXPECT_EQ(parse_float("-.5"), -0.5);
  EXPECT_EQ(parse_float("+2.5"), 2.5);
  EXPECT_EQ(parse_float("7"), 7.0);
  EXPECT_TRUE(std::isnan(*parse_float("nan")));
  EXPECT_EQ(parse_float("-inf"), -INFINITY);
  for (const char* bad : {"", "x", "1.5x", "1 ", "1e999", "."})
    EXPECT_EQ(parse_float(bad), std::nullopt) << bad;
}

TEST(DTypes, NamesFindThem) {
  EXPECT_EQ(find_dtype("torch.bfloat16")->code, KILN_BF16);
  EXPECT_EQ(find_dtype("float")->code, KILN_F32);
  EXPECT_EQ(find_dtype("f8e5m2")->code, KILN_F8E5M2);
  EXPECT_EQ(find_dtype("f33"), nullptr);
  EXPECT_EQ(find_dtype(12), nullptr);
  for (const DType& type : dtypes()) {
    EXPECT_EQ(find_dtype(type.name), &type);
    EXPECT_EQ(find_dtype(type.torch_name), &type);
    EXPECT_EQ(find_dtype(type.code), &type);
  }
}

}  // namespace
}  // namespace kiln::host
