// SPDX-License-Identifier: Apache-2.0
// Is an edit of device code alone told from every other one? A wrong yes would leave a stale host
// object behind.
#include <gmock/gmock.h>

#include "base/text.h"
#include "build/edit/device_code.h"
#include "build/edit/nvrtc.h"
#include "build/edit/ptx_text.h"
#include "build/edit/swap_fat.h"
#include "build/plan/source_tokens.h"
#include "build/run/header_times.h"
#include "sys/fake_files.h"

namespace kiln::build {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSource = R"(// A kernel.
#include <kiln/op.h>
template <class T>
__global__ void add_kernel(const T* a, T* out) {
  int i = threadIdx.x;  // {
  out[i] = a[i] + 1;
}
namespace inner {
__device__ float twice(float x) { return 2 * x; }
}
__host__ __device__ int both(int x) { return x; }
kiln::Tensor my_add(const kiln::Tensor& a) {
  add_kernel<float><<<1, 256>>>(a.data<float>(), nullptr);
  return a;
}
KILN_OP(my_add, "a");
)";

std::string edited(std::string_view from, std::string_view to) {
  std::string text = kSource;
  text.replace(text.find(from), from.size(), to);
  return text;
}

Surroundings with(std::string_view defines) {
  Surroundings around;
  around.macros.add(defines);
  return around;
}

TEST(DeviceCode, KnowsTheFunctionsOfEachSide) {
  auto items = items_of(kSource);
  ASSERT_TRUE(items);
  std::vector<std::string> device, host;
  for (const Item& item : *items) {
    if (item.kind == ItemKind::Device) device.push_back(item.name);
    if (item.kind == ItemKind::HostFunction) host.push_back(item.name);
  }
  EXPECT_THAT(device, ElementsAre("add_kernel", "twice"));
  EXPECT_THAT(host, ElementsAre("my_add"));
}

TEST(DeviceCode, ABodyOfAKernelIsDeviceCodeAlone) {
  EXPECT_EQ(why_host_changes(kSource, kSource), "");
  EXPECT_EQ(why_host_changes(kSource, edited("a[i] + 1", "a[i] * 3")), "");
  EXPECT_EQ(why_host_changes(kSource, edited("2 * x", "x / 7 + \"}\"[0]")), "");
  EXPECT_EQ(why_host_changes(kSource, edited("out[i] =", "#pragma unroll\n out[i] =").c_str())
                .find("lines moved"),
            0u);
}

TEST(DeviceCode, CommentsAreNoCode) {
  EXPECT_EQ(why_host_changes(kSource, edited("// A kernel.", "// Another comment.")), "");
  EXPECT_EQ(why_host_changes(kSource, edited("<kiln/op.h>", "<kiln/op.h>  // of kiln")), "");
  std::string both = edited("// A kernel.", "");
  both.replace(both.find("a[i] + 1"), 8, "a[i] + 2");
  EXPECT_EQ(why_host_changes(kSource, both), "");
}

TEST(SourceTokens, CodeStaysInItsLineAndColumn) {
  EXPECT_EQ(without_comments("int a;  // one\n/* two\n   lines */ int b;"),
            "int a;\n\n            int b;");
  EXPECT_EQ(without_comments("f(\"//\", '\"', R\"(/* */)\"); // x"),
            "f(\"//\", '\"', R\"(/* */)\");");
  EXPECT_EQ(without_comments("#define A 1  // one\n#define B /* two */ 2\n"),
            "#define A 1\n#define B           2\n");
  EXPECT_EQ(without_comments("#include <a//b.h>\n#include \"a//b.h\" // c"),
            "#include <a//b.h>\n#include \"a//b.h\"");
  // A comment whose line is joined to the next one.
  EXPECT_EQ(without_comments("// one \\\nint a;\nint b;"), "\n\nint b;");
}

TEST(SourceTokens, WhatMayBeNoLiteralHidesNoCode) {
  for (const char* line : {"#define N 1'000 + '\"' + \"// real\"\n",
                           "#define R_ R\"(a\"// real)\"\n", "#error don't // x\n"})
    EXPECT_EQ(without_comments(line), line);
}

