// SPDX-License-Identifier: Apache-2.0
// Which register of x86-64 does each value of a piece of code get? (registers_x64.cpp)
#pragma once

#include <asmjit/x86.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace kiln::engine {

// Goes over what an x86::Compiler has noted behind a node and replaces its registers without a
// limit by those of the CPU. RDI is the Pass, which also has memory for values that get none. What
// it needs for one piece of code it keeps for the next.
class RegistersX64 {
 public:
  // False: the memory for such values is too small, and nothing has been changed.
  bool run(asmjit::x86::Compiler& compiler, asmjit::BaseNode* begin);

 private:
  // What an instruction does with its operands, a bit for each.
  struct Accesses {
    uint64_t key = 0;
    uint8_t reads = 0, writes = 0;
    uint8_t folds = 0;  // may as well be in memory
  };
  enum class Part : uint8_t { Register, Base, Index };
  struct Use {  // of a register, by an operand
    uint32_t value;
    uint8_t operand;
    Part part;
    bool reads, writes;
    bool late;  // no result may have its place
    bool folds;
    uint32_t span = 0;
  };
  struct Instruction {
    asmjit::InstNode* node;
    uint32_t first, count;  // of the uses
    bool unread = false;    // nobody reads what it writes
  };
  struct Block {
    uint32_t begin = 0, end = 0;  // instructions
    uint32_t next[2] = {}, next_count = 0;
    uint32_t depth = 0;  // loops around it
  };
  struct Range {
    uint32_t begin, end;  // an instruction has two: it reads at the first and writes at the second
    uint32_t next;        // of the same span
  };
  // Where a value lives, with gaps; the same value may live in several places one after the other.
  struct Span {
    uint32_t value;
    uint32_t joined;  // another span that it is a part of, or itself
    uint32_t like;    // one that it is copied from or to, or itself
    uint32_t ranges;  // the first one
    float weight = 0;
    int place = -1;  // a register; below it, memory
  };
  struct Piece {  // of a span
    uint32_t word;
    uint64_t mask;
  };

  Accesses look_up(const asmjit::InstNode& node, uint64_t key) const;
  const Accesses& accesses_of(const asmjit::InstNode& node);
  void note_uses(asmjit::InstNode& node);
  bool collect(asmjit::BaseNode* begin);
  void link_blocks(uint32_t count);
  uint64_t* live(size_t block, uint32_t which) { return &live_[(block * 4 + which) * words_]; }
  void find_live();
  void find_spans();
  void find_spans_of(size_t block);
  void find_spans_of(Instruction& at, uint32_t index, float weight);
  void open(uint32_t value, uint32_t span, uint32_t end);
  void add_range(uint32_t span, uint32_t begin, uint32_t end);
  uint32_t new_span(uint32_t value);
  bool assign(bool vectors);
  void cut(const Span& span);
  void take_for_calls(bool vectors, size_t words);
  bool place_all(const std::vector<uint32_t>& registers, bool vectors);
  bool find_memory();
  void rewrite(Instruction& at);
  void move_from_memory(Instruction& at, const Use& use, uint32_t reg);
  void copy(asmjit::BaseNode* behind, const Span& span, uint32_t reg, bool back);
  asmjit::x86::Mem memory_of(const Span& span) const;
  void save_registers(asmjit::BaseNode* begin);

  asmjit::x86::Compiler* cc_ = nullptr;
  std::vector<Accesses> known_;  // by hash
  std::vector<Instruction> instructions_;
  std::vector<Use> uses_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> calls_;              // instructions
  std::vector<uint8_t> leads_, is_vector_;   // by instruction, by value
  std::vector<uint32_t> labels_, block_of_;  // by id: the instruction behind it
  std::vector<uint64_t> live_;               // by block: read, written, live before and behind
  std::vector<Span> spans_;                  // first those that live from block to block
  std::vector<Range> ranges_;
  std::vector<uint32_t> current_, end_, opened_;  // by value: its span, and where a range ends
  std::vector<std::pair<float, uint32_t>> order_;
  std::vector<Piece> pieces_;
  std::vector<uint64_t> used_;
  size_t words_ = 0;    // of a set of values
  uint32_t saved_ = 0;  // registers of the caller, by bit
};

}  // namespace kiln::engine
