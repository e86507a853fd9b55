// SPDX-License-Identifier: Apache-2.0
// How is a DWARF 2 line program run, when its numbers may be anything?
#include "binary/line_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "binary/symbols.h"

namespace kiln::binary {
namespace {

constexpr uint64_t kRelocationBytes = 24;
// A row takes at least a byte of the program, but its file does not: names of more files than this
// are noise.
constexpr size_t kMaxFiles = 1 << 16;

class Cursor {
 public:
  Cursor(Bytes bytes, uint64_t at) : bytes_(bytes), at_(at) {}
  uint64_t at() const { return at_; }
  bool done() const { return at_ >= bytes_.size() || failed_; }
  bool failed() const { return failed_; }
  void go(uint64_t at) { at_ = at; }

  template <class T>
  T take() {
    auto value = read_at<T>(bytes_, at_);
    if (!value) failed_ = true;
    at_ += sizeof(T);
    return value.value_or(T{});
  }
  uint64_t take_unsigned() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      uint8_t byte = take<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << shift;
      if (!(byte & 0x80)) return value;
    }
    failed_ = true;
    return value;
  }
  int64_t take_signed() {
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte = 0x80;
    while ((byte & 0x80) && shift < 64) {
      byte = take<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
    }
    if (byte & 0x80) failed_ = true;
    if (shift < 64 && (byte & 0x40)) value |= ~uint64_t{0} << shift;
    return static_cast<int64_t>(value);
  }
  std::string_view take_text() {
    if (done()) {
      failed_ = true;
      return {};
    }
    std::string_view text = text_at(bytes_, at_);
    at_ += text.size() + 1;
    if (at_ > bytes_.size()) failed_ = true;
    return text;
  }

 private:
  Bytes bytes_;
  uint64_t at_;
  bool failed_ = false;
};

Error damaged_lines(std::string_view section, uint64_t offset, std::string why) {
  return Error{Fault::Work, "cannot read the line table of a cubin",
               fmt::format("at offset {} of {}: {}", offset, section, why), ""};
}

struct Target {
  uint32_t section = 0;
  uint64_t addend = 0;
};

// Where in the line program an address stands that the linker fills in, and what it is.
Result<std::unordered_map<uint64_t, Target>> read_targets(const Elf& elf, uint64_t section_index) {
  constexpr uint32_t kWithAddend = 4, kWithout = 9;
  std::unordered_map<uint64_t, Target> out;
  const ElfSection* table = elf.find_type(kSectionSymbols);
  if (!table) return out;
  TRY(auto symbols, read_symbols(elf, *table));
  for (const ElfSection& section : elf.sections) {
    if ((section.type != kWithAddend && section.type != kWithout) || section.extra != section_index)
      continue;
    Bytes bytes = elf.content(section);
    uint64_t step = section.type == kWithAddend ? kRelocationBytes : 16;
    for (uint64_t at = 0; at + step <= bytes.size(); at += step) {
      uint64_t symbol = *read_at<uint64_t>(bytes, at + 8) >> 32;
      if (symbol >= symbols.size()) continue;
      uint64_t addend = step == kRelocationBytes ? *read_at<uint64_t>(bytes, at + 16) : 0;
      out[*read_at<uint64_t>(bytes, at)] = {symbols[symbol].section,
                                            symbols[symbol].value + addend};
    }
  }
  return out;
}

struct Program {
  std::string_view section_name;
  Bytes bytes, names;  // the section; .debug_str
  const std::unordered_map<uint64_t, Target>& targets;
  LineTable& table;
};

struct Unit {
  uint64_t end = 0;
  uint8_t min_step = 1, line_range = 1, opcode_base = 10;
  int8_t line_base = 0;
  std::vector<uint8_t> operand_counts;
  std::vector<uint32_t> files;  // the unit's numbers (from 1) to the table's
};

