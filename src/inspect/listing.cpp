// SPDX-License-Identifier: Apache-2.0
// How are nvdisasm's text, the control codes and the line tables brought together?
#include "inspect/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "inspect/artifact.h"
#include "project/setup_folder.h"

namespace kiln::inspect {
namespace {

// Line tables name a project's files below this folder, so that a moved checkout gives the same
// bytes; people know them by the rest.
std::string as_written(const std::string& file) {
  constexpr std::string_view kOwnFolder = "/proc/self/cwd/";
  return file.starts_with(kOwnFolder) ? file.substr(kOwnFolder.size()) : file;
}

using binary::Bytes;
using sys::fs::path;

constexpr size_t kMaxInlineDepth = 64;

// "| GPR | PRED | UGPR |": which column is which.
std::vector<std::string> column_names(std::string_view comment) {
  std::vector<std::string> names;
  for (std::string_view cell : text::split(comment, '|')) names.emplace_back(text::trim(cell));
  return names;
}

void read_counts(std::string_view comment, const std::vector<std::string>& names,
                 DisassembledLine& line) {
  std::vector<std::string_view> cells = text::split(comment, '|');
  for (size_t i = 0; i < cells.size() && i < names.size(); ++i) {
    int count = static_cast<int>(text::to_int(text::trim(cells[i])).value_or(0));
    if (names[i] == "GPR") line.registers = count;
    if (names[i] == "PRED") line.predicates = count;
    if (names[i] == "UGPR") line.uniform = count;
  }
}

std::string branch_target(std::string_view text) {
  size_t open = text.find("`(");
  if (open == text.npos) return "";
  size_t close = text.find(')', open);
  return close == text.npos ? "" : std::string(text.substr(open + 2, close - open - 2));
}

std::vector<std::string> ptx_lines(const binary::Elf& elf) {
  std::vector<std::string> out;
  const binary::ElfSection* section = elf.find(".nv_debug_ptx_txt");
  if (!section) return out;
  Bytes bytes = elf.content(*section);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (std::string_view line : text::split(text, '\0')) out.emplace_back(line);
  return out;
}

// By program counter, for one section.
class Lines {
 public:
  explicit Lines(const binary::LineTable& table) : table_(table) {}

  void add_source(uint32_t section, SassLine& line) {
    const binary::LineSequence* sequence = nullptr;
    const binary::LineRow* row = table_.find(section, line.address, &sequence);
    while (row && line.source.size() < kMaxInlineDepth) {
      if (row->line)
        line.source.push_back(
            {row->file, row->line, row->inlined_at >= 0 ? name_of(row->function) : std::string()});
      row = row->inlined_at >= 0 ? &sequence->rows[static_cast<size_t>(row->inlined_at)] : nullptr;
    }
  }

 private:
  const std::string& name_of(std::string_view mangled) {
    std::string& name = names_[mangled];
    if (name.empty()) name = binary::demangle(mangled);
    return name;
  }

