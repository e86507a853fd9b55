// SPDX-License-Identifier: Apache-2.0
// Do the small parts of a build hold: job limits, dependency files, source scans, the record of the
// last build?
#include <gmock/gmock.h>

#include "build/cache/depfile.h"
#include "build/plan/source_scan.h"
#include "build/run/jobs.h"
#include "build/run/state.h"
#include "sys/fake_files.h"

namespace kiln::build {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kGB = 1'000'000'000;

std::vector<uint64_t> steps_of(size_t count, uint64_t bytes) {
  return std::vector<uint64_t>(count, bytes);
}

TEST(Jobs, AreBoundedByCoresAndMemory) {
  EXPECT_EQ(job_limit({}, 16, 100 * kGB, steps_of(20, 2 * kGB))->jobs, 16);
  EXPECT_EQ(job_limit({}, 16, 6 * kGB, steps_of(20, kGB + kGB / 2))->jobs, 4);
  EXPECT_EQ(job_limit("3", 16, 100 * kGB, {})->jobs, 3);
  EXPECT_EQ(job_limit("64", 2, kGB, {})->jobs, 64) << "MAX_JOBS is the user's word";
}

TEST(Jobs, TenGigabytesLessThanTheJobsWantGiveOneThatSaysSo) {
  auto limit = job_limit({}, 16, 2 * kGB, steps_of(16, 12 * kGB));
  EXPECT_EQ(limit->jobs, 1);
  EXPECT_EQ(limit->why, "2.0 GB of memory for steps of up to 12.0 GB each");
  EXPECT_EQ(job_limit({}, 16, 0, steps_of(4, kGB))->jobs, 1);
}

TEST(Jobs, SmallStepsRunBesideALargeOne) {
  std::vector<uint64_t> peaks = steps_of(15, kGB / 10);
  peaks.push_back(6 * kGB);
  EXPECT_EQ(job_limit({}, 16, 8 * kGB, peaks)->jobs, 16);
}

TEST(Jobs, AMaxJobsThatIsNoNumberIsAnError) {
  for (const char* text : {"0", "-1", "many", "4x"})
    EXPECT_FALSE(job_limit(text, 4, kGB, {})) << text;
}

TEST(Jobs, APeakIsRememberedForTheNextBuild) {
  sys::FakeFiles files;
  Step step;
  step.kind = StepKind::Device;
  step.source = "/w/big.cu";
  EXPECT_EQ(Peaks(files, "/c/peaks.json").expected_bytes(step),
            assumed_peak_bytes(StepKind::Device));
  Peaks peaks(files, "/c/peaks.json");
  peaks.saw(step, 10 * kGB);
  peaks.keep();
  EXPECT_EQ(Peaks(files, "/c/peaks.json").expected_bytes(step), 12 * kGB)
      << "with a fifth in reserve";
  files.add("/c/peaks.json", "{broken");
  EXPECT_EQ(Peaks(files, "/c/peaks.json").expected_bytes(step),
            assumed_peak_bytes(StepKind::Device));
}

TEST(Depfile, ReadsContinuationsAndEscapes) {
  EXPECT_THAT(parse_depfile("obj/a.o : a.cu \\\n    /x/b.h \\\n  /with\\ blank/c.h d$$.h\n"),
              ElementsAre("a.cu", "/x/b.h", "/with blank/c.h", "d$.h"));
}

TEST(Depfile, ReadsSeveralRulesAndColonsInNames) {
  EXPECT_THAT(parse_depfile("a.o: a.cu x:y.h\n\nx.h:\n"), ElementsAre("a.cu", "x:y.h"));
  EXPECT_TRUE(parse_depfile("").empty());
}

TEST(Scan, FindsEveryFormOfAnExtendedLambda) {
  for (const char* text : {
           "f([=] __device__ (int i) { return i; });",
           "auto g = [=]__host__ __device__(int i) {};",
           "auto g = [a, b](int i) __device__ { return a; };",
           "auto g = [] (int i) mutable __device__ {};",
           "#define LAMBDA [=] __device__\n",
           "auto g = []<class T> __device__ (T t) {};",
           "auto g = []<class T>(T t) noexcept(true) __device__ {};",
           "auto g = [a = b[0]] __device__ () {};",
           "auto g = [=] GPU_LAMBDA (int i) { return i; };",
           "auto g = [=]HD(int i) -> int { return i; };",
           "char c = '\"'; auto g = [=] __device__ () {};",
           "const char* s = \"http://x\"; auto g = [=] __device__ () {};",
       })
    EXPECT_TRUE(scan_text(text).extended_lambda) << text;
}

TEST(Scan, OrdinaryDeviceCodeNeedsNoFlag) {
  for (const char* text : {
           "__device__ int f(int a) { return a; }",
           "template <class T> __device__ T f(T a);",
           "struct S { __host__ __device__ S(); };",
           "// a lambda: [=] __device__ (int i)\nint x;",
           "/* f([=] __device__ () {}) */",
           "int a[3]; __device__ int b;",
           "bool b = a[i]<n; template <class T> __device__ T f(T a);",
           "kiln::dispatch<float>(t, [&](auto t) { k<<<1, 2>>>(); });",
           "#if defined(__CUDACC__)\n__device__ int f();\n#endif",
           "#define HD(x) __host__ __device__\nHD(1) int f();",
           "alignas(16) __device__ int table[4];",
           "__launch_bounds__(256) __global__ void f(); __attribute__((used)) __device__ int x;",
           "template <class T> [[nodiscard]] __device__ T f(T t);",
           "[[nodiscard]] __host__ __device__ int f();",
           "ATTRIBUTE(\"]\") __device__ int x; float room[4] ALIGNED(16);",
           "template <class T, class = std::enable_if_t<(sizeof(T) > 4)>> __device__ T f(T t);",
       })
    EXPECT_FALSE(scan_text(text).extended_lambda) << text;
}

TEST(Scan, TellsOpsFromPrograms) {
  EXPECT_EQ(scan_text("asm(\"wgmma.fence.sync.aligned;\");").hopper_only, "wgmma");
  EXPECT_EQ(scan_text("// wgmma.fence\nint wgmma;").hopper_only, "");
  EXPECT_EQ(scan_text("asm(\"tcgen05.alloc\");").blackwell_only, "tcgen05");
  EXPECT_TRUE(scan_text("KILN_OP(my_add, \"a\");").defines_op);
  EXPECT_FALSE(scan_text("// KILN_OP(x)").defines_op);
  EXPECT_TRUE(scan_text("int main() {}").defines_main);
  EXPECT_TRUE(scan_text("int\nmain (int argc, char** argv)").defines_main);
  EXPECT_FALSE(scan_text("print main(); domain(3); int mainly();").defines_main);
}

TEST(Scan, FollowsIncludesThatItFinds) {
  sys::FakeFiles files;
  files.add("/p/a.cu", "#include \"b.h\"\n#  include <c/d.h>\n#include <vector>\n")
      .add("/p/b.h", "#include \"a.cu\"\n");
  files.add("/i/c/d.h", "auto f = [=] __device__ () {};");
  EXPECT_FALSE(scan_source(files, "/p/a.cu", {}).extended_lambda);
  EXPECT_TRUE(scan_source(files, "/p/a.cu", {"/i"}).extended_lambda);
}

TEST(Scan, TorchsHeadersAreNamedAndNotLookedThrough) {
  sys::FakeFiles files;
  files.add("/p/a.cu", "#include <torch/extension.h>\n#include <mine.h>\n")
      .add("/i/mine.h", "std::map<int, int> m;\n");
  files.add("/i/torch/extension.h", "auto f = [=] __device__ () {}; std::regex r;");
  SourceFacts facts = scan_source(files, "/p/a.cu", {"/i"});
  EXPECT_EQ(facts.torch_header, "torch/extension.h");
  EXPECT_FALSE(facts.extended_lambda);
  EXPECT_EQ(facts.leaked, std::set<std::string>{"map"});
}

TEST(Scan, WordsAndHeadersThatCxx17LacksAreSeen) {
  auto only_20 = [](std::string_view text) { return scan_text(text).only_cxx20; };
  EXPECT_TRUE(only_20("template <class T> concept Small = sizeof(T) < 3;"));
  EXPECT_TRUE(only_20("template <class T> void f(T x) requires(sizeof(T) < 3) {}"));
  EXPECT_TRUE(only_20("bool b = (1 <=> 2) < 0;"));
  EXPECT_TRUE(only_20("#include <span>\n"));
  EXPECT_FALSE(only_20("// requires C++17\nauto t = x.requires_grad();"));
  EXPECT_FALSE(only_20("TORCH_CHECK(x.is_cuda(), \"this requires CUDA\");"));
  EXPECT_FALSE(only_20("#if __cplusplus >= 202002L\n#include <span>\n#endif\n"));
}

TEST(Scan, AFunctionOfTheSourceIsNotCudasTypeOfThatName) {
  sys::FakeFiles files;
  auto leaked = [&](std::string text) {
    files.add("/p/a.cpp", "#include <torch/extension.h>\n" + text);
    return scan_source(files, "/p/a.cpp", {}).leaked;
  };
  const std::set<std::string> fp16{"cuda_fp16.h"};
  EXPECT_EQ(leaked("double half(double x) { return x / 2; }\nauto y = half(3);"),
            std::set<std::string>{});
  EXPECT_EQ(leaked("half f(float x);"), fp16);
  EXPECT_EQ(leaked("auto f(float x) { return half(x); }"), fp16);
  EXPECT_EQ(leaked("auto f(float x) { return 2 * half (x); }"), fp16);
  EXPECT_EQ(leaked("auto f(at::Half x) { return x.operator __half(); }"), fp16);
  EXPECT_EQ(leaked("int f(int a) { return std::max({a, 2, 3}); }"),
            std::set<std::string>{"algorithm"});
  EXPECT_EQ(leaked("int f(int a) { return std::max(a, 2); }"), std::set<std::string>{});
  EXPECT_EQ(leaked("using namespace std;\nunordered_set<int> s;"),
            std::set<std::string>{"unordered_set"});
  EXPECT_EQ(leaked("float f(float x) { return powf(x, 2); }"), std::set<std::string>{"cmath"});
  EXPECT_EQ(leaked("#define CHECK(x) f(x)\nvoid g() { CHECK(1); }"), std::set<std::string>{});
}

TEST(Scan, ALambdaOfAHeadersFunctionIsNotTheSourcesOwn) {
  sys::FakeFiles files;
  files.add("/p/a.cu", "#include \"b.h\"\n")
      .add("/p/b.h", "inline void f() { g([=] __device__ () {}); }\n");
  EXPECT_TRUE(scan_source(files, "/p/a.cu", {}).extended_lambda);
  EXPECT_FALSE(scan_source(files, "/p/a.cu", {}).own_lambda);
  files.add("/p/b.h", "#define MARKED [=] __device__\n");
  EXPECT_TRUE(scan_source(files, "/p/a.cu", {}).own_lambda)
      << "a macro's text is the source's where it is named";
  files.add("/p/b.h", "").add("/p/a.cu", "auto f = [=] __device__ () {};");
  EXPECT_TRUE(scan_source(files, "/p/a.cu", {}).own_lambda);
}

TEST(Reads, ByStateAreReadAsTheyWereWritten) {
  const Reads reads{{{"/p/with blank.cu", {true, false, false, 10, -5, 7, 1ull << 63}}},
                    {"/p/none.h"}};
  auto again = parse_reads(write_reads(reads, By::State));
  ASSERT_TRUE(again);
  ASSERT_EQ(again->files.size(), 1u);
  EXPECT_EQ(again->files[0].path, "/p/with blank.cu");
  EXPECT_EQ(again->files[0].hash, "");
  EXPECT_EQ(again->files[0].state.mtime_ns, -5);
  EXPECT_EQ(again->files[0].state.ctime_ns, 7);
  EXPECT_EQ(again->files[0].state.inode, 1ull << 63);
  EXPECT_THAT(again->absent, ElementsAre("/p/none.h"));
}

TEST(Reads, ByContentAreReadAsTheyWereWritten) {
  const Reads reads{{{"/p/with blank.cu", {}, "00ff"}}, {"/p/none.h"}};
  auto again = parse_reads(write_reads(reads, By::Content));
  ASSERT_TRUE(again);
  ASSERT_EQ(again->files.size(), 1u);
  EXPECT_EQ(again->files[0].path, "/p/with blank.cu");
  EXPECT_EQ(again->files[0].hash, "00ff");
  EXPECT_EQ(dump(shown(*again)), R"({"files":{"/p/with blank.cu":"00ff"},"absent":["/p/none.h"]})");
  EXPECT_THAT(again->absent, ElementsAre("/p/none.h"));
  sys::FakeFiles files;
  files.add("/p/with blank.cu");
  EXPECT_TRUE(first_change(files, *again)) << "a content is not a state";
}

TEST(Reads, DamageMakesThemWorthless) {
  const Reads reads{{{"/a", {}, "0"}, {"/b", {}, "1"}}, {"/c"}};
  for (By by : {By::State, By::Content}) {
    const std::string text = write_reads(reads, by);
    for (size_t length = 0; length + 1 < text.size(); ++length) {
      auto cut = parse_reads(text.substr(0, length));
      // A cut within the last path cannot be seen; it is then a path of something else.
      EXPECT_FALSE(cut && cut->absent.back() == "/c") << length;
    }
    EXPECT_FALSE(parse_reads(text + "- /d\n"));
  }
  EXPECT_FALSE(parse_reads("kiln-reads 0 0\n"));
  EXPECT_FALSE(parse_reads("kiln-reads 1 1\n# /a\n")) << "no hash";
  EXPECT_FALSE(parse_reads("kiln-reads 1 1\n1 2 3 /a\n")) << "three numbers";
}

TEST(Reads, AreTheSameTextInEveryCheckout) {
  const Reads here{{{"/p/a.h", {}, "0"}, {"/usr/b.h", {}, "1"}}, {"/p/c.h", "/usr/d.h"}};
  const Reads there{{{"/usr/b.h", {}, "1"}, {"/z/a.h", {}, "0"}}, {"/usr/d.h", "/z/c.h"}};
  EXPECT_EQ(write_reads(with_canonical_names({{"/p", "/proc/self/cwd"}}, here), By::Content),
            write_reads(with_canonical_names({{"/z", "/proc/self/cwd"}}, there), By::Content));
}

TEST(State, IsReadAsItWasWritten) {
  BuildState state{"key", "/b/libadd.so", {{{"/a", {}}}, {"/p/none.h"}}};
  auto again = parse_state(write_state(state));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->key, "key");
  EXPECT_EQ(again->result, "/b/libadd.so");
  EXPECT_EQ(again->reads.files.size(), 1u);
  EXPECT_THAT(again->reads.absent, ElementsAre("/p/none.h"));
}

