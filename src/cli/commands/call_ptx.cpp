// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/call_ptx.h"

#include <fmt/format.h>
#include <kiln/engine_abi.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>

#include "base/ascii.h"
#include "base/text.h"
#include "binary/fatbin.h"
#include "host/argument_value.h"
#include "host/generate.h"
#include "host/random.h"
#include "ptx/parser.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/library.h"

namespace kiln::cli {
namespace {

constexpr std::string_view kElf = "\177ELF";
constexpr uint32_t kPlainSharedBytes = 48 << 10;
constexpr int kMaxDynamicShared = 8;  // cudaFuncAttributeMaxDynamicSharedMemorySize

Error cannot_call(const std::string& file, std::string why, std::string fix) {
  return {Fault::Usage, "cannot call a kernel of " + file, std::move(why), std::move(fix)};
}

// The PTX of the newest architecture in a fat binary, or the text itself.
Result<std::string> read_text(const std::string& file) {
  TRY(std::string content, sys::real_files().read(file));
  if (content.starts_with(kElf))
    return cannot_call(file,
                       "it is a cubin: machine code for one kind of GPU, without PTX, which the "
                       "engine runs",
                       "compile to PTX: nvcc -ptx, or keep both: -gencode arch=...,code=[sm_90,"
                       "compute_90]");
  const auto bytes = std::as_bytes(std::span(content.data(), content.size()));
  if (!binary::container_bytes(bytes)) return content;
  TRY(std::vector<binary::PtxText> texts, binary::read_ptx(bytes));
  if (texts.empty())
    return cannot_call(file, "it contains cubins and no PTX, which the engine runs",
                       "compile with PTX: -gencode arch=compute_90,code=compute_90");
  return std::max_element(texts.begin(), texts.end(),
                          [](const auto& a, const auto& b) { return a.arch < b.arch; })
      ->text;
}

struct PtxFile {
  std::unique_ptr<std::string> text;  // the module's names point into it
  ptx::Module module;
  uint32_t arch = 0;
};

Result<PtxFile> read_file(const std::string& path) {
  PtxFile file;
  TRY(std::string text, read_text(path));
  file.text = std::make_unique<std::string>(std::move(text));
  Result<ptx::Module> module = ptx::parse_module(*file.text);
  if (!module)
    return cannot_call(path, module.error().why.empty() ? module.error().what : module.error().why,
                       "PTX comes from nvcc -ptx, NVRTC, Numba or Triton");
  file.module = std::move(*module);
  const std::string_view target = file.module.target;
  const size_t digit = target.find_first_of("0123456789");
  if (digit != std::string_view::npos)
    std::from_chars(target.data() + digit, target.data() + target.size(), file.arch);
  return file;
}

// `add` of `_Z3addPfS_i`: the last name that a mangled one spells out.
std::string short_name(std::string_view name) {
  if (!name.starts_with("_Z")) return std::string(name);
  size_t at = name.starts_with("_ZN") ? 3 : 2;
  std::string found(name);
  while (at < name.size() && is_digit(name[at])) {
    size_t length = 0;
    const auto end = std::from_chars(name.data() + at, name.data() + name.size(), length).ptr;
    at = static_cast<size_t>(end - name.data());
    if (length > name.size() - at) break;
    found = name.substr(at, length);
    at += length;
    if (!name.starts_with("_ZN")) break;
  }
  return found;
}

// nvcc calls the parameters of f f_param_0, f_param_1, ...: what follows the kernel's name.
std::string parameter_name(std::string_view name) {
  const size_t at = name.rfind("_param_");
  return std::string(at == std::string_view::npos ? name : name.substr(at + 1));
}

std::string declaration(const ptx::Variable& parameter) {
  const std::string count = parameter.count > 1 ? fmt::format("[{}]", parameter.count) : "";
  return fmt::format(".{} {}{}", ptx::name_of(parameter.type), parameter_name(parameter.name),
                     count);
}

std::string declaration(const ptx::Function& entry) {
  std::vector<std::string> parts;
  for (const ptx::Variable& parameter : entry.parameters) parts.push_back(declaration(parameter));
  return fmt::format("{}({})", short_name(entry.name), fmt::join(parts, ", "));
}

Result<const ptx::Function*> find_kernel_entry(const PtxFile& file, const PtxLaunch& launch) {
  const ptx::Function* found = nullptr;
  std::vector<std::string> names;
  for (const ptx::Function& function : file.module.functions) {
    if (!function.is_entry) continue;
    if (function.name == launch.kernel) return &function;
    names.emplace_back(short_name(function.name));
    if (names.back() != launch.kernel) continue;
    if (found)
      return cannot_call(launch.file, fmt::format("two kernels are named {}", launch.kernel),
                         fmt::format("write one of {} and {}", found->name, function.name));
    found = &function;
  }
  if (found) return found;
  return cannot_call(
      launch.file, fmt::format("it has no kernel '{}'", launch.kernel),
      names.empty() ? "its PTX has no .entry" : fmt::format("it has: {}", fmt::join(names, ", ")));
}

Result<KilnDim3> parse_dim(const char* option, const std::string& given) {
  const Error wrong{Fault::Usage, fmt::format("{} is '{}'", option, given),
                    "expected one to three positive sizes",
                    fmt::format("{} 4, {} 4x2", option, option)};
  KilnDim3 dim{1, 1, 1};
  uint32_t* to[] = {&dim.x, &dim.y, &dim.z};
  const char* at = given.data();
  const char* const end = at + given.size();
  for (size_t i = 0;; ++i) {
    const auto [rest, code] = i < 3 ? std::from_chars(at, end, *to[i])
                                    : std::from_chars_result{at, std::errc::invalid_argument};
    if (code != std::errc() || *to[i] == 0) return wrong;
    if (rest == end) return dim;
    if (*rest != 'x' && *rest != ',') return wrong;
    at = rest + 1;
  }
}

// A tensor in memory that the kernel may touch, aligned as a device's allocations are.
struct Memory {
  std::string name;
  host::Array array;
  std::unique_ptr<void, decltype(&std::free)> bytes{nullptr, std::free};