  const binary::LineTable& table_;
  std::unordered_map<std::string_view, std::string> names_;
};

results::ControlCode control_of(uint64_t high_word) {
  const binary::ControlCode code = binary::control_code(high_word);
  return {code.stall,        code.yield,     code.write_barrier,
          code.read_barrier, code.wait_mask, code.reuse};
}

// It takes seconds for the largest kernels of torch. A damaged image must not hold up the command.
constexpr double kNvdisasmLimitS = 300;

Result<std::string> run_nvdisasm(Bytes cubin, const ListingOptions& options,
                                 const std::vector<uint32_t>& symbols, sys::Files& files,
                                 sys::Processes& processes) {
  TRY(sys::fs::path folder, sys::make_temporary_folder("kiln-sass"));
  path file = folder / "image.cubin";
  auto written = files.write(file, {reinterpret_cast<const char*>(cubin.data()), cubin.size()},
                             sys::Durable::No);
  std::string numbers;
  for (uint32_t symbol : symbols) numbers += (numbers.empty() ? "" : ",") + std::to_string(symbol);
  sys::ProcessSpec spec;
  spec.arguments = {
      options.nvdisasm.string(), "-c", "-lrm", "count", "-fun", numbers, file.string()};
  spec.limit_s = kNvdisasmLimitS;
  auto result =
      written ? processes.run(spec) : Result<sys::ProcessResult>(std::move(written.error()));
  std::error_code ignored;
  sys::fs::remove_all(folder, ignored);
  if (!result) return std::move(result.error());
  if (result->timed_out)
    return Error{Fault::Work, "nvdisasm could not read an image",
                 fmt::format("it was stopped after {:g} s", kNvdisasmLimitS),
                 "pip install --upgrade nvidia-cuda-nvdisasm"};
  if (result->exit_code != 0 && result->out.find("/*0000*/") == std::string::npos)
    return Error{Fault::Work, "nvdisasm could not read an image",
                 std::string(text::trim(result->out)),
                 "pip install --upgrade nvidia-cuda-nvdisasm"};
  return std::move(result->out);
}

}  // namespace

path find_nvdisasm(const sys::Files& files, sys::Processes& processes,
                   const sys::Environment& env) {
  path found = sys::find_program(files, "nvdisasm", env.get("PATH").value_or("/usr/bin:/bin"));
  if (!found.empty()) return found;
  std::vector<path> folders;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (auto home = env.get(name)) folders.push_back(path(*home) / "bin");
  if (folders.empty()) folders.emplace_back("/usr/local/cuda/bin");
  for (const path& folder : folders)
    if (files.state(folder / "nvdisasm").is_executable) return folder / "nvdisasm";
  if (path installed = project::setup_program(files, env, project::kSetupNvdisasm);
      !installed.empty())
    return installed;
  auto package = find_package(files, processes, env, "nvidia");
  if (!package) return {};
  for (const std::string& part : files.list(*package)) {
    path candidate = *package / part / "bin/nvdisasm";
    if (files.state(candidate).is_executable) return candidate;
  }
  return {};
}

std::map<std::string, std::map<uint64_t, DisassembledLine>> parse_nvdisasm(
    std::string_view output) {
  std::map<std::string, std::map<uint64_t, DisassembledLine>> out;
  std::map<uint64_t, DisassembledLine>* section = nullptr;
  std::vector<std::string> names;
  std::string label;
  for (std::string_view line : text::lines(output)) {
    size_t comment_at = line.rfind("// |");
    std::string_view comment =
        comment_at == line.npos ? std::string_view() : line.substr(comment_at + 3);
    std::string_view head = text::trim(line.substr(0, comment_at));
    // ".sectioninfo" follows it in cubins before sm_90.
    if (head.starts_with(".section\t") || head.starts_with(".section ")) {
      std::string_view name = text::trim(head.substr(8));
      section = &out[std::string(name.substr(0, name.find(',')))];
      label.clear();  // the one behind the last instruction of the section before
      continue;
    }
    if (comment.find("GPR") != comment.npos) names = column_names(comment);
    if (!section) continue;
    if (head.starts_with(".L_") || head.starts_with("$")) {
      size_t end = head.find(':');
      if (end != head.npos && head.find(' ') > end) label = std::string(head.substr(0, end));
      continue;
    }
    if (!head.starts_with("/*")) continue;
    size_t close = head.find("*/");
    if (close == head.npos) continue;
    uint64_t address = 0;
    for (char c : head.substr(2, close - 2)) {
      int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
      if (digit < 0) break;
      address = address * 16 + static_cast<uint64_t>(digit);
    }
    std::string_view body = text::trim(head.substr(close + 2));
    if (size_t end = body.rfind(';'); end != body.npos) body = text::trim(body.substr(0, end));
    DisassembledLine& one = (*section)[address];
    one.text = std::string(body);
    one.label = std::exchange(label, {});
    if (!comment.empty()) read_counts(comment, names, one);
  }
  return out;
}

Result<CubinListing> list_cubin(Bytes bytes, const ListingOptions& options, sys::Files& files,
                                sys::Processes& processes) {
  TRY(binary::Cubin cubin, binary::read_cubin(bytes));
  TRY(binary::LineTable source_lines, binary::read_lines(cubin.elf, ".debug_line"));
  TRY(binary::LineTable ptx_table, binary::read_lines(cubin.elf, ".nv_debug_line_sass"));
  CubinListing out;
  out.ptx = ptx_lines(cubin.elf);
  std::map<std::string, std::map<uint64_t, DisassembledLine>> disassembled;
  if (options.nvdisasm.empty()) {
    out.note =
        "no nvdisasm: hexadecimal words instead of operands; kiln setup installs it, or pip "
        "install nvidia-cuda-nvdisasm";
  } else {
    auto text = run_nvdisasm(bytes, options, options.symbols, files, processes);
    if (text)
      disassembled = parse_nvdisasm(*text);
    else
      out.note = fmt::format("nvdisasm failed ({}): hexadecimal words instead of operands",
                             text.error().why);
  }
  Lines lines(source_lines);
  for (const binary::Kernel& kernel : cubin.kernels) {
    if (std::find(options.symbols.begin(), options.symbols.end(), kernel.symbol) ==
        options.symbols.end())
      continue;
    Listing listing;
    listing.symbol = std::string(kernel.name);
    listing.name = binary::demangle(listing.symbol);
    listing.arch = options.arch;
    for (const std::string& file : source_lines.files) listing.files.push_back(as_written(file));
    const binary::ElfSection& section = cubin.elf.sections[kernel.section];
    auto found = disassembled.find(std::string(section.name));
    listing.disassembled = found != disassembled.end() && !found->second.empty();
    if (!listing.disassembled && out.note.empty())
      out.note = fmt::format(
          "nvdisasm printed nothing for {}: hexadecimal words instead of operands", listing.symbol);
    Bytes code = binary::code_of(cubin, kernel);
    for (uint64_t at = 0; at + binary::kInstructionBytes <= code.size();
         at += binary::kInstructionBytes) {
      SassLine line;
      line.address = kernel.code_offset + at;
      line.low = *binary::read_at<uint64_t>(code, at);
      line.high = *binary::read_at<uint64_t>(code, at + 8);
      line.control = control_of(line.high);
      if (listing.disassembled) {
        auto text = found->second.find(line.address);
        if (text != found->second.end()) {
          const DisassembledLine& one = text->second;
          line.text = one.text;
          line.label = one.label;
          line.target = branch_target(one.text);
          line.live_registers = one.registers;
          line.live_predicates = one.predicates;
          line.live_uniform = one.uniform;
        }
      }
      if (line.text.empty()) line.text = std::string(binary::opcode_of(line.low).mnemonic);
      lines.add_source(kernel.section, line);
      if (const binary::LineRow* row = ptx_table.find(kernel.section, line.address))
        line.ptx_line = row->line;
      listing.lines.push_back(std::move(line));
    }
    while (!listing.lines.empty() && binary::opcode_of(listing.lines.back().low).mnemonic == "NOP")
      listing.lines.pop_back();
    out.kernels.push_back(std::move(listing));
  }
  return out;
}

}  // namespace kiln::inspect
