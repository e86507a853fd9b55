// SPDX-License-Identifier: Apache-2.0
// Does an access race with an earlier one? It is compared with all that is kept of its line
// (shadow.h), and then takes its place among them.
//
// A race: two accesses to a common byte, at least one of them writes, neither happened before the
// other, and they are not both strong towards each other. Each pair is looked at when its second
// access runs, whichever that is, and "before" does not ask who ran first: so the verdict is the
// same for each order of execution.
#pragma once

#include <bit>
#include <cstdint>

#include "watch/race/host_order.h"
#include "watch/race/order.h"
#include "watch/race/places.h"
#include "watch/race/shadow.h"

namespace kiln::watch::race {

// Who accesses, as far as it is the same for the whole event.
struct Accessor {
  BlockOrder* block = nullptr;  // null: the host
  WarpOrder* warp = nullptr;
  uint32_t warp_index = 0;
  uint32_t uid = 0;         // of the block, or of the host's operation
  uint32_t launch_uid = 0;  // of the launch's first block
  uint32_t floor = 0;       // entries of blocks below can race with nothing to come
  Time drop_before = 0;     // nor can those of the own block from before
  Time line_before = 0;     // nor anything of a line that nobody has touched since
  Time shared_before = 0;   // both, of shared memory
  Agreement agreement = Agreement::None;
  uint64_t line_address = 0;  // of the line at hand; of shared memory: a location (Order)
};

// One lane, or the host.
struct Party {
  Key key;
  uint32_t block = 0;  // uid
  uint32_t warp = 0, lane = 0;
};

class Reporter {
 public:
  virtual ~Reporter() = default;
  // `address`: of the first common byte. `same_value`: both write what is there then anyway.
  virtual void race(const Party& earlier, const Party& later, uint64_t address,
                    bool same_value) = 0;
};

class Checker {
 public:
  Checker(Pool& pool, Order& order, HostOrder& host, Places& places, Reporter& reporter)
      : pool_(pool), order_(order), host_(host), places_(places), reporter_(reporter) {}

