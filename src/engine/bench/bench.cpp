// SPDX-License-Identifier: Apache-2.0
// How fast is the engine, compared with the bars that it must hold? Prints a table, a row a bar,
// with PASS or MISS.
//
// One core is measured in CPU time of this thread, so that a busy machine changes the figures less;
// two cores by the clock on the wall, which asks for two cores that are free (cores.h).
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "binary/elf.h"
#include "engine/bench/cores.h"
#include "engine/bench/scalar.h"
#include "engine/cudart/launch.h"
#include "engine/cudart/threads.h"
#include "engine/decode/image.h"
#include "engine/library/level.h"
#include "engine/machine/fault.h"
#include "engine/numbers/numeric.h"
#include "ptx/parser.h"

namespace {

using namespace kiln;
using namespace kiln::engine;

double seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

template <class Body>
double best_of(int times, clockid_t clock, Body body) {
  double best = 1e30;
  for (int i = 0; i < times; ++i) {
    double start = seconds(clock);
    body();
    best = std::min(best, seconds(clock) - start);
  }
  return best;
}

constexpr clockid_t kCpu = CLOCK_THREAD_CPUTIME_ID, kWall = CLOCK_MONOTONIC;

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  std::exit(1);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) give_up(fmt::format("{} cannot be read", path));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Bars {
  std::string only;  // rows whose name has this in it; empty: all
  std::string rows;
  int missed = 0;

  bool wants(std::string_view name) const { return name.find(only) != std::string_view::npos; }
  // A figure that has no bar.
  void note(std::string_view name, double figure, std::string_view unit, std::string_view how) {
    rows += fmt::format("| {} | {:.3g} {} | | | | {} |\n", name, figure, unit, how);
  }
  // `most`: the figure may not be above the bar, else not below it.
  void add(std::string_view name, double figure, std::string_view unit, bool most, double bar,
           std::string_view how) {
    bool holds = most ? figure <= bar : figure >= bar;
    missed += !holds;
    rows += fmt::format("| {} | {:.3g} {} | {} {:.3g} | {:.2f} | {} | {} |\n", name, figure, unit,
                        most ? "<=" : ">=", bar, most ? bar / figure : figure / bar,
                        holds ? "PASS" : "MISS", how);
  }
};

struct Bench {
  Device device{&process_pool};
  Image image{device.heap};
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
  std::vector<KilnRegion> regions;

  explicit Bench(const std::string& ptx) {
    if (auto status = image.load(ptx); !status) give_up(format(status.error()));
  }
  template <class T>
  void region(std::vector<T>& v) {
    regions.push_back({v.data(), v.size() * sizeof(T), "t", 1});
  }
  template <class... Arguments>
  void launch(const char* name, KilnDim3 grid, KilnDim3 block, Arguments... arguments) {
    auto known = kernels.find(name);
    if (known == kernels.end())
      known = kernels.emplace(name, std::make_unique<Kernel>(image, name)).first;
    void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
    KilnEngineLaunch what{};
    what.grid = grid;
    what.block = block;
    what.arguments = pointers;
    what.regions = regions.data();
    what.region_count = static_cast<uint32_t>(regions.size());
    what.check_memory = 1;
    LaunchOutcome outcome = launch_kernel(device, *known->second, kDefaultSharedBytes, what);
    if (outcome.code) give_up(outcome.text);
  }
};

void threads(const char* count) { setenv("KILN_ENGINE_THREADS", count, 1); }

constexpr uint32_t kCount = 16u << 20;