TEST(SourceTokens, JoinedLinesThatMayHideCodeAreNotFollowed) {
  for (const char* text :
       {"// one \\ \nint a;", "// one \\\r\nint a;", "/* one *\\\n/ int a; /* two */",
        "/\\\n/ one\n", "#define A /* one\n// */ int a;\n", "int a; /*\n*/ #define A\n",
        "// one ?\?/\nint a;"})
    EXPECT_FALSE(without_comments(text)) << text;
}

TEST(DeviceCode, EverythingElseIsMore) {
  for (auto [from, to] : std::vector<std::pair<const char*, const char*>>{
           {"<<<1, 256>>>", "<<<2, 256>>>"},               // the launch
           {"const T* a, T* out", "const T* a, T* out2"},  // parameters
           {"#include <kiln/op.h>", "#include <kiln/op.h>\n#include <cstdio>"},
           {"return x; }\nkiln", "return x + 1; }\nkiln"},      // the host compiles it too
           {"// A kernel.", "// A kernel.\n// Of two lines."},  // every line below is another one
           {"a[i] + 1", "__COUNTER__"},
           {"int i = threadIdx.x;", "static int i;"},
           {"a[i] + 1;", "a[i];\n#define KILN_OP(x, y)\n"},
           {"int i = threadIdx.x;", "add_kernel<T><<<1, 1>>>(a, out);"},
           {"a[i] + 1;", "a[i] + 1; }"},
           {"__global__ void add", "static __global__ void add"},
       })
    EXPECT_NE(why_host_changes(kSource, edited(from, to)), "") << to;
}

TEST(DeviceCode, MovedLinesMatterWhereSomethingBelowTellsItsLine) {
  std::string moved = edited("  int i = threadIdx.x;  // {\n", "  int i;\n  i = threadIdx.x;\n");
  EXPECT_THAT(why_host_changes(kSource, moved), HasSubstr("KILN_OP"));
  std::string quiet = "__global__ void k(int* p) { *p = 1; }\nvoid host() {}\n";
  EXPECT_EQ(why_host_changes(quiet, "__global__ void k(int* p) {\n *p = 1; }\nvoid host() {}\n"),
            "");
}

TEST(DeviceCode, AMacroInSmallLettersMayTellItsLineToo) {
  const std::string before = "__global__ void k(int* p) { *p = 1; }\nvoid host() { check(1); }\n";
  const std::string after = "__global__ void k(int* p) {\n *p = 1; }\nvoid host() { check(1); }\n";
  EXPECT_EQ(why_host_changes(before, after), "");
  EXPECT_THAT(why_host_changes(before, after, with("#define check(x) x")),
              HasSubstr("'check' below k may depend on its line number"));
}

TEST(DeviceCode, AnAddedCommentLineIsDeviceCodeWhereNothingBelowTellsItsLine) {
  const std::string quiet =
      "#include <x.h>\n__global__ void k(int* p) { *p = 1; }\nvoid host() {}\n";
  EXPECT_EQ(why_host_changes(quiet, "// one\n// two\n" + quiet + "// three\n"), "");
  EXPECT_EQ(why_host_changes("// one\n" + quiet, quiet), "");
  EXPECT_THAT(why_host_changes(kSource, std::string("// one\n") + kSource),
              HasSubstr("may depend on its line number"));
  EXPECT_EQ(why_host_changes(kSource, std::string(kSource) + "\n// below everything\n"), "");
  const std::string wide = "void host() {\n  CHECK(1,\n    2);\n}\n";
  EXPECT_THAT(why_host_changes(wide, text::replace_all(wide, "1,\n", "1,\n\n")),
              HasSubstr("CHECK"));
  EXPECT_EQ(why_host_changes(wide + "int a;\n", wide + "\nint a;\n"), "");
  // To these an empty line is more than a line.
  for (const char* text :
       {"const char* s = R\"(a\n)\";\n", "#define A(x) \\\n  x\nint a = A(1);\n"}) {
    const std::string source(text), longer = text::replace_all(source, "\n", "\n\n");
    EXPECT_NE(why_host_changes(source, longer), "") << source;
  }
}