  void* first() const {
    return static_cast<char*>(bytes.get()) + array.layout.offset * array.type().bytes;
  }
};

class PtxCall {
 public:
  explicit PtxCall(const PtxLaunch& launch) : launch_(launch) {}

  Status prepare(const ptx::Function& entry) {
    TRY(grid_, parse_dim("--grid", launch_.grid));
    TRY(block_, parse_dim("--block", launch_.block));
    if (entry.parameters.size() != launch_.arguments.size())
      return cannot_call(launch_.file,
                         fmt::format("it takes {} arguments, got {}", entry.parameters.size(),
                                     launch_.arguments.size()),
                         declaration(entry));
    for (size_t i = 0; i < entry.parameters.size(); ++i)
      CHECK_OK(take(entry.parameters[i], launch_.arguments[i]));
    return {};
  }

  Status run(const KilnEngine& engine, const PtxFile& file, const ptx::Function& entry,
             CallTimes& times);
  std::vector<host::Output> changed() const;
  std::string text(const ptx::Function& entry) const {
    const auto dim = [](KilnDim3 d) { return fmt::format("{}x{}x{}", d.x, d.y, d.z); };
    return fmt::format("{} <<<{}, {}>>>", short_name(entry.name), dim(grid_), dim(block_));
  }

 private:
  Status take(const ptx::Variable& parameter, const std::string& given);
  Status take_tensor(const ptx::Variable& parameter, const host::TensorSpec& spec);
  bool take_number(const ptx::Variable& parameter, const host::Scalar& scalar);
  void add(const void* bytes, size_t count) {
    values_.emplace_back(std::max<size_t>(count, 16));
    std::memcpy(values_.back().data(), bytes, count);
  }