  // `mine`: all but `next`. `scattered`: the line is accessed lane by lane.
  void access(Line& line, const Entry& mine, const Accessor& me, bool scattered = false) {
    if (!line.split && line.head && !scattered && touch_line(line, mine, me)) {
      if (line.touched < mine.time) line.touched = mine.time;
      return;
    }
    access_slowly(line, mine, me, scattered);
  }
  // One lane at one word, of a line that is accessed lane by lane.
  void access_word(Line& line, const Entry& mine, const Accessor& me) {
    if (line.reads()) {
      const bool one = std::has_single_bit(mine.lanes);
      if (one && !mine.key.writes() && can_read(me) && read_word(line, mine, me)) return;
    } else if (line.split && touch_word(line, mine, me)) {
      if (line.touched < mine.time) line.touched = mine.time;
      return;
    }
    access_slowly(line, mine, me, true);
  }
  // The commonest cases of read_word(): nobody has read the word, or two blocks have. For a whole
  // warp, in few steps; returns the lanes whose word has another case. Places are of a page of
  // global memory.
  uint32_t read_new_words(Line* lines, const uint32_t (&line_at)[kLanes],
                          const uint32_t (&word_at)[kLanes], Key key, Time time, const Accessor& me,
                          Reader first) {
    const uint32_t uid = me.uid, launch_uid = me.launch_uid;
    uint32_t left = 0;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      Line& line = lines[line_at[lane]];
      if (line.reads_at(key) && line.touched == time) {
        Reader& kept = pool_.readers[line.readers()].of[word_at[lane]];
        if (!kept.bits) {
          kept.bits = first.bits | lane;
          line.reader() = uid;
          continue;
        }
      } else if (line.pairs_at(key) && line.reader() >= launch_uid) {
        const TwoReaders& kept = pool_.pairs[line.readers()].of[word_at[lane]];
        if (kept.first.state() == Reader::TwoBlocks) continue;
      }
      left |= 1u << lane;
    }
    return left;
  }
  // Have two warps of the block done the same to all these words since its last barrier? Whoever
  // comes races with one of the two, so a further access leaves no trace.
  bool suffices(const Line& line, Key key, uint32_t words, const Accessor& me) {
    if (line.split || line.key != key) return false;
    uint32_t warps = 0;
    for (uint32_t at = line.head; at;) {
      const Entry& e = pool_[at];
      if (e.block == me.uid && (words & ~e.words) == 0 && e.time >= me.block->barrier)
        warps |= e.warps;
      if (warps & (warps - 1)) return true;
      at = e.next;
    }
    return false;
  }
  // What one lane reads, where can_read(). False: nothing was done, the line has no place for it.
  bool read_word(Line& line, Key key, Time time, uint32_t word, const Accessor& me, Reader by) {
    if (!line.reads() || line.reads_key() != key.bits) return false;
    if (line.pairs()) return read_pair(line, time, word, me, by);
    if (line.touched != time && !takes_over(line, me)) return false;
    Reader& kept = pool_.readers[line.readers()].of[word];
    if (kept.bits && kept.bits != by.bits)
      return make_pairs(line) && read_pair(line, time, word, me, by);
    kept = by;
    line.touched = time;
    line.reader() = me.uid;
    return true;
  }
  static bool can_skip(const Accessor& me) {
    return me.agreement == Agreement::Grid && me.block && !me.block->knows_more;
  }
  static bool can_read(const Accessor& me) {
    return can_skip(me) && me.uid - me.launch_uid < Reader::kMostBlocks;
  }
  // The commonest case of access_word() in shared memory, of accesses that agree: the same warp was
  // there before, and nobody else since. `mine` has neither words nor lanes; returns the lanes
  // whose word has another case.
  uint32_t touch_again(Lines& lines, const uint32_t (&line_at)[kLanes],
                       const uint32_t (&word_at)[kLanes], uint32_t lanes, const Entry& mine) {
    uint32_t left = 0;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
      const uint32_t split = line_at[lane] < lines.size() ? lines[line_at[lane]].split : 0;
      const bool has_lists = split - 1 < Line::kReads - 1;
      const uint32_t head = has_lists ? pool_.words(split)[word_at[lane]] : 0;
      Entry* e = head ? &pool_[head] : nullptr;
      if (e && e->same_but_place(mine))
        e->lanes |= 1u << lane;
      else
        left |= 1u << lane;
    }
    return left;
  }
  // The same at several words.
  void access_words(Line& line, const Entry& mine, const Accessor& me) {
    if (!line.split) {
      access_slowly(line, mine, me, true);
      return;
    }
    Entry one = mine;
    for (uint32_t rest = mine.words; rest; rest &= rest - 1) {
      one.words = rest & -rest;
      access_word(line, one, me);
    }
  }

 private:
  static constexpr uint32_t kMostInLine = 16, kMostScattered = 8, kMostInWord = 48;
  static constexpr uint32_t kMostForeign = 2, kMostOwn = 3;
  // Where some threads are ordered and others are not, as long as there is room.
  static constexpr uint32_t kMostInPart = 64, kMostInWordInPart = 160;
  static constexpr uint32_t kRoomInPart = 1u << 22;

  void access_slowly(Line& line, const Entry& mine, const Accessor& me, bool scattered);
  // The commonest case, without a call: the list has one entry, which can race with nothing any
  // more, or is of the same warp and line. False: nothing was done.
  static bool touch(Entry& e, const Entry& mine, const Accessor& me);
  bool touch_line(Line& line, const Entry& mine, const Accessor& me);
  bool touch_word(Line& line, const Entry& mine, const Accessor& me);
  // Would access_word() change nothing at these words of a split line? Two other blocks of the
  // launch did the same: whoever comes races with one of them. A block newer than all in the lists
  // is none of the two.
  bool is_known(const Line& line, Key key, uint32_t words, const Accessor& me) {
    if (!line.known() || me.uid <= line.newest()) return false;
    const Known& known = pool_.known(line.known());
    const Known::Words& others = known.slot(key);
    return others.key == key && (words & ~others.words) == 0 && known.launch == me.launch_uid;
  }
  bool read_word(Line& line, const Entry& mine, const Accessor& me);
  bool read_pair(Line& line, Time time, uint32_t word, const Accessor& me, Reader by) {
    TwoReaders& kept = pool_.pairs[line.readers()].of[word];
    if (kept.first.state() == Reader::TwoBlocks && line.reader() >= me.launch_uid) return true;
    if (line.touched != time && !takes_over(line, me)) return false;
    kept.add(by);
    line.touched = time;
    line.reader() = me.uid;
    return true;
  }
  // The time of what a block read matters to that block alone.
  bool takes_over(Line& line, const Accessor& me) const {
    return line.reader() != me.uid && line.reader() >= me.launch_uid && order_.one_by_one();
  }
  static void enter(Line& line, const Accessor& me) {
    if (line.newest() < me.uid) line.newest() = me.uid;
  }
  [[gnu::noinline]] void know_of_others(Line& line, const Entry& mine, const Accessor& me);
  void know_own(Line& line, const Entry& mine, const Accessor& me);
  // The common cases: nothing in the list can race with `mine`, and it is in the list already, fits
  // into an entry, or needs none because of two other blocks, or of two warps of its own. No:
  // nothing was done, visit() has to look.
  enum class Settled { No, Kept, OthersSuffice, OwnSuffice };
  Settled settle(uint32_t* head, const Entry& mine, const Accessor& me, uint32_t most);
  // How `mine` goes into an entry of its key and block, with which it cannot race.
  enum class Fit { Not, Done, Words, Warps, Lanes, Replace };
  static Fit fit(const Entry& e, const Entry& mine, const Accessor& me);
  static bool is_dead(const Entry& e, const Accessor& me) {
    return e.block == me.uid ? e.time < me.drop_before : e.block < me.floor;
  }
  void restart(uint32_t* head, const Entry& mine);
  // False: the list of the line is too long, and `mine` is not in it.
  bool visit(uint32_t* head, const Entry& mine, const Accessor& me, uint32_t most);
  void visit_word(Line& line, const Entry& mine, const Accessor& me);
  uint32_t words_to_visit(const Line& line, const Entry& mine, const Accessor& me);
  void visit_words(Line& line, const Entry& mine, const Accessor& me);
  void split(Line& line);
  // A line of readers begins with this one. False: it has to be in a list.
  bool begin_reads(Line& line, const Entry& mine, const Accessor& me);
  [[gnu::noinline]] bool make_pairs(Line& line);
  void unfold(Line& line);
  // True: `mine` is in `e` now. Else `e` may have lost what `mine` stands for.
  bool merge(Entry& e, const Entry& mine, const Accessor& me) const;
  bool merge_warps(Entry& e, const Entry& mine, const Accessor& me) const;
  // True: the entry says all that `mine` would.
  static bool stands_for(const Entry& e, const Entry& mine) {
    return e.key == mine.key && e.block == mine.block && (mine.words & ~e.words) == 0 &&
           (mine.warps & ~e.warps) == 0 && e.lanes == mine.lanes && e.time >= mine.time &&
           e.value == mine.value;
  }
  // Other words, accessed by the same lanes at the same time: one entry for all of them.
  static bool extends(Entry& e, const Entry& mine) {
    if (e.key != mine.key || mine.key.dense() || e.block != mine.block || e.warps != mine.warps ||
        e.lanes != mine.lanes || e.time != mine.time || e.value != mine.value)
      return false;
    e.words |= mine.words;
    return true;
  }
  bool both_strong(const Entry& e, const Entry& mine, const Accessor& me) const;
  // Looks for a pair of lanes without an order and reports it.
  void compare(const Entry& e, const Entry& mine, const Accessor& me);
  bool compare_lanes(const Entry& e, const Entry& mine, const Accessor& me, uint32_t warp,
                     bool same_warp);
  bool is_before(const Entry& e, uint32_t warp, uint32_t lane, uint32_t word, const Entry& mine,
                 const Accessor& me, uint32_t my_lane, bool same_warp) const;
  bool known_whole(const Entry& e, const Entry& mine, const Accessor& me) const;
  void report_together(const Entry& mine, const Accessor& me);
  void report(const Entry& e, uint32_t warp, uint32_t lane, const Entry& mine, const Accessor& me,
              uint32_t my_lane, uint32_t word);

  Pool& pool_;
  Order& order_;
  HostOrder& host_;
  Places& places_;
  Reporter& reporter_;
};