TEST(DeviceCode, AMacroInFrontMayMakeAFunctionTheHostsToo) {
  auto why = [](const std::string& head) {
    auto source = [&](const char* body) {
      return head + " { return " + body + "; }\nvoid host() {}\n";
    };
    return why_host_changes(source("1"), source("2"),
                            with("#define hd __host__\n#  define f(x) x"));
  };
  EXPECT_EQ(why("__device__ int g(int x)"), "");
  EXPECT_EQ(
      why("template <class T, int BLOCK> __global__ void __launch_bounds__(BLOCK) SAXPY(T x)"), "");
  EXPECT_THAT(why("hd __device__ int g(int x)"), HasSubstr("hd"));
  EXPECT_THAT(why("__device__ int f(int x)"), HasSubstr("'f'"));
  EXPECT_THAT(why("_CCCL_HOST __device__ int g(int x)"), HasSubstr("_CCCL_HOST"));
}

std::string why_body_changes(const std::string& defines, const std::string& from,
                             const std::string& to) {
  const std::string head = defines + "\n__global__ void k(int* p) { ";
  return why_host_changes(head + from + " }\nvoid host() {}\n", head + to + " }\nvoid host() {}\n",
                          with(defines));
}

TEST(DeviceCode, AMacroInABodyMustNotReachBeyondIt) {
  for (const char* defines :
       {"#define ID __COUNTER__", "#define A ID\n#define ID __COUNTER__", "#define ID {",
        "#define ID(...) _Pragma(\"pack(1)\")", "#define ID(a, b) a ## b", "#define ID static int",
        "#define ID 1\n#define ID \\\n  __COUNTER__"}) {
    const std::string name = std::string(defines).find("A ID") != std::string::npos ? "A" : "ID";
    EXPECT_THAT(why_body_changes(defines, "*p = 1;", "*p = " + name + ";"), HasSubstr("macro"))
        << defines;
    EXPECT_THAT(why_body_changes(defines, "*p = " + name + ";", "*p = 1;"), HasSubstr("macro"))
        << defines;
  }
  for (const char* defines :
       {"#define ID 7", "#define ID(x) ((x) + 1)", "#define ID _Pragma(\"unroll 4\")",
        "#define ID(x) printf(#x)", "#define ID M_PI"})
    EXPECT_EQ(why_body_changes(defines, "*p = 1;", "ID; *p = 2;"), "") << defines;
}

TEST(DeviceCode, AMacroThatNobodyLookedAtMustStay) {
  EXPECT_THAT(why_body_changes("", "*p = 1;", "*p = SOME_ID;"), HasSubstr("SOME_ID"));
  EXPECT_EQ(why_body_changes("", "*p = SOME_ID;", "*p = SOME_ID + 1;"), "");
  EXPECT_NE(why_body_changes("", "*p = SOME_ID;", "*p = SOME_ID + SOME_ID;"), "");
  EXPECT_NE(why_body_changes("#define ID SOME_ID", "*p = 1;", "*p = ID;"), "");
  EXPECT_EQ(why_body_changes("constexpr int ROWS = 4;", "*p = 1;", "*p = ROWS + INT_MAX;"), "");
}

TEST(DeviceCode, PragmasInABodyMustBeAboutItsLoops) {
  EXPECT_EQ(why_body_changes("", "\n#pragma unroll 4\n*p = 1;", "\n#pragma unroll\n*p = 2;"), "");
  EXPECT_EQ(why_body_changes("", "*p = 1;", "_Pragma(\"unroll\") *p = 2;"), "");
  for (const char* body :
       {"\n#pragma pop_macro(\"X\")\n", "\n#pragma pack(1)\n", "\n#pragma unrolled\n"})
    EXPECT_NE(why_body_changes("", "\n\n", body), "") << body;
  for (const char* body : {"_Pragma(\"pop_macro(\\\"X\\\")\")", "_Pragma(TEXT(unroll))"})
    EXPECT_NE(why_body_changes("", "*p = 1;", body), "") << body;
}

TEST(DeviceCode, DigraphsAndTrigraphsAreNotFollowed) {
  for (const char* text : {"\n%:define X 2\n", "<% int i; %>", "p<:0:> = 1;", "\n?\?=define X 2\n"})
    EXPECT_NE(why_body_changes("", "*p = 1;", text), "") << text;
  EXPECT_EQ(why_body_changes("", "*p = 1;", "printf(\"%:\"); std::max<::Half>(1, 2);"), "");
}