uint32_t add_file(LineTable& table, const std::vector<std::string_view>& folders,
                  std::string_view name, uint64_t folder) {
  std::string path(name);
  if (!name.starts_with('/') && folder > 0 && folder <= folders.size())
    path = std::string(folders[folder - 1]) + "/" + path;
  auto found = std::find(table.files.begin(), table.files.end(), path);
  if (found == table.files.end() && table.files.size() < kMaxFiles)
    found = table.files.insert(found, path);
  return found == table.files.end() ? 0 : static_cast<uint32_t>(found - table.files.begin());
}

Result<Unit> read_unit_header(Program& program, Cursor& cursor) {
  uint64_t begin = cursor.at();
  Unit unit;
  uint32_t length = cursor.take<uint32_t>();
  unit.end = cursor.at() + length;
  uint16_t version = cursor.take<uint16_t>();
  uint32_t header_length = cursor.take<uint32_t>();
  uint64_t rows_at = cursor.at() + header_length;
  if (cursor.failed() || unit.end > program.bytes.size() || rows_at > unit.end)
    return damaged_lines(
        program.section_name, begin,
        fmt::format("a unit claims {} bytes, the section has {}", length, program.bytes.size()));
  if (version < 2 || version > 4)
    return damaged_lines(program.section_name, begin + 4,
                         fmt::format("DWARF {}, expected 2 to 4", version));
  unit.min_step = cursor.take<uint8_t>();
  if (version >= 4) cursor.take<uint8_t>();  // operations of a VLIW word: 1
  cursor.take<uint8_t>();                    // is_stmt
  unit.line_base = cursor.take<int8_t>();
  unit.line_range = cursor.take<uint8_t>();
  unit.opcode_base = cursor.take<uint8_t>();
  if (unit.line_range == 0 || unit.opcode_base == 0)
    return damaged_lines(program.section_name, cursor.at(), "a line range or opcode base of 0");
  for (int i = 1; i < unit.opcode_base; ++i) unit.operand_counts.push_back(cursor.take<uint8_t>());
  std::vector<std::string_view> folders;
  while (!cursor.done() && cursor.at() < rows_at) {
    std::string_view folder = cursor.take_text();
    if (folder.empty()) break;
    folders.push_back(folder);
  }
  unit.files = {0};
  while (!cursor.done() && cursor.at() < rows_at) {
    std::string_view name = cursor.take_text();
    if (name.empty()) break;
    uint64_t folder = cursor.take_unsigned();
    cursor.take_unsigned();  // time
    cursor.take_unsigned();  // size
    unit.files.push_back(add_file(program.table, folders, name, folder));
  }
  if (cursor.failed())
    return damaged_lines(program.section_name, cursor.at(), "the header of a unit is truncated");
  cursor.go(rows_at);
  return unit;
}

// The registers of the line machine (DWARF 2, 6.2.2), and what 0x90 adds.
struct Machine {
  uint64_t address = 0, file = 1;
  int64_t line = 1;
  uint64_t context = 0;  // row number from 1 of the call; 0: not inlined
  std::string_view function;
};

void add_row(const Unit& unit, const Machine& machine, LineSequence& sequence) {
  LineRow row;
  row.address = machine.address;
  row.file = machine.file < unit.files.size() ? unit.files[machine.file] : 0;
  row.line = static_cast<uint32_t>(std::clamp<int64_t>(machine.line, 0, UINT32_MAX));
  // Only rows before this one: chains of calls end.
  if (machine.context > 0 && machine.context <= sequence.rows.size()) {
    row.inlined_at = static_cast<int32_t>(machine.context - 1);
    row.function = machine.function;
  }
  sequence.rows.push_back(row);
}

