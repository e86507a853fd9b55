// SPDX-License-Identifier: Apache-2.0
#include "host/library.h"

#include <cxxabi.h>
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/text.h"
#include "sys/files.h"

namespace kiln::host {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kThisMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kThisMachine = EM_AARCH64;
#else
#error "kiln runs on x86_64 and aarch64"
#endif

struct Machine {
  uint16_t number;
  const char* name;
};
constexpr Machine kMachines[] = {
    {EM_X86_64, "x86-64"},  {EM_AARCH64, "AArch64"},
    {EM_386, "32-bit x86"}, {EM_ARM, "32-bit ARM"},
    {EM_RISCV, "RISC-V"},   {EM_PPC64, "PowerPC 64"},
    {EM_S390, "IBM S/390"}, {EM_CUDA, "NVIDIA GPU (a cubin)"},
};

Error cannot_load(const std::filesystem::path& path, Fault fault, std::string why,
                  std::string fix) {
  return {fault, "cannot load " + path.string(), std::move(why), std::move(fix)};
}

// The loader maps what the program headers say and dies of SIGBUS where a file was cut short.
Status check_length(const std::filesystem::path& path, std::ifstream& file,
                    const Elf64_Ehdr& header, uint64_t file_bytes) {
  const auto cut_short = [&](std::string_view what, uint64_t end) {
    return cannot_load(
        path, Fault::Work,
        fmt::format("it is truncated: {} ends at byte {}, the file has {}", what, end, file_bytes),
        "build it again");
  };
  const uint64_t headers_bytes = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (header.e_phoff > file_bytes || headers_bytes > file_bytes - header.e_phoff)
    return cut_short("its segment table", header.e_phoff + headers_bytes);
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    file.read(reinterpret_cast<char*>(&segment), sizeof segment);
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_offset > file_bytes || segment.p_filesz > file_bytes - segment.p_offset)
      return cut_short(fmt::format("segment {}", i), segment.p_offset + segment.p_filesz);
  }
  return {};
}

// dlopen's own words for these ("invalid ELF header", "cannot open shared object file") do not say
// what to do.
Status check_elf(const std::filesystem::path& path) {
  const sys::FileState state = sys::real_files().state(path);
  if (!state.exists)
    return cannot_load(path, Fault::Usage, "there is no such file",
                       "build it first: kiln build FILE.cu");
  if (state.is_directory)
    return cannot_load(path, Fault::Usage, "it is a directory", "name the .so file in it");
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open())
    return cannot_load(path, Fault::Environment, "it cannot be read", "check its permissions");
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  const auto got = static_cast<size_t>(file.gcount());
  file.clear();
  if (got < SELFMAG || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return cannot_load(path, Fault::Usage,
                       "it is not an ELF file (it does not start with \\x7f ELF)",
                       "name a .cu file, a project, or the .so that kiln build made");
  if (got < sizeof header)
    return cannot_load(path, Fault::Work,
                       fmt::format("it ends after {} bytes, inside its ELF header", got),
                       "build it again");
  // e_machine is at the same place in 32-bit files.
  const bool big_endian = header.e_ident[EI_DATA] == ELFDATA2MSB;
  const uint16_t machine = big_endian ? __builtin_bswap16(header.e_machine) : header.e_machine;
  if (machine == EM_CUDA)
    return cannot_load(path, Fault::Usage, "it contains only GPU code (a cubin)",
                       "build the whole library: kiln build");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || big_endian || machine != kThisMachine)
    return cannot_load(path, Fault::Environment,
                       fmt::format("it is for {}; this machine is {}", architecture_name(machine),
                                   architecture_name(kThisMachine)),
                       "build it on a machine like this one");
  return check_length(path, file, header, state.size_bytes);
}

// Up to where a table of version 1 must reach for this caller.
constexpr size_t kTableBytesWanted =
    offsetof(KilnLibrary, synchronize) + sizeof(KilnLibrary::synchronize);

// dlopen's "undefined symbol: _Z6helperPf" as the source has it: "helper(float*)".
std::string with_source_names(std::string why) {
  constexpr std::string_view kSign = "undefined symbol: ";
  const size_t at = why.find(kSign);
  if (at == std::string::npos) return why;
  const size_t begin = at + kSign.size();
  const size_t end = std::min(why.find_first_of(" ,\t\n", begin), why.size());
  int status = 0;
  char* name =
      abi::__cxa_demangle(why.substr(begin, end - begin).c_str(), nullptr, nullptr, &status);
  if (status == 0 && name) why.replace(begin, end - begin, name);
  std::free(name);
  return why;
}

}  // namespace