TEST(DeviceCode, ABodyMustBeOneThatTheCompilerHidFromTheHost) {
  const std::string before = "int a;\n__device__ int A::f(int x)\n{ return x + 1; }\n";
  const std::string after = text::replace_all(before, "+ 1", "+ 2");
  Surroundings around;
  around.hidden_bodies = {3};
  EXPECT_EQ(why_host_changes(before, after, around), "");
  around.hidden_bodies = {2};
  EXPECT_THAT(why_host_changes(before, after, around), HasSubstr("the host compiles the body"));
  // Two in a line: which one of them did it hide?
  around.hidden_bodies = {3};
  EXPECT_NE(
      why_host_changes(text::replace_all(before, "; }\n", "; } __device__ int g() {}\n"),
                       text::replace_all(after, "; }\n", "; } __device__ int g() {}\n"), around),
      "");
}

TEST(DeviceCode, LinesThatTheSourceCountsItselfTellNothing) {
  const std::string before = "#line 1\n__device__ int A::f(int x) { return x + 1; }\n";
  Surroundings around;
  around.hidden_bodies = std::set<size_t>{2};
  EXPECT_NE(why_host_changes(before, text::replace_all(before, "+ 1", "+ 2"), around), "");
}

TEST(DeviceCode, BracesInFrontOfABodyAreNotTakenForIt) {
  for (const char* text : {"__device__ A::A() : x{1}, y(2) { z = 3; }\n",
                           "template <class T> __device__ void f(T x) requires requires { x + 1; } "
                           "{ x = 3; }\n"})
    for (const char* digit : {"1", "3"})
      EXPECT_NE(why_host_changes(text, text::replace_all(text, digit, "7")), "") << text;
}

TEST(DeviceCode, LinesThatAFunctionTellsMustStay) {
  const std::string before = "__global__ void k(int* p) { *p = 1; }\nvoid host() { say(); }\n";
  Surroundings around;
  EXPECT_EQ(why_host_changes(before, "// a line\n" + before, around), "");
  around.line_teller = "__builtin_LINE";
  EXPECT_THAT(why_host_changes(before, "// a line\n" + before, around),
              HasSubstr("__builtin_LINE"));
}

TEST(DeviceCode, TextThatCannotBeFollowedIsNotGuessed) {
  for (const char* text :
       {"void f() {", "}", "void f()\n#if A\n{ }\n#endif\n", "/* open", "const char* s = \"open",
        "#if A\nvoid f() {\n#else\nvoid g() {\n#endif\n}\n"})
    EXPECT_FALSE(items_of(text)) << text;
}

TEST(Slice, HasNoHostCodeAndTheSameLines) {
  Slice slice = slice_of(kSource);
  EXPECT_EQ(slice.why, "");
  EXPECT_THAT(slice.text, Not(HasSubstr("my_add")));
  EXPECT_THAT(slice.text, HasSubstr("add_kernel"));
  EXPECT_EQ(std::count(slice.text.begin(), slice.text.end(), '\n'),
            std::count(kSource, kSource + std::string_view(kSource).size(), '\n'));
}

TEST(Slice, IsRefusedWhereItCouldMeanSomethingElse) {
  for (const char* text :
       {"namespace { __global__ void k() {} }", "#ifdef __NVCC__\n#endif\n",
        "#if __has_include(<x.h>)\n#endif\n", "__global__ void k() { assert(1); }",
        "__global__ void k(const char** p) { *p = __FILE__; }",
        "__global__ void k(int* p) { *p = __GNUC__; }",
        "__global__ void k(float* p) { *p = fmax(*p, 2); }",
        "int pick(int x) { return x; }\n__global__ void k(int* p) { *p = pick(1); }"})
    EXPECT_NE(slice_of(text).why, "") << text;
  EXPECT_EQ(slice_of("#if __CUDA_ARCH__ >= 900\n#endif\n__global__ void k() {}\n").why, "");
}