void run_extended(Program& program, Cursor& cursor, const Unit& unit, Machine& machine,
                  LineSequence& sequence) {
  constexpr uint8_t kEndSequence = 1, kSetAddress = 2, kInlinedCall = 0x90, kFunctionName = 0x91;
  uint64_t length = cursor.take_unsigned(), begin = cursor.at();
  uint64_t end = length > unit.end - begin ? unit.end : begin + length;
  uint8_t opcode = length ? cursor.take<uint8_t>() : 0;
  if (opcode == kEndSequence) {
    sequence.end_address = machine.address;
    if (!sequence.rows.empty()) program.table.sequences.push_back(std::move(sequence));
    sequence = {};
    machine = {};
  } else if (opcode == kSetAddress) {
    auto target = program.targets.find(cursor.at());
    machine.address = cursor.take<uint64_t>();
    if (target != program.targets.end()) {
      sequence.section = target->second.section;
      machine.address += target->second.addend;
    }
  } else if (opcode == kInlinedCall) {
    machine.context = cursor.take_unsigned();
    machine.function = text_at(program.names, cursor.take_unsigned());
  } else if (opcode == kFunctionName) {
    machine.function = text_at(program.names, cursor.take_unsigned());
  }
  cursor.go(end);
}

Status run_unit(Program& program, Cursor& cursor, const Unit& unit) {
  constexpr uint8_t kCopy = 1, kAdvanceAddress = 2, kAdvanceLine = 3, kSetFile = 4, kConstAdd = 8,
                    kFixedAdvance = 9;
  Machine machine;
  LineSequence sequence;
  while (cursor.at() < unit.end && !cursor.failed()) {
    uint8_t opcode = cursor.take<uint8_t>();
    if (opcode >= unit.opcode_base) {
      int adjusted = opcode - unit.opcode_base;
      machine.address += static_cast<uint64_t>(adjusted / unit.line_range) * unit.min_step;
      machine.line += unit.line_base + adjusted % unit.line_range;
      add_row(unit, machine, sequence);
    } else if (opcode == 0) {
      run_extended(program, cursor, unit, machine, sequence);
    } else if (opcode == kCopy) {
      add_row(unit, machine, sequence);
    } else if (opcode == kAdvanceAddress) {
      machine.address += cursor.take_unsigned() * unit.min_step;
    } else if (opcode == kAdvanceLine) {
      machine.line = std::clamp<int64_t>(machine.line, INT32_MIN, INT32_MAX) +
                     std::clamp<int64_t>(cursor.take_signed(), INT32_MIN, INT32_MAX);
    } else if (opcode == kSetFile) {
      machine.file = cursor.take_unsigned();
    } else if (opcode == kConstAdd) {
      machine.address +=
          static_cast<uint64_t>((255 - unit.opcode_base) / unit.line_range) * unit.min_step;
    } else if (opcode == kFixedAdvance) {
      machine.address += cursor.take<uint16_t>();
    } else {
      for (int i = 0; i < unit.operand_counts[opcode - 1u]; ++i) cursor.take_unsigned();
    }
  }
  if (cursor.failed())
    return damaged_lines(program.section_name, cursor.at(), "the line program is truncated");
  return {};
}

}  // namespace

const LineRow* LineTable::find(uint32_t section, uint64_t address, const LineSequence** in) const {
  for (const LineSequence& sequence : sequences) {
    if (sequence.section != section || sequence.rows.empty() || address >= sequence.end_address)
      continue;
    auto after =
        std::upper_bound(sequence.rows.begin(), sequence.rows.end(), address,
                         [](uint64_t wanted, const LineRow& row) { return wanted < row.address; });
    if (after == sequence.rows.begin()) continue;
    if (in) *in = &sequence;
    return &*(after - 1);
  }
  return nullptr;
}

Result<LineTable> read_lines(const Elf& elf, std::string_view section_name) {
  LineTable table;
  table.files = {""};
  const ElfSection* section = elf.find(section_name);
  if (!section) return table;
  const ElfSection* names = elf.find(".debug_str");
  TRY(auto targets, read_targets(elf, static_cast<uint64_t>(section - elf.sections.data())));
  Program program{section_name, elf.content(*section), names ? elf.content(*names) : Bytes{},
                  targets, table};
  Cursor cursor(program.bytes, 0);
  while (cursor.at() + 4 < program.bytes.size()) {
    TRY(Unit unit, read_unit_header(program, cursor));
    CHECK_OK(run_unit(program, cursor, unit));
    cursor.go(unit.end);
  }
  return table;
}

}  // namespace kiln::binary