TEST(State, DamageMakesItWorthless) {
  std::string text = write_state({"key", "/r", {{{"/a", {}}, {"/b", {}}}, {}}});
  for (size_t length = 0; length + 1 < text.size(); ++length) {
    auto state = parse_state(text.substr(0, length));
    // A cut within the last path cannot be seen; such a file then differs on the disk.
    EXPECT_FALSE(state && state->reads.files.back().path == "/b") << length;
  }
  EXPECT_FALSE(parse_state("kiln-state 3 0\nk\nr\n"));
}

TEST(Reads, AnyChangeOfAnyFileIsSeen) {
  sys::FakeFiles files;
  files.add("/a", "1").add("/b", "2");
  const Reads reads{{{"/a", files.state("/a")}, {"/b", files.state("/b")}}, {"/inc/a.h"}};
  auto change = [&] {
    auto found = first_change(files, reads);
    FileStates states(files);
    EXPECT_EQ(found, first_change(states, reads));
    return found ? sentence(*found) : "";
  };
  EXPECT_EQ(change(), "");
  files.add("/inc/a.h");
  EXPECT_EQ(change(), "/inc/a.h appeared") << "a header that shadows another one";
  ASSERT_TRUE(files.remove("/inc/a.h"));
  files.add("/b", "3");
  EXPECT_EQ(change(), "/b changed");
  ASSERT_TRUE(files.remove("/a"));
  EXPECT_EQ(change(), "/a is gone");
}

}  // namespace
}  // namespace kiln::build