inline bool Checker::touch(Entry& e, const Entry& mine, const Accessor& me) {
  if (e.key != mine.key || e.block != mine.block || e.time != mine.time || e.value != mine.value)
    return false;
  // Two of the three are equal: then the entry is still the product of its parts.
  const bool words = e.words == mine.words, lanes = e.lanes == mine.lanes,
             warps = e.warps == mine.warps;
  const bool agrees = me.agreement != Agreement::None;
  if (lanes) {
    if (!warps && !(agrees && words)) return false;
  } else {
    if (!agrees || mine.key.dense() || !words || !warps) return false;
    e.lanes |= mine.lanes;
  }
  e.words |= mine.words;
  e.warps |= mine.warps;
  return true;
}

inline bool Checker::touch_line(Line& line, const Entry& mine, const Accessor& me) {
  Entry* e = &pool_[line.head];
  const bool agrees = me.agreement != Agreement::None;
  if (!agrees && !mine.key.dense() && (mine.lanes & (mine.lanes - 1))) return false;
  if (!e->next) {
    if (is_dead(*e, me))
      *e = mine;
    else if (!touch(*e, mine, me))
      return false;
    line.key = mine.key;
    return true;
  }
  // Of one line of source that agrees with itself there is nothing to compare.
  if (!agrees || line.key != mine.key) return false;
  uint32_t foreign = 0, own = 0, own_warps = 0;
  const bool skips = can_skip(me);
  for (;; e = &pool_[e->next]) {
    if (e->block == me.uid) {
      if (touch(*e, mine, me)) return true;
      ++own;
      // What two warps did since the last barrier, a third can do without a trace: whoever comes
      // races with one of the two.
      if ((mine.words & ~e->words) == 0 && e->time >= me.block->barrier) own_warps |= e->warps;
      if (skips && (own_warps & (own_warps - 1))) return true;
    } else {
      if (me.agreement != Agreement::Grid) return false;
      foreign += e->block >= me.launch_uid && (mine.words & ~e->words) == 0;
    }
    if (!e->next) break;
  }
  return foreign >= kMostForeign && own == 0 && !me.block->knows_more;
}

