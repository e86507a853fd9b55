// SPDX-License-Identifier: Apache-2.0
// What is kept of an access, and for how long? Whether two of them race: compare.cpp.
#include "watch/race/check.h"

#include <algorithm>
#include <bit>

namespace kiln::watch::race {

// A line that nobody has touched since a barrier of its block, or in this launch, starts anew.
void Checker::access_slowly(Line& line, const Entry& mine, const Accessor& me, bool scattered) {
  constexpr uint32_t kForm = Key::kDense | Key::kWrites | Key::kStrong;
  if ((mine.key.bits & kForm) == Key::kWrites && (mine.lanes & (mine.lanes - 1)))
    report_together(mine, me);
  const bool anew = line.touched < me.line_before;
  if (anew && scattered && line.reads() && begin_reads(line, mine, me)) return;
  if (anew && line.split && (!scattered || line.reads())) clear_line(pool_, line);
  if (line.reads()) unfold(line);
  line.touched = std::max(line.touched, mine.time);
  if (!line.split) {
    if (anew && line.head && !scattered) {
      restart(&line.head, mine);
      line.key = mine.key;
      return;
    }
    if (anew && line.head) {
      pool_.give_list(line.head);
      line.head = 0;
    }
    if (scattered && !line.head && begin_reads(line, mine, me)) return;
    if (!line.head)
      line.key = mine.key;
    else if (line.key != mine.key)
      line.key = {};
    const bool whole = !scattered || line.head;
    const uint32_t most = scattered ? kMostScattered : kMostInLine;
    if (whole && me.block && settle(&line.head, mine, me, most) != Settled::No) return;
    if (whole && visit(&line.head, mine, me, most)) return;
    split(line);
    if (!line.split) return;  // no memory
  }
  visit_words(line, mine, me);
}

void Checker::restart(uint32_t* head, const Entry& mine) {
  Entry& first = pool_[*head];
  if (first.next) pool_.give_list(first.next);
  first = mine;
  first.next = 0;
}

// An earlier access stays known to whoever comes if a later one of the same threads, or of threads
// behind a barrier, takes its place. Times of other warps may be raised only to a time at which
// they have not synchronised yet, see merge_warps().
Checker::Fit Checker::fit(const Entry& e, const Entry& mine, const Accessor& me) {
  const bool words = e.words == mine.words, lanes = e.lanes == mine.lanes,
             warps = e.warps == mine.warps;
  if (e.time < mine.time) {
    const bool replaces = words && lanes && (warps || e.time < me.block->barrier);
    return replaces ? Fit::Replace : Fit::Not;
  }
  const bool subset = (mine.words & ~e.words) == 0;
  if (e.value != mine.value) return words && lanes && warps ? Fit::Replace : Fit::Not;
  if (subset && lanes && (mine.warps & ~e.warps) == 0) return Fit::Done;
  if (words && lanes) return Fit::Warps;
  if (e.time != mine.time || !warps) return Fit::Not;
  if (lanes) return Fit::Words;
  return words && !mine.key.dense() ? Fit::Lanes : Fit::Not;
}

Checker::Settled Checker::settle(uint32_t* head, const Entry& mine, const Accessor& me,
                                 uint32_t most) {
  Entry* into = nullptr;
  Fit how = Fit::Not;
  uint32_t length = 0, dead = 0, own = 0, own_warps = 0, foreign = 0, last = 0;
  for (uint32_t at = *head; at;) {
    Entry& e = pool_[at];
    at = e.next;
    ++length;
    if (is_dead(e, me)) {
      ++dead;
      continue;
    }
    if (e.key != mine.key) {
      if (((e.key.bits | mine.key.bits) & Key::kWrites) && (e.words & mine.words))
        return Settled::No;
      continue;
    }
    if (e.block == me.uid) {
      const bool same_threads = e.warps == mine.warps && e.lanes == mine.lanes &&
                                (mine.key.dense() || std::has_single_bit(mine.lanes));
      const bool apart = (e.words & mine.words) == 0;
      const bool safe =
          me.agreement != Agreement::None || same_threads || e.time < me.block->barrier || apart;
      if (!safe) return Settled::No;
      const bool covers = (mine.words & ~e.words) == 0;
      if (covers && e.time >= me.block->barrier) own_warps |= e.warps;
      if (into) continue;
      how = fit(e, mine, me);
      if (how == Fit::Done) return Settled::Kept;
      if (how != Fit::Not)
        into = &e;
      else if (!apart && e.time < mine.time)
        return Settled::No;
      own += covers;
    } else if (e.words & mine.words) {
      if (me.agreement != Agreement::Grid || e.block < me.launch_uid) return Settled::No;
      foreign += (mine.words & ~e.words) == 0 && e.block != last;
      last = e.block;
    }
  }
  if (dead) {
    if (dead != length) return Settled::No;
    restart(head, mine);
    return Settled::Kept;
  }
  // Of global memory: what two warps did, a third can do without a trace.
  if ((own_warps & (own_warps - 1)) != 0 && me.drop_before == 0 && can_skip(me))
    return Settled::OwnSuffice;
  switch (how) {
    case Fit::Not:
    case Fit::Done:
      break;
    case Fit::Words:
      into->words |= mine.words;
      return Settled::Kept;
    case Fit::Warps:
      into->warps |= mine.warps;
      return Settled::Kept;
    case Fit::Lanes:
      into->lanes |= mine.lanes;
      return Settled::Kept;
    case Fit::Replace: {
      const uint32_t next = into->next;
      *into = mine;
      into->next = next;
      return Settled::Kept;
    }
  }
  if (me.block->knows_more && length) return Settled::No;
  if (foreign >= kMostForeign) return own ? Settled::Kept : Settled::OthersSuffice;
  if (own >= kMostOwn) return Settled::Kept;
  if (length >= most) return Settled::No;
  const uint32_t index = pool_.take();
  if (!index) return Settled::Kept;
  Entry& added = pool_[index] = mine;
  added.next = *head;
  *head = index;
  return Settled::Kept;
}

// Several lanes of one instruction write one place.
void Checker::report_together(const Entry& mine, const Accessor& me) {
  const auto first = static_cast<uint32_t>(std::countr_zero(mine.lanes));
  const auto second = static_cast<uint32_t>(std::countr_zero(mine.lanes & (mine.lanes - 1)));
  report(mine, me.warp_index, first, mine, me, second,
         static_cast<uint32_t>(std::countr_zero(mine.words)));
}

namespace {

void add_words(Known::Words& known, const Entry& mine) {
  if (known.key != mine.key) known = {mine.key, 0};
  known.words |= mine.words;
}

}  // namespace

void Checker::know_of_others(Line& line, const Entry& mine, const Accessor& me) {
  if (!line.known()) line.known() = pool_.take_known();
  if (!line.known()) return;
  Known& known = pool_.known(line.known());
  if (known.launch != me.launch_uid) {
    for (Known::Words& each : known.of_others) each = {};
  }
  known.launch = me.launch_uid;
  add_words(known.slot(mine.key), mine);
}

void Checker::know_own(Line& line, const Entry& mine, const Accessor& me) {
  if (!line.known()) line.known() = pool_.take_known();
  if (!line.known()) return;
  Known& known = pool_.known(line.known());
  if (known.own_block != me.uid || known.own_since != me.block->barrier) known.own = {};
  known.own_block = me.uid;
  known.own_since = me.block->barrier;
  add_words(known.own, mine);
}

// Of one word.
void Checker::visit_word(Line& line, const Entry& mine, const Accessor& me) {
  uint32_t* head = pool_.words(line.split) + std::countr_zero(mine.words);
  switch (me.block ? settle(head, mine, me, kMostInWord) : Settled::No) {
    case Settled::No:
      visit(head, mine, me, kMostInWord);
      if (line.known()) pool_.known(line.known()) = {};
      enter(line, me);
      break;
    case Settled::Kept:
      enter(line, me);
      break;
    case Settled::OthersSuffice:
      know_of_others(line, mine, me);
      break;
    case Settled::OwnSuffice:
      know_own(line, mine, me);
      break;
  }
}

// Without those whose lists say enough.
uint32_t Checker::words_to_visit(const Line& line, const Entry& mine, const Accessor& me) {
  if (!line.known() || !can_skip(me) || mine.key.size_log2() < 2) return mine.words;
  const Known& known = pool_.known(line.known());
  const Key key{mine.key.bits & ~Key::kDense};
  uint32_t words = mine.words;
  if (known.own.key == key && known.own_block == me.uid && known.own_since == me.block->barrier)
    words &= ~known.own.words;
  const Known::Words& others = known.slot(key);
  if (others.key == key && me.uid > line.newest() && known.launch == me.launch_uid)
    words &= ~others.words;
  return words;
}

// Lists of words have one form: lanes that accessed the word.
void Checker::visit_words(Line& line, const Entry& mine, const Accessor& me) {
  if (!mine.key.dense() && std::has_single_bit(mine.words)) {
    visit_word(line, mine, me);
    return;
  }
  for (uint32_t rest = words_to_visit(line, mine, me); rest; rest &= rest - 1) {
    const auto word = static_cast<uint32_t>(std::countr_zero(rest));
    Entry one = mine;
    one.words = 1u << word;
    if (!mine.key.dense()) {
      visit_word(line, one, me);
      continue;
    }
    one.key.bits &= ~Key::kDense;
    const uint32_t size = 1u << mine.key.size_log2();
    for (uint32_t byte = 0; byte < kWordBytes; byte += size) {
      one.lanes = mine.lanes_at(word, byte);
      if (size < kWordBytes) one.key.bits = (one.key.bits & ~15u) | ((1u << size) - 1) << byte;
      visit_word(line, one, me);
    }
  }
}

void Checker::split(Line& line) {
  line.split = pool_.take_words();
  if (!line.split) return;
  uint32_t* heads = pool_.words(line.split);
  line.newest() = 0;
  for (uint32_t at = line.head; at;) {
    const Entry whole = pool_[at];
    line.newest() = std::max(line.newest(), whole.block);
    const uint32_t size = 1u << whole.key.size_log2();
    for (uint32_t rest = whole.words; rest; rest &= rest - 1) {
      const auto word = static_cast<uint32_t>(std::countr_zero(rest));
      for (uint32_t byte = 0; byte < kWordBytes; byte += size) {
        const uint32_t index = pool_.take();
        if (!index) break;
        Entry& one = pool_[index] = whole;
        one.words = 1u << word;
        one.next = heads[word];
        heads[word] = index;
        if (!whole.key.dense()) break;
        one.key.bits &= ~Key::kDense;
        one.lanes = whole.lanes_at(word, byte);
        if (size < kWordBytes) one.key.bits = (one.key.bits & ~15u) | ((1u << size) - 1) << byte;
      }
    }
    pool_.give(at);
    at = whole.next;
  }
  line.known() = 0;
}

bool Checker::read_word(Line& line, const Entry& mine, const Accessor& me) {
  const auto word = static_cast<uint32_t>(std::countr_zero(mine.words));
  const auto lane = static_cast<uint32_t>(std::countr_zero(mine.lanes));
  const Reader by{Reader::of(me.uid, me.warp_index).bits | lane};
  return read_word(line, mine.key, mine.time, word, me, by);
}

// Of a line that has no list, or readers of earlier launches alone.
bool Checker::begin_reads(Line& line, const Entry& mine, const Accessor& me) {
  const bool one = std::has_single_bit(mine.lanes) && std::has_single_bit(mine.words);
  const bool global = me.line_address >> 56 == 0, whole = mine.key.bytes() == 15;
  if (!one || !global || !whole || mine.key.dense() || mine.key.writes() || !can_read(me))
    return false;
  if (!line.reads()) {
    const uint32_t index = pool_.readers.take();
    if (!index) return false;
    line.split = index | Line::kReads;
  }
  if (line.pairs())
    pool_.pairs[line.readers()] = {};
  else
    pool_.readers[line.readers()] = {};
  line.reads_key() = mine.key.bits;
  line.touched = mine.time;
  line.reader() = me.uid;
  return read_word(line, mine, me);
}

bool Checker::make_pairs(Line& line) {
  const uint32_t index = pool_.pairs.take();
  if (!index) return false;
  const Pool::Readers& from = pool_.readers[line.readers()];
  for (uint32_t word = 0; word < kLineWords; ++word)
    pool_.pairs[index].of[word] = {from.of[word], 0};
  pool_.readers.give(line.readers());
  line.split = index | Line::kReads | Line::kPairs;
  return true;
}

// Lists in the place of readers.
void Checker::unfold(Line& line) {
  const Line from = line;
  line = {.head = 0, .split = pool_.take_words(), .touched = from.touched, .key = {}};
  Entry entry{.key = {from.head}, .time = from.touched};
  for (uint32_t word = 0; word < kLineWords && line.split; ++word) {
    const TwoReaders kept = from.pairs() ? pool_.pairs[from.readers()].of[word]
                                         : TwoReaders{pool_.readers[from.readers()].of[word], 0};
    entry.words = 1u << word;
    auto add = [&](Reader by, uint32_t lanes) {
      const uint32_t index = pool_.take();
      if (!index) return;
      entry.block = by.block(from.key.bits);
      entry.warps = 1u << by.warp();
      entry.lanes = lanes;
      uint32_t& head = pool_.words(line.split)[word];
      entry.next = head;
      pool_[index] = entry;
      head = index;
      line.newest() = std::max(line.newest(), entry.block);
    };
    const Reader::State state = kept.first.state();
    if (state == Reader::Nobody) continue;
    add(kept.first, state == Reader::Lanes ? kept.second : 1u << kept.first.lane());
    const Reader second{kept.second};
    if (state > Reader::Lanes) add(second, 1u << second.lane());
  }
  if (from.pairs())
    pool_.pairs.give(from.readers());
  else
    pool_.readers.give(from.readers());
}

bool Checker::visit(uint32_t* head, const Entry& mine, const Accessor& me, uint32_t most) {
  uint32_t* link = head;
  uint32_t length = 0, own = 0, foreign = 0;
  bool kept = false;
  while (const uint32_t at = *link) {
    Entry& e = pool_[at];
    ++length;
    const bool same_block = e.block == me.uid;
    const bool dead = is_dead(e, me);
    if (dead && !kept) {
      const uint32_t next = e.next;
      e = mine;
      e.next = next;
      kept = true;
      link = &e.next;
      continue;
    }
    if (!dead && (e.words & mine.words) == 0) {
      if (!kept) kept = extends(e, mine);
      link = &e.next;
      continue;
    }
    if (!dead && !kept && stands_for(e, mine)) return true;
    if (!dead && ((e.key.bits | mine.key.bits) & Key::kWrites)) compare(e, mine, me);
    bool goes = dead;
    if (!dead && same_block) {
      if (e.key == mine.key && !kept) kept = merge(e, mine, me);
      own += e.key == mine.key && (mine.words & ~e.words) == 0;
      goes = e.words == 0;
    } else if (!dead) {
      // Of an earlier launch: a later write stands for it, also at another line.
      const bool earlier = e.block < me.launch_uid;
      const bool replaces = e.key == mine.key || (earlier && mine.key.writes() &&
                                                  (e.key.bytes() & ~mine.key.bytes()) == 0);
      if (replaces && known_whole(e, mine, me)) {
        e.words &= ~mine.words;
        goes = e.words == 0;
      } else if (e.key == mine.key && !earlier && (mine.words & ~e.words) == 0) {
        ++foreign;
      }
    }
    if (goes) {
      *link = e.next;
      pool_.give(at);
      --length;
    } else {
      link = &e.next;
    }
  }
  if (kept) return true;
  // Whoever comes differs from one of two blocks, or of three groups of the same block. Where more
  // than barriers orders them, some of those could be known and others not: more are kept.
  const bool more = me.block && me.block->knows_more;
  const bool all = more && pool_.used() < kRoomInPart;
  const uint32_t most_foreign = all ? kMostInPart : more ? 8u : kMostForeign;
  const uint32_t most_own = all ? kMostInPart : more ? 32u : kMostOwn;
  if (foreign >= most_foreign || own >= most_own) return true;
  const bool in_word = most == kMostInWord;
  if (length >= (in_word && all ? kMostInWordInPart : most)) return in_word;
  const uint32_t index = pool_.take();
  if (!index) return true;
  Entry& added = pool_[index] = mine;
  added.next = *head;
  *head = index;
  return true;
}

// Of the own block, of the same place and form.
bool Checker::merge(Entry& e, const Entry& mine, const Accessor& me) const {
  if (!me.block) {
    e.words |= mine.words;
    return true;
  }
  const bool same_lanes = mine.key.dense() ? e.lanes == mine.lanes : (e.lanes & ~mine.lanes) == 0;
  const bool before =
      e.time < me.block->barrier || (e.warps == mine.warps && e.time < me.warp->sync);
  if (e.words == mine.words && e.lanes == mine.lanes) {
    if (!before) return merge_warps(e, mine, me);
    e.warps = mine.warps;
    e.time = mine.time;
    e.value = mine.value;
    return true;
  }
  // Each thread's later access stands for its own earlier one.
  if (before || (e.warps == mine.warps && same_lanes && mine.time > e.time)) {
    e.words &= ~mine.words;
    return false;
  }
  if (mine.key.dense() || e.warps != mine.warps || e.time != mine.time || e.value != mine.value)
    return false;
  if (e.words == mine.words) {
    e.lanes |= mine.lanes;
    return true;
  }
  if (e.lanes != mine.lanes) return false;
  e.words |= mine.words;
  return true;
}

// An entry has one time for all its warps. It may be raised for those that have synchronised with
// nobody since their access: whoever will know of them then, knows the access too.
bool Checker::merge_warps(Entry& e, const Entry& mine, const Accessor& me) const {
  const uint32_t others = e.warps & ~mine.warps;
  const uint32_t value = others == 0 || e.value == mine.value ? mine.value : 0;
  if (mine.time <= e.time) {
    e.warps |= mine.warps;
    e.value = value;
    return true;
  }
  bool raises = true;
  for (uint32_t rest = others; rest && raises; rest &= rest - 1)
    raises = me.block->warps[static_cast<size_t>(std::countr_zero(rest))].epoch <= e.time;
  if (!raises && !known_whole(e, mine, me)) {
    e.warps = others;
    if (others == 0) e.words = 0;
    return false;
  }
  e.warps = raises ? e.warps | mine.warps : mine.warps;
  e.time = mine.time;
  e.value = raises ? value : mine.value;
  return true;
}

}  // namespace kiln::watch::race