TEST(Slice, ConditionsDependOnTheNamesBehindTheirs) {
  const char* text =
      "#define LIMIT INT_MAX\n#if LIMIT > 3 && defined(ROWS)  // NOT\n#endif\n#ifndef "
      "M_PI\n#endif\n";
  Macros macros;
  macros.add(text);
  EXPECT_THAT(names_in_conditions(text, macros), ElementsAre("INT_MAX", "LIMIT", "M_PI", "ROWS"));
}

constexpr const char* kPtx = R"(.version 9.0
.target sm_90
.visible .global .align 4 .u32 counter;
	// .globl	_Z1kPf
.visible .entry _Z1kPf(
	.param .u64 .ptr .align 1 _Z1kPf_param_0
)
.maxntid 256, 1, 1
{
	.reg .b32 	%r<2>;
	.loc	1 5 3
	mov.u32 	%r1, 1;
	ret;

}
	.file	1 "/a.cu"
)";

std::string ptx_with(std::string_view from, std::string_view to) {
  std::string text = kPtx;
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(Slice, AnotherLibnvrtcHasAnotherIdentity) {
  sys::FakeFiles files;
  EXPECT_EQ(nvrtc_identity(files, "/cuda/bin/nvcc"), "");
  files.add("/cuda/lib64/libnvrtc.so.13", "one").add("/cuda/lib64/libcudart.so", "one");
  const std::string first = nvrtc_identity(files, "/cuda/bin/nvcc");
  EXPECT_NE(first, "");
  files.add("/cuda/lib64/libcudart.so", "another");
  EXPECT_EQ(nvrtc_identity(files, "/cuda/bin/nvcc"), first);
  files.add("/cuda/lib64/libnvrtc-builtins.so.13.0", "its headers");
  const std::string second = nvrtc_identity(files, "/cuda/bin/nvcc");
  EXPECT_NE(second, first);
  files.touch("/cuda/lib64/libnvrtc.so.13");
  EXPECT_NE(nvrtc_identity(files, "/cuda/bin/nvcc"), second);
}

TEST(PtxText, LinesAndLinkageDoNotCount) {
  EXPECT_THAT(entry_names(kPtx), ElementsAre("_Z1kPf"));
  EXPECT_EQ(why_code_differs(kPtx, ptx_with(".loc	1 5 3", ".loc	1 9 3")), "");
  EXPECT_EQ(why_code_differs(kPtx, ptx_with(".visible .entry", ".weak .entry")), "");
}

TEST(PtxText, CodeCountsForCodeAndParametersForTheHost) {
  std::string other_code = ptx_with("%r1, 1", "%r1, 2");
  EXPECT_EQ(why_interface_differs(kPtx, other_code), "");
  EXPECT_NE(why_code_differs(kPtx, other_code), "");
  EXPECT_NE(why_interface_differs(kPtx, ptx_with(".param .u64", ".param .u32")), "");
  EXPECT_NE(why_interface_differs(kPtx, ptx_with("256, 1, 1", "128, 1, 1")), "");
  EXPECT_NE(why_interface_differs(kPtx, ptx_with("entry _Z1kPf(", "entry _Z2kkPf(")), "");
  EXPECT_NE(why_interface_differs(
                kPtx, ptx_with(".visible .global", ".weak .global .u8 x;\n.visible .global")),
            "");
  EXPECT_NE(why_interface_differs(kPtx, ptx_with(".u32 counter", ".u64 counter")), "");
}

TEST(SwapFat, RefusesWhatIsNoLibrary) {
  EXPECT_FALSE(swap_fat_binaries("no ELF at all", {{"a", "b"}}));
  EXPECT_FALSE(swap_fat_binaries("", {{"a", "b"}}));
}

TEST(HeaderTimes, AreReadFromATrace) {
  auto times = parse_header_trace(
      R"({"traceEvents":[
          {"name":"Processing Header File","dur":1500000,"args":{"detail":"/a/../b.h"}},
          {"name":"OptFunction","dur":9},
          {"name":"Processing Header File","dur":200,"args":{"detail":"/c.h"}},
          {"name":"Processing Header File","args":7}, 3]})");
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].name, "/b.h");
  EXPECT_DOUBLE_EQ(times[0].seconds, 1.5);
  EXPECT_TRUE(parse_header_trace("{broken").empty());
  EXPECT_TRUE(parse_header_trace("7").empty());
}

}  // namespace
}  // namespace kiln::build