// What a program of its own measures on two CPUs: in turns, for what else the machine does hits
// both.
int measure_two_cores(Bench& bench) {
  std::vector<float> a(kCount, 1.0f), b(kCount, 2.0f), out(kCount);
  for (auto* v : {&a, &b, &out}) bench.region(*v);
  auto add = [&] {
    bench.launch("add", {kCount / 256, 1, 1}, {256, 1, 1}, a.data(), b.data(), out.data(),
                 int64_t{kCount});
  };
  TwoCores best{{}, 1e30, 1e30, 1e30};
  for (int i = 0; i < 25; ++i) {
    threads("1");
    best.alone = std::min(best.alone, best_of(1, kWall, add));
    threads("2");
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    best.both = std::min(best.both, best_of(1, kWall, add));
    best.both_cpu = std::min(best.both_cpu, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
  }
  fmt::print("{} {} {}\n", best.alone, best.both, best.both_cpu);
  return 0;
}

// `one`: seconds of CPU time that one core takes.
void bench_two_cores(Bars& bars, double one, const std::string& folder) {
  const std::vector<TwoCores> pairs =
      measure_pairs(std::filesystem::read_symlink("/proc/self/exe"), folder);
  if (pairs.empty()) return;
  const TwoCores& best =
      *std::max_element(pairs.begin(), pairs.end(),
                        [](const TwoCores& a, const TwoCores& b) { return a.gain() < b.gain(); });
  // On a machine that does something else too the wall says nothing: then what both threads cost
  // together does.
  const bool busy = best.alone > one * 1.1;
  std::string how =
      busy ? fmt::format(
                 "machine busy: by the CPU time of both threads, {:.1f} ms; by the wall {:.2f}x",
                 best.both_cpu * 1e3, best.gain())
           : fmt::format("{:.1f} ms, wall time {:.1f} ms", best.both * 1e3, best.alone * 1e3);
  how += "; CPUs";
  for (const TwoCores& pair : pairs)
    how += fmt::format(" {} and {}: {:.2f}x", pair.pair.first, pair.pair.second, pair.gain());
  bars.add("the same: two cores", busy ? 2 * one / best.both_cpu : best.gain(), "x one core", false,
           1.8, how);
}

void bench_add(Bars& bars, Bench& bench, const std::string& folder) {
  std::vector<float> a(kCount, 1.0f), b(kCount, 2.0f), out(kCount);
  for (auto* v : {&a, &b, &out}) bench.region(*v);
  const float *pa = a.data(), *pb = b.data();
  float* po = out.data();
  double plain = best_of(7, kCpu, [&] {
    for (uint32_t i = 0; i < kCount; ++i) po[i] = pa[i] + pb[i];
    asm volatile("" ::"r"(po) : "memory");
  });
  int64_t n = kCount;
  auto add = [&] { bench.launch("add", {kCount / 256, 1, 1}, {256, 1, 1}, pa, pb, po, n); };
  double one = best_of(7, kCpu, add);
  int64_t n4 = kCount / 4;
  double four = best_of(7, kCpu, [&] {
    bench.launch("add4", {kCount / 1024, 1, 1}, {256, 1, 1}, pa, pb, po, n4);
  });
  for (float v : out) {
    if (v != 3.0f) give_up("add: wrong result");
  }
  auto program = bench.image.kernel("add");
  auto body = ptx::parse_body(*(*program)->module, *(*program)->function);
  const double instructions = static_cast<double>(body->instructions.size());
  bars.add("add of 16M floats, one core, bounds checked", one / plain, "x of a plain loop", true,
           12,
           fmt::format("{:.1f} ms compared with {:.1f} ms; with float4 {:.1f} ms", one * 1e3,
                       plain * 1e3, four * 1e3));
  const uint64_t arguments[] = {reinterpret_cast<uint64_t>(pa), reinterpret_cast<uint64_t>(pb),
                                reinterpret_cast<uint64_t>(po), kCount};
  std::fill(out.begin(), out.end(), 0.0f);
  const double scalar = best_of(3, kCpu, [&] {
    auto status =
        run_scalar(bench.image.module(), "add", kCount / 256, 256, arguments, bench.regions);
    if (!status) give_up(format(status.error()));
  });
  for (float v : out) {
    if (v != 3.0f) give_up("add, one thread after the other: wrong result");
  }
  bars.note("the same, by an interpreter of one thread after the other", scalar / one,
            "x of the engine",
            fmt::format("{:.0f} ms; bench/scalar.cpp, bounds checked", scalar * 1e3));
  bars.add("the same: PTX instructions of lanes", instructions * kCount / one * 1e-9, "G/s", false,
           6, fmt::format("{} instructions per thread", body->instructions.size()));
  bench.regions.clear();
  bench_two_cores(bars, one, folder);
}

void bench_matmul(Bars& bars, Bench& bench) {
  constexpr int kSize = 512;
  std::vector<float> a(kSize * kSize), b(kSize * kSize), out(kSize * kSize);
  for (auto* v : {&a, &b, &out}) bench.region(*v);
  for (int i = 0; i < kSize * kSize; ++i) {
    a[static_cast<size_t>(i)] = static_cast<float>(i % 7);
    b[static_cast<size_t>(i)] = static_cast<float>(i % 5);
  }
  double time = best_of(5, kCpu, [&] {
    bench.launch("matmul", {16, 16, 1}, {32, 32, 1}, a.data(), b.data(), out.data(), int{kSize});
  });
  float sum = 0;
  for (size_t k = 0; k < kSize; ++k) sum += a[3 * kSize + k] * b[k * kSize + 5];
  if (out[3 * kSize + 5] != sum) give_up("matmul: wrong result");
  bars.add("tiled matmul 512^3 fp32, one core", 512.0 * 512 * 512 / time * 1e-9, "G lane-FMA/s",
           false, 1,
           fmt::format("{:.1f} ms; {} bytes of registers per warp", time * 1e3,
                       (*bench.image.kernel("matmul", {.rows_fill_warps = true}))->frame_bytes));
  bench.regions.clear();
}

void bench_mma(Bars& bars, Bench& bench, const char* kernel, bool half) {
  constexpr size_t kSize = 256;
  std::vector<uint16_t> a(kSize * kSize), b(kSize * kSize);
  std::vector<float> out(kSize * kSize);
  auto small = [&](float v) { return half ? float_to_half(v) : float_to_bf16(v); };
  for (size_t i = 0; i < kSize * kSize; ++i) {
    a[i] = small(static_cast<float>(i % 7));
    b[i] = small(static_cast<float>(i % 5));
  }
  bench.region(a);
  bench.region(b);
  bench.region(out);
  double time = best_of(5, kCpu, [&] {
    bench.launch(kernel, {kSize / 64, kSize / 64, 1}, {128, 1, 1}, a.data(), b.data(), out.data(),
                 int{kSize});
  });
  float sum = 0;
  for (size_t k = 0; k < kSize; ++k) {
    sum += static_cast<float>((67 * kSize + k) % 7) * static_cast<float>((k * kSize + 69) % 5);
  }
  if (out[67 * kSize + 69] != sum)
    give_up(fmt::format("{}: {} and not {}", kernel, out[67 * kSize + 69], sum));
  bars.add(fmt::format("mma.sync m16n8k16 {} matmul 256^3, one core", half ? "f16" : "bf16"),
           2.0 * kSize * kSize * kSize / time * 1e-9, "GFLOP/s", false, 5,
           fmt::format("{:.1f} ms", time * 1e3));
  bench.regions.clear();
}

void bench_launch(Bars& bars, Bench& bench) {
  constexpr int kTimes = 1000;
  double empty = best_of(5, kCpu, [&] {
    for (int i = 0; i < kTimes; ++i) bench.launch("nothing", {1, 1, 1}, {32, 1, 1});
  });
  bars.add("empty launch", empty / kTimes * 1e6, "us", true, 5, "1,000 launches");
}

// A kernel of 5,000 instructions, of the kinds that are common: addresses, loads, arithmetic,
// predicates, stores.
std::string long_kernel() {
  std::string text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry long_kernel(.param .u64 "
      "p)\n{\n.reg .pred "
      "%p<2000>;\n.reg .b32 %r<6000>;\n.reg .f32 %f<6000>;\n.reg .b64 %rd<6000>;\nld.param.u64 "
      "%rd0, [p];\n"
      "mov.u32 %r0, %tid.x;\nmul.wide.u32 %rd1, %r0, 4;\nadd.s64 %rd2, %rd0, %rd1;\nmov.f32 %f0, "
      "0f3f800000;\n";
  int count = 5;
  for (int i = 1; count + 7 <= 4999; ++i, count += 7) {
    text += fmt::format(
        "ld.global.f32 %f{1}, [%rd2+{0}];\nfma.rn.f32 %f{2}, %f{1}, %f{1}, %f{3};\nadd.s32 %r{4}, "
        "%r{5}, {0};\n"
        "setp.lt.s32 %p{4}, %r{4}, %r0;\nselp.f32 %f{6}, %f{2}, %f{1}, %p{4};\nand.b32 %r{7}, "
        "%r{4}, 255;\n"
        "@%p{4} st.global.f32 [%rd2+{0}], %f{6};\n",
        i * 4, i * 3, i * 3 + 1, i * 3 - 1, i * 2, i * 2 - 2, i * 3 + 2, i * 2 + 1);
  }
  for (; count < 4999; ++count) text += "add.f32 %f0, %f0, %f0;\n";
  return text + "ret;\n}\n";
}

void bench_decode(Bars& bars) {
  std::string text = long_kernel();
  size_t ops = 0;
  double decode = best_of(9, kCpu, [&] {
    Bench fresh(text);
    auto program = fresh.image.kernel("long_kernel");
    if (!program) give_up(format(program.error()));
    ops = (*program)->ops.size();
  });
  bars.add("parse and decode 5,000 instructions", decode * 1e3, "ms", true, 20,
           fmt::format("{} Ops", ops));
}

// The library that programs open, and next to it those for levels of CPU, of which it opens one.
void bench_library(Bars& bars, const std::string& library) {
  std::vector<std::filesystem::path> files = {library};
  for (const auto& entry : std::filesystem::directory_iterator(files[0].parent_path())) {
    if (entry.path().filename().string().rfind("libkiln_engine-", 0) == 0)
      files.push_back(entry.path());
  }
  std::sort(files.begin() + 1, files.end());
  for (const auto& file : files) {
    const std::string bytes = text_of(file);
    auto elf = binary::read_elf({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
    if (!elf) give_up(format(elf.error()));
    bars.add(
        file.filename().string(), static_cast<double>(bytes.size()) / 1e6, "MB", true, 5,
        elf->find(".symtab") ? "as built, with its symbols" : "as built and installed, stripped");
  }
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  std::string part;
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
    if (line.rfind("CPU part", 0) == 0) part = line.substr(line.find(':') + 2);
  }
  return "CPU part " + part;
}

// Which build of the engine is in this program?
#if defined(KILN_BENCH_LEVEL)
constexpr std::string_view kLevel = KILN_BENCH_LEVEL;
#else
constexpr std::string_view kLevel = "baseline";
#endif

std::string level_text() {
#if defined(__x86_64__)
  return kLevel == "baseline" ? "baseline (x86-64-v2)" : std::string(kLevel);
#else
  return "baseline (NEON)";
#endif
}

// There is a program for each level next to this one, with the same arguments.
void become(std::string_view level, char** argv) {
  if (level == kLevel) return;
  std::string path = std::filesystem::read_symlink("/proc/self/exe");
  const size_t name = path.rfind('/') + 1;
  path = path.substr(0, name) + "kiln_engine_bench" +
         (level == "baseline" ? "" : "-" + std::string(level));
  execv(path.c_str(), argv);
  give_up(fmt::format("{} cannot be started: the engine was not built for {}", path, level));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> plain;
  Bars bars;
  bool two_cores = false;
  std::string report, level = std::string(level_for(""));
  for (int i = 1; i < argc; ++i) {
    std::string_view arg = argv[i];
    if (arg.rfind("--only=", 0) == 0) {
      bars.only = arg.substr(7);
    } else if (arg.rfind("--report=", 0) == 0) {
      report = arg.substr(9);
    } else if (arg.rfind("--level=", 0) == 0) {
      level = arg.substr(8);
    } else if (CpuPair pair; std::sscanf(argv[i], "--cpus=%d,%d", &pair.first, &pair.second) == 2) {
      if (!stay_on(pair)) give_up("this process may not use these CPUs");
      two_cores = true;
      level = kLevel;
    } else {
      plain.emplace_back(arg);
    }
  }
  if (plain.empty() || plain.size() > 2) {
    give_up(
        fmt::format("usage: {} [--level=baseline|x86-64-v3|x86-64-v4] [--only=PART_OF_NAME] "
                    "[--report=FOLDER] tests/ptx/kernels "
                    "[libkiln_engine.so]\n  the level: what the library would take on this CPU, "
                    "unless it is named",
                    argv[0]));
  }
  if (level.empty()) level = "baseline";
  if (level != "baseline" && level_for(level).empty())
    give_up(fmt::format("this CPU does not have what {} needs", level));
  become(level, argv);
  threads("1");
  Bench bench(text_of(plain[0] + "/bench.ptx")), mma(text_of(plain[0] + "/bench_mma.ptx"));
  if (two_cores) return measure_two_cores(bench);
  if (bars.wants("add")) bench_add(bars, bench, plain[0]);
  if (bars.wants("matmul")) bench_matmul(bars, bench);
  if (bars.wants("f16")) bench_mma(bars, mma, "matmul_f16", true);
  if (bars.wants("bf16")) bench_mma(bars, mma, "matmul_bf16", false);
  if (bars.wants("launch")) bench_launch(bars, bench);
  if (bars.wants("decode")) bench_decode(bars);
  if (plain.size() == 2 && bars.wants("library")) bench_library(bars, plain[1]);

  utsname machine;
  uname(&machine);
  time_t now = time(nullptr);
  char day[16];
  strftime(day, sizeof day, "%Y-%m-%d", gmtime(&now));
  std::string table = fmt::format(
      "| what | figure | bar | bar held by a factor of | | how |\n|---|---|---|---|---|---|\n{}",
      bars.rows);
  fmt::print("level: {}\n\n{}", level_text(), table);
  if (!report.empty()) {
    std::ofstream out(fmt::format("{}/engine-{}.md", report, machine.machine));
    out << fmt::format(
        "# The engine's bars on {}\n\n`ninja engine_bars` made this page on {}: {}, {} cores, g++ "
        "{}; level of CPU: "
        "{}.\n"
        "One core is measured in CPU time; two cores by the clock on the wall. Every kernel is "
        "bounds checked, and its "
        "result compared.\n\n{}",
        machine.machine, day, processor(), std::thread::hardware_concurrency(), __VERSION__,
        level_text(), table);
  }
  return bars.missed ? 1 : 0;
}