  const PtxLaunch& launch_;
  KilnDim3 grid_{}, block_{};
  std::deque<std::vector<uint8_t>> values_;
  std::deque<Memory> memory_;
};

Status PtxCall::take_tensor(const ptx::Variable& parameter, const host::TensorSpec& spec) {
  Memory& memory = memory_.emplace_back();
  memory.name = parameter_name(parameter.name);
  TRY(memory.array,
      host::make_array(spec, host::seed_for_argument(launch_.seed, memory_.size() - 1)));
  const size_t bytes = memory.array.storage.size();
  memory.bytes.reset(std::aligned_alloc(256, (bytes + 511) / 256 * 256));
  if (!memory.bytes)
    return Error{Fault::Environment, "cannot make " + spec.text, "the host is out of memory", ""};
  std::memcpy(memory.bytes.get(), memory.array.storage.data(), bytes);
  void* const first = memory.first();
  add(&first, sizeof first);
  return {};
}

bool PtxCall::take_number(const ptx::Variable& parameter, const host::Scalar& scalar) {
  const uint32_t bytes = ptx::bytes_of(parameter.type);
  const bool whole = scalar.type == KILN_TYPE_INT || scalar.type == KILN_TYPE_BOOL;
  if (ptx::class_of(parameter.type) == 'f') {
    const double value = whole ? static_cast<double>(scalar.integer) : scalar.number;
    if (!whole && scalar.type != KILN_TYPE_FLOAT) return false;
    const auto narrow = static_cast<float>(value);
    bytes == 8 ? add(&value, 8) : add(&narrow, 4);
    return bytes >= 4;
  }
  if (scalar.type == KILN_TYPE_NONE && bytes == 8) {
    const uint64_t null = 0;
    add(&null, 8);
    return true;
  }
  if (!whole) return false;
  const int64_t most = bytes >= 8 ? INT64_MAX : (int64_t{1} << (8 * bytes)) - 1;
  const int64_t least = bytes >= 8 ? INT64_MIN : -(int64_t{1} << (8 * bytes - 1));
  if (scalar.integer > most || scalar.integer < least) return false;
  add(&scalar.integer, 8);
  return true;
}

std::string what_fits(const ptx::Variable& parameter) {
  const uint32_t bits = 8 * ptx::bytes_of(parameter.type);
  if (ptx::class_of(parameter.type) == 'f') return bits >= 32 ? "pass a number such as 2.5" : "";
  if (bits == 64) return "a pointer takes a tensor such as randn:f32:1000, or none";
  return fmt::format("pass a whole number of at most {} bits", bits);
}

Status PtxCall::take(const ptx::Variable& parameter, const std::string& given) {
  const std::string what =
      fmt::format("cannot pass {} as the parameter {}", given, declaration(parameter));
  if (parameter.count > 1)
    return Error{Fault::Usage, what, "it is a struct, which has no text",
                 "kiln.ptx in Python passes bytes"};
  Result<host::Argument> argument = host::parse_untyped(given);
  if (!argument) {
    Error error = argument.error();
    error.what = what;
    return error;
  }
  if (!argument->tensors.empty()) {
    if (argument->tensors.size() == 1 && ptx::bytes_of(parameter.type) == 8)
      return take_tensor(parameter, argument->tensors.front());
    return Error{Fault::Usage, what, "a tensor is passed as a pointer, which has 64 bits", ""};
  }
  if (take_number(parameter, argument->scalar)) return {};
  return Error{Fault::Usage, what, fmt::format("it does not fit .{}", ptx::name_of(parameter.type)),
               what_fits(parameter)};
}

// A fat binary with one entry, as it is in the memory of a process.
std::vector<uint8_t> container_of(const std::string& text, uint32_t arch) {
  constexpr size_t kHead = 16, kEntry = 64;
  const uint64_t payload = (text.size() + 8) / 8 * 8, whole = kEntry + payload;
  std::vector<uint8_t> made(kHead + whole);
  const auto put = [&](size_t at, auto value) { std::memcpy(&made[at], &value, sizeof value); };
  put(0, binary::kContainerMagic);
  put(4, uint16_t{1});
  put(6, uint16_t{kHead});
  put(8, whole);
  put(kHead, static_cast<uint16_t>(binary::ImageKind::Ptx));
  put(kHead + 2, uint16_t{0x101});
  put(kHead + 4, uint32_t{kEntry});
  put(kHead + 8, payload);
  put(kHead + 0x1C, arch);
  std::memcpy(&made[kHead + kEntry], text.data(), text.size());
  return made;
}

Error engine_error(const KilnEngine& engine, const std::string& kernel) {
  Error error = host::parse_error(engine.last_message(), kernel + " failed on the engine");
  // This error reports it: the process must not report it again when it ends.
  reinterpret_cast<int (*)()>(engine.runtime_function("cudaGetLastError"))();
  return error;
}

Status PtxCall::run(const KilnEngine& engine, const PtxFile& file, const ptx::Function& entry,
                    CallTimes& times) {
  const std::vector<uint8_t> container = container_of(*file.text, file.arch);
  const struct {
    uint32_t magic = binary::kWrapperMagic, version = 1;
    const void* container;
    void* unused = nullptr;
  } wrapper{.container = container.data()};
  void* const image = engine.register_image(&wrapper);
  const char function = 0;  // its address stands for the kernel
  const std::string name(entry.name);
  engine.register_function(image, &function, name.c_str());
  if (launch_.shared_bytes > kPlainSharedBytes)
    reinterpret_cast<int (*)(const void*, int, int)>(
        engine.runtime_function("cudaFuncSetAttribute"))(&function, kMaxDynamicShared,
                                                         static_cast<int>(launch_.shared_bytes));
  std::vector<void*> arguments;
  for (std::vector<uint8_t>& value : values_) arguments.push_back(value.data());
  std::vector<KilnRegion> regions;
  for (const Memory& one : memory_)
    regions.push_back({one.bytes.get(), one.array.storage.size(), one.name.c_str(), 1});
  KilnEngineLaunch launch{};
  launch.struct_bytes = sizeof launch;
  launch.host_function = &function;
  launch.grid = grid_;
  launch.block = block_;
  launch.arguments = arguments.data();
  launch.dynamic_shared_bytes = launch_.shared_bytes;
  launch.regions = regions.data();
  launch.region_count = static_cast<uint32_t>(regions.size());
  launch.check_memory = 1;
  Status done;
  for (int64_t i = 0; i <= launch_.repeat && done; ++i) {
    const double begin = sys::now_seconds();
    if (engine.launch(&launch)) done = engine_error(engine, short_name(entry.name));
    const double seconds = sys::now_seconds() - begin;
    i == 0 ? void(times.first_seconds = seconds) : times.later_seconds.push_back(seconds);
  }
  engine.unregister_image(image);
  return done;
}

std::vector<host::Output> PtxCall::changed() const {
  std::vector<host::Output> outputs;
  for (const Memory& one : memory_) {
    const std::vector<uint8_t>& before = one.array.storage;
    if (std::memcmp(before.data(), one.bytes.get(), before.size()) == 0) continue;
    host::Output output;
    output.name = one.name;
    output.in_place = true;
    output.scalar.type = KILN_TYPE_TENSOR;
    output.array = one.array;
    std::memcpy(output.array->storage.data(), one.bytes.get(), before.size());
    outputs.push_back(std::move(output));
  }
  return outputs;
}

Result<const KilnEngine*> open_engine() {
  const char* path = std::getenv("KILN_ENGINE");
  if (!path)
    return Error{Fault::Environment, "cannot run a kernel on the CPU",
                 "libkiln_engine.so is not next to this command", "set KILN_ENGINE to its path"};
  TRY(const sys::Library library, sys::Library::open(path));
  const auto entry = reinterpret_cast<KilnEngineFunction>(library.find(KILN_ENGINE_SYMBOL));
  const KilnEngine* engine = entry ? entry(KILN_ENGINE_ABI_VERSION) : nullptr;
  if (!engine)
    return Error{Fault::Environment, std::string("cannot use ") + path,
                 "it belongs to another version of kiln", "unset KILN_ENGINE"};
  engine->serve_ops();
  return engine;
}

}  // namespace

bool names_ptx(const std::string& target) {
  return target.ends_with(".ptx") || target.ends_with(".cubin") || target.ends_with(".fatbin");
}

Result<std::vector<std::string>> ptx_kernels(const std::string& path) {
  TRY(const PtxFile file, read_file(path));
  std::vector<std::string> lines;
  for (const ptx::Function& function : file.module.functions)
    if (function.is_entry) lines.push_back(declaration(function));
  return lines;
}

Result<PtxResult> call_ptx(const PtxLaunch& launch) {
  if (launch.device == "cuda")
    return cannot_call(launch.file, "kiln call runs PTX on the engine, not on a GPU",
                       "in Python: kiln.ptx(FILE)");
  TRY(const PtxFile file, read_file(launch.file));
  TRY(const ptx::Function* entry, find_kernel_entry(file, launch));
  if (launch.grid.empty() || launch.block.empty())
    return cannot_call(
        launch.file, "a kernel needs --grid and --block",
        fmt::format("kiln call {} {} --grid 4 --block 128 ARGS", launch.file, launch.kernel));
  PtxCall call(launch);
  CHECK_OK(call.prepare(*entry));
  TRY(const KilnEngine* engine, open_engine());
  PtxResult result;
  result.kernel = call.text(*entry);
  CHECK_OK(call.run(*engine, file, *entry, result.times));
  result.outputs = call.changed();
  return result;
}

}  // namespace kiln::cli