Result<OpLibrary> OpLibrary::open(const std::filesystem::path& path) {
  CHECK_OK(check_elf(path));
  // A name without a slash would be looked for in the library path.
  Result<sys::Library> library = sys::Library::open(std::filesystem::absolute(path));
  if (!library) {
    const bool undefined = library.error().why.find("undefined symbol") != std::string::npos;
    return cannot_load(
        path, Fault::Environment, with_source_names(library.error().why),
        undefined ? "add what defines it to the build: every source (a project), or --ldflag=-lNAME"
                  : "list the libraries it needs: ldd " + path.string());
  }
  const auto function = reinterpret_cast<KilnLibraryFunction>(library->find(KILN_LIBRARY_SYMBOL));
  if (!function)
    return cannot_load(
        path, Fault::Usage, "not a kiln op library: it has no symbol " KILN_LIBRARY_SYMBOL,
        "include <kiln/op.h>, name an op with KILN_OP, and build it with kiln build");
  const KilnLibrary* table = function();
  if (!table)
    return cannot_load(path, Fault::Work, "its " KILN_LIBRARY_SYMBOL "() returned nothing",
                       "build it again");
  if (table->abi_version != KILN_ABI_VERSION)
    return cannot_load(
        path, Fault::Environment,
        fmt::format("it was built for version {} of the op interface (kiln {}); this is kiln {}, "
                    "version {}",
                    table->abi_version, table->kiln_version ? table->kiln_version : "?",
                    KILN_VERSION_STRING, KILN_ABI_VERSION),
        "build it again with this kiln");
  if (table->struct_bytes < kTableBytesWanted)
    return cannot_load(path, Fault::Work,
                       fmt::format("its table has {} bytes; version {} has at least {}",
                                   table->struct_bytes, KILN_ABI_VERSION, kTableBytesWanted),
                       "build it again with this kiln");
  OpLibrary opened(path, table);
  // The same op in two files: no compiler sees both.
  if (const char* fault = table->op_count ? "" : table->last_error(); fault && *fault)
    return opened.last_error(fmt::format("cannot load {}", path.string()));
  return opened;
}

Error OpLibrary::last_error(std::string what) const {
  const char* text = table_->last_error();
  Error error = parse_error(text && *text ? text : "the library gave no reason", std::move(what));
  // CUDA's answers where there is no driver, or no GPU.
  const bool no_gpu = error.why.starts_with("cudaErrorInsufficientDriver") ||
                      error.why.starts_with("cudaErrorNoDevice");
  if (!no_gpu || !error.fix.empty()) return error;
  return {
      Fault::Environment, "cannot use the GPU",
      "CUDA finds no GPU or no driver for it: " + error.why,
      "run it on the CPU: --device engine, or KILN_DEVICE=engine; kiln doctor checks the driver"};
}

Error parse_error(std::string_view text, std::string what) {
  Error error{Fault::Work, std::move(what), {}, {}};
  std::string* part = &error.why;
  for (std::string_view line : text::split(text, '\n')) {
    bool first = false;
    const auto begins = [&](std::string_view label, std::string& to) {
      if (!line.starts_with(label)) return;
      line.remove_prefix(label.size());
      part = &to;
      first = true;
    };
    begins("error: ", error.what);
    // Lines before the first label are the reason, unless a label says what is: then they are what
    // happened.
    if (line.starts_with("  why: ") && part == &error.why && !error.why.empty())
      error.what = error.why;
    begins("  why: ", error.why);
    begins("  fix: ", error.fix);
    if (first) part->clear();
    if (!part->empty()) *part += '\n';
    *part += line;
  }
  return error;
}

Result<Device> OpLibrary::default_device() const {
  Device device;
  if (table_->default_device(&device.type, &device.index)) {
    Error error = last_error("no device to run on");
    error.fault = Fault::Environment;
    return error;
  }
  return device;
}

bool OpLibrary::use_stream(void* stream) const {
  constexpr size_t kBytesWanted =
      offsetof(KilnLibrary, use_stream) + sizeof(KilnLibrary::use_stream);
  return table_->struct_bytes >= kBytesWanted && table_->use_stream &&
         table_->use_stream(stream) == 0;
}

std::string full_name(const KilnOpInfo& op) {
  return op.overload && *op.overload ? std::string(op.name) + "." + op.overload : op.name;
}

std::string architecture_name(uint16_t machine) {
  for (const Machine& row : kMachines)
    if (row.number == machine) return row.name;
  return fmt::format("machine {}", machine);
}

bool point_to_own_engine(const sys::Environment& env) {
  if (env.get("KILN_ENGINE")) return true;
  const Result<std::filesystem::path> own = sys::own_executable();
  if (!own) return false;
  const std::filesystem::path engine =
      own->parent_path().parent_path() / "lib" / "libkiln_engine.so";
  if (!sys::real_files().state(engine).is_file()) return false;
  return setenv("KILN_ENGINE", engine.c_str(), 1) == 0;
}

std::string gpu_name(int32_t index) {
  // The driver's own library: there wherever a GPU works, whichever CUDA runtime the ops use.
  const Result<sys::Library> driver = sys::Library::open("libcuda.so.1");
  if (!driver) return {};
  const auto initialise = reinterpret_cast<int (*)(unsigned)>(driver->find("cuInit"));
  const auto get = reinterpret_cast<int (*)(int*, int)>(driver->find("cuDeviceGet"));
  const auto get_name = reinterpret_cast<int (*)(char*, int, int)>(driver->find("cuDeviceGetName"));
  int device = 0;
  char name[256] = {};
  if (!initialise || !get || !get_name || initialise(0) || get(&device, index) ||
      get_name(name, sizeof name, device))
    return {};
  return name;
}

}  // namespace kiln::host