inline bool Checker::touch_word(Line& line, const Entry& mine, const Accessor& me) {
  if (line.known() && can_skip(me) && is_known(line, mine.key, mine.words, me)) return true;
  const uint32_t head = pool_.words(line.split)[std::countr_zero(mine.words)];
  const bool together = mine.lanes & (mine.lanes - 1);
  if (!head || (together && me.agreement == Agreement::None)) return false;
  Entry* e = &pool_[head];
  if (!e->next) {
    // The same again, by further lanes of the warp perhaps.
    if (e->block == me.uid && e->key == mine.key && e->time == mine.time &&
        e->warps == mine.warps && e->value == mine.value &&
        (me.agreement != Agreement::None || e->lanes == mine.lanes)) {
      e->lanes |= mine.lanes;
      return true;
    }
    if (is_dead(*e, me)) {
      *e = mine;
      enter(line, me);
      return true;
    }
    return touch(*e, mine, me);
  }
  // Whoever came in this launch has dropped what was dead: either all of it is, or nothing.
  if (e->block < me.floor && me.floor == me.launch_uid) {
    pool_.give_list(e->next);
    *e = mine;
    enter(line, me);
    return true;
  }
  if (!can_skip(me)) return false;
  uint32_t foreign = 0, last = 0;
  for (;; e = &pool_[e->next]) {
    if (e->key != mine.key || e->block == me.uid || e->block < me.launch_uid) return false;
    foreign += e->block != last;
    last = e->block;
    if (e->next) continue;
    if (foreign < kMostForeign) return false;
    know_of_others(line, mine, me);
    return true;
  }
}

}  // namespace kiln::watch::race
