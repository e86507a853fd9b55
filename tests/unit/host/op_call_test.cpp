// SPDX-License-Identifier: Apache-2.0
// Do texts reach an op as the arguments that they say, and do its results come back?
#include "host/op_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/arguments.h"
#include "host/summary.h"

namespace kiln::host {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Texts = std::vector<std::string>;

const OpLibrary& library() {
  static const Result<OpLibrary> fake = OpLibrary::open(FAKE_GOOD_LIBRARY);
  return *fake;
}

Result<std::vector<Output>> called(const std::string& op, const Texts& texts) {
  TRY(const BoundCall bound, bind_call(library().ops(), op, texts));
  TRY(OpCall call, OpCall::prepare(library(), bound, {KILN_DEVICE_CPU, 0}, 0));
  CHECK_OK(call.call());
  CHECK_OK(call.synchronize());
  return call.outputs();
}

std::vector<std::string> shown(const std::string& op, const Texts& texts) {
  const Result<std::vector<Output>> outputs = called(op, texts);
  EXPECT_TRUE(outputs) << (outputs ? "" : format(outputs.error()));
  std::vector<std::string> lines;
  if (outputs)
    for (const Output& output : *outputs)
      lines.push_back(
          output.name + (output.in_place ? "!" : "") + " = " +
          (output.array ? elements_text(*output.array, 3, "") : scalar_text(output.scalar)));
  return lines;
}

std::string refused_call(const std::string& op, const Texts& texts) {
  const Result<std::vector<Output>> outputs = called(op, texts);
  EXPECT_FALSE(outputs);
  return outputs ? "" : format(outputs.error());
}

TEST(OpCall, Tensors) {
  EXPECT_THAT(shown("add", {"arange:f32:4", "ones:f32:4"}), ElementsAre("result = [1 2 3 4]"));
  EXPECT_THAT(shown("add", {"arange:f32:4", "ones:f32:4", "alpha=10"}),
              ElementsAre("result = [10 11 12 13]"));
  EXPECT_THAT(shown("add", {"b=ones:f32:2x2", "a=arange:f32:2x2"}),
              ElementsAre("result = [[1 2]\n [3 4]]"));
  EXPECT_THAT(shown("add", {"arange:f32:2x3:t", "full=1:f32:2x3:strides=7,2:offset=3"}),
              ElementsAre("result = [[1 2 3]\n [4 5 6]]"));
  EXPECT_THAT(shown("add", {"ones:f32:0", "ones:f32:0"}), ElementsAre("result = []"));
  EXPECT_THAT(shown("add", {"ones:f32:scalar", "ones:f32:scalar"}), ElementsAre("result = 2"));
}

TEST(OpCall, EveryKindOfArgument) {
  EXPECT_THAT(shown("everything", {"-3", "2.5", "true", "hello", "bf16", "cuda:1", "[1,-2,3]",
                                   "[0.5,1e3]", "[ones:f32:4,randint=0,10:i32:2x3,ones:f32:0]"}),
              ElementsAre("result = \"i=-3 f=2.5 b=1 s=hello/5 dtype=15 device=1:1 ints=1,-2,3, "
                          "floats=0.5,1000, tensors=4,6,0, "
                          "maybe=none\""));
  EXPECT_THAT(shown("everything", {"2^10", "7", "0", "'none'", "torch.int64", "cpu", "[]", "[]",
                                   "[]", "ones:f32:1"}),
              ElementsAre("result = \"i=1024 f=7 b=0 s=none/4 dtype=4 device=0:0 ints= floats= "
                          "tensors= maybe=tensor\""));
  EXPECT_THAT(
      shown("everything", {"maybe=none", "tensors=[]", "floats=1,2", "ints=[5]", "device=engine",
                           "dtype=u8", "s=a=b", "b=False", "f=inf", "i=0x1f"}),
      ElementsAre("result = \"i=31 f=inf b=0 s=a=b/3 dtype=0 device=0:0 ints=5, floats=1,2, "
                  "tensors= maybe=none\""));
}

TEST(OpCall, EveryKindOfResult) {
  EXPECT_THAT(
      shown("many", {}),
      ElementsAre("result 0 = [[0 1 2]\n [3 4 5]]", "result 1 = true", "result 2 = [1, 2, 3]",
                  "result 3 = [0.5, -1]", "result 4[0] = [0 0]", "result 4[1] = 0",
                  "result 5 = bf16", "result 6 = cuda:1", "result 7 = none"));
}

TEST(OpCall, InPlace) {
  EXPECT_THAT(shown("fill_", {"zeros:f32:3", "7"}), ElementsAre("x! = [7 7 7]"));
  EXPECT_THAT(shown("twice_", {"arange:f32:3"}), ElementsAre("result! = [0 2 4]"));
}

TEST(OpCall, OverloadsByHowTheNumberIsWritten) {
  EXPECT_THAT(shown("scale", {"ones:f32:4", "3"}), ElementsAre("result = 12"));
  EXPECT_THAT(shown("scale", {"ones:f32:4", "3.5"}), ElementsAre("result = 14"));
  EXPECT_THAT(shown("scale.float", {"ones:f32:4", "3"}), ElementsAre("result = 12"));
  EXPECT_THAT(refused_call("scale.int", {"ones:f32:4", "3.5"}),
              HasSubstr("'value' expects int, got '3.5'"));
  EXPECT_THAT(
      refused_call("scale", {"ones:f32:4", "abc"}),
      AllOf(HasSubstr("no overload of scale matches"),
            HasSubstr("scale.int(Tensor x, SymInt value) -> SymInt: 'value' expects int"),
            HasSubstr("scale.float(Tensor x, float value) -> float: 'value' expects float")));
  EXPECT_THAT(refused_call("clash", {"abc"}),
              AllOf(HasSubstr("several overloads of clash match"), HasSubstr("clash.a, clash.b"),
                    HasSubstr("name the overload")));
}

TEST(OpCall, WrongArgumentsSayWhy) {
  EXPECT_THAT(refused_call("ad", {}),
              AllOf(HasSubstr("no op 'ad' in the library"), HasSubstr("did you mean add?")));
  EXPECT_THAT(refused_call("add", {"ones:f32:4"}),
              AllOf(HasSubstr("cannot call add(Tensor a, Tensor b"),
                    HasSubstr("'b' is missing; it expects Tensor")));
  EXPECT_THAT(refused_call("add", {"ones:f32:4", "3"}), HasSubstr("write full=3:f32:SHAPE"));
  EXPECT_THAT(refused_call("add", {"ones:f32:4", "b"}), HasSubstr("write KIND:DTYPE:SHAPE"));
  EXPECT_THAT(refused_call("add", {"ones:f33:4", "ones:f32:4"}), HasSubstr("unknown dtype 'f33'"));
  EXPECT_THAT(refused_call("add", {"ones:f32:4", "ones:f32:4", "2"}),
              HasSubstr("it takes 2 positional arguments; '2' is one too many"));
  EXPECT_THAT(refused_call("add", {"ones:f32:4", "ones:f32:4", "alpa=2"}),
              HasSubstr("did you mean 'alpha'?"));
  EXPECT_THAT(refused_call("add", {"ones:f32:4", "a=ones:f32:4"}), HasSubstr("'a' is given twice"));
  EXPECT_THAT(refused_call("add", {"a=ones:f32:4", "c=ones:f32:4"}),
              AllOf(HasSubstr("why: unknown parameter 'c'"),
                    HasSubstr("fix: its parameters: a, b, alpha")));
  EXPECT_THAT(refused_call("add", {"a=ones:f32:4", "ones:f32:4"}),
              HasSubstr("follows a named one"));
  EXPECT_THAT(refused_call("add", {"none", "ones:f32:4"}), HasSubstr("'a' is not optional"));
  EXPECT_THAT(refused_call("add", {"ones:f32:4@cuda", "ones:f32:4"}), HasSubstr("no GPU"));
  EXPECT_THAT(refused_call("add", {"no/such/file.npy", "ones:f32:4"}),
              HasSubstr("no/such/file.npy"));
}

TEST(OpCall, AFailureOfTheOpHasItsWords) {
  EXPECT_EQ(refused_call("fails", {}), "error: fails failed\n  why: it always fails");
  EXPECT_THAT(refused_call("add", {"ones:f32:4", "ones:f32:5"}), HasSubstr("add: shapes differ"));
}

TEST(OpCall, AResultThatCannotBeIsRefused) {
  EXPECT_THAT(refused_call("bad_result", {"0"}), HasSubstr("shape -5"));
  EXPECT_THAT(refused_call("bad_result", {"1"}), HasSubstr("unknown dtype, number 99"));
}

TEST(OpCall, AnOpThatWritesToItsConstInputIsSeen) {
  const auto overwritten = [](const std::string& op, const Texts& texts) {
    Result<OpCall> call =
        OpCall::prepare(library(), *bind_call(library().ops(), op, texts), {KILN_DEVICE_CPU, 0}, 0);
    EXPECT_TRUE(call->call());
    return *call->overwritten_inputs();
  };
  EXPECT_THAT(overwritten("clobbers", {"ones:f32:4"}), ElementsAre("x"));
  EXPECT_THAT(overwritten("add", {"ones:f32:4", "ones:f32:4"}), ElementsAre());
  EXPECT_THAT(overwritten("fill_", {"ones:f32:4", "2"}), ElementsAre());
}

TEST(OpCall, NothingStaysAllocated) {
  const auto live = [] { return (*called("live", {}))[0].scalar.integer; };
  const int64_t before = live();
  {
    Result<OpCall> call = OpCall::prepare(library(), *bind_call(library().ops(), "many", Texts{}),
                                          {KILN_DEVICE_CPU, 0}, 0);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(call->call());
    OpCall moved = std::move(*call);
    EXPECT_TRUE(moved.call());
  }
  (void)called("add", {"ones:f32:4", "ones:f32:5"});
  (void)called("add", {"ones:f32:4", "ones:f32:4"});
  (void)called("twice_", {"ones:f32:4"});
  EXPECT_EQ(live(), before);
}

}  // namespace
}  // namespace kiln::host
