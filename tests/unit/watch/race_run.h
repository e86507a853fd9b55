// SPDX-License-Identifier: Apache-2.0
// How does a test give the race checker a run? A kernel whose instruction i is line i, and calls
// that deliver what lanes do.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "engine/memory/memory.h"
#include "watch/race/race.h"

namespace kiln::watch {

using namespace engine;

constexpr uint32_t kAll = ~0u;
// Lines of two places, the smaller first.
using Pair = std::pair<int64_t, int64_t>;
using Pairs = std::set<Pair>;

struct RaceRun {
  RaceRun() : checker(collector) {
    module.files[1] = "k.cu";
    program.name = "k";
    program.module = &module;
    program.serial = 1;
    for (uint32_t line = 0; line < 100; ++line) {
      Site site;
      site.source.file = 1;
      site.source.line = line;
      program.sites.push_back(site);
    }
  }

  void launch(uint32_t blocks, uint32_t threads, uint32_t cluster = 1, uint64_t stream = 0) {
    begin(blocks, threads, cluster, stream);
    for (uint64_t block = 0; block < blocks; ++block) start(block);
  }
  // The kernel's text has one: more than barriers of the block may order its threads.
  void has_named_barrier() {
    function.name = "k";
    function.is_entry = true;
    function.body_text = "bar.sync 1, 64; ret;";
    program.function = &function;
  }
  // No block runs yet.
  void begin(uint32_t blocks, uint32_t threads, uint32_t cluster = 1, uint64_t stream = 0) {
    event = {};
    event.program = &program;
    event.number = ++launches;
    event.grid = {blocks, 1, 1};
    event.block = {threads, 1, 1};
    event.cluster = {cluster, 1, 1};
    event.shared_bytes = 4096;
    event.stream = stream;
    collector.on(event);
    checker.on(event);
    warps = (threads + 31) / 32;
  }
  void start(uint64_t block) { checker.on(BlockEvent{block, {}, false}); }
  void stop(uint64_t block) { checker.on(BlockEvent{block, {}, true}); }
  void end() {
    for (uint64_t block = 0; block < event.grid.x; ++block) stop(block);
    event.ended = true;
    collector.on(event);
    checker.on(event);
  }

  Actor by(uint32_t line, uint64_t block, uint32_t warp, uint32_t mask) const {
    return {&program, line, block, warp, mask};
  }
  // Lane l at base + step * l.
  AccessEvent access(AccessKind kind, uint32_t line, uint64_t block, uint32_t warp, uint32_t mask,
                     uint64_t base, uint64_t step = 4, uint32_t bytes = 4) const {
    AccessEvent out;
    out.by = by(line, block, warp, mask);
    out.space = base < 4096 ? ptx::Space::Shared : ptx::Space::Global;
    out.kind = kind;
    if (kind == AccessKind::Atomic || kind == AccessKind::Reduction) {
      out.strength = Strength::Relaxed;
      out.scope = Scope::Gpu;
    }
    out.bytes = bytes;
    out.shape = step ? AddressShape::Run : AddressShape::Uniform;
    out.base = base;
    out.step = step;
    return out;
  }
  void load(uint32_t line, uint64_t block, uint32_t warp, uint32_t mask, uint64_t base,
            uint64_t step = 4, uint32_t bytes = 4) {
    checker.on(access(AccessKind::Load, line, block, warp, mask, base, step, bytes));
  }
  void store(uint32_t line, uint64_t block, uint32_t warp, uint32_t mask, uint64_t base,
             uint64_t step = 4, uint32_t bytes = 4) {
    checker.on(access(AccessKind::Store, line, block, warp, mask, base, step, bytes));
  }
  void atomic(uint32_t line, uint64_t block, uint32_t warp, uint32_t mask, uint64_t base,
              uint64_t step = 4) {
    checker.on(access(AccessKind::Atomic, line, block, warp, mask, base, step));
  }
  void strong(AccessKind kind, uint32_t line, uint64_t block, uint32_t warp, uint32_t mask,
              uint64_t base, Strength strength, Scope scope = Scope::Gpu) {
    AccessEvent out = access(kind, line, block, warp, mask, base, 0);
    out.strength = strength;
    out.scope = scope;
    checker.on(out);
  }

  void arrive(uint32_t id, uint64_t block, uint32_t warp, uint32_t mask, bool waits) {
    SyncEvent out;
    out.by = by(99, block, warp, mask);
    out.id = id;
    out.waits = waits;
    checker.on(out);
  }
  void complete(uint32_t id, uint64_t block) {
    SyncEvent out;
    out.by.block = block;
    out.id = id;
    out.completed = true;
    checker.on(out);
  }
  void barrier(uint64_t block) {
    for (uint32_t warp = 0; warp < warps; ++warp) arrive(0, block, warp, kAll, true);
    complete(0, block);
  }
  void sync_warp(uint64_t block, uint32_t warp, uint32_t mask = kAll) {
    SyncEvent out;
    out.by = by(99, block, warp, mask);
    out.kind = SyncKind::Warp;
    out.expected = mask;
    out.completed = true;
    checker.on(out);
  }
  void fence(uint64_t block, uint32_t warp, uint32_t mask, Scope scope = Scope::Gpu) {
    checker.on(FenceEvent{by(99, block, warp, mask), scope, Strength::Sequential, Proxy::None});
  }
  void mbarrier(MbarrierStep step, uint32_t line, uint64_t block, uint32_t warp, uint32_t mask,
                uint64_t address) {
    MbarrierEvent out;
    out.by = by(line, block, warp, mask);
    out.step = step;
    out.address = kSharedWindow | address;
    out.order = {Strength::AcquireRelease, Scope::Block};
    checker.on(out);
  }
  void host(HostKind kind, uint64_t stream, uint64_t of_event = 0) {
    HostEvent out;
    out.kind = kind;
    out.stream = stream;
    out.event = of_event;
    checker.on(out);
  }

  Pairs pairs(std::string_view rule = "") {
    Pairs out;
    for (const results::Finding& each : collector.findings().findings) {
      if (!rule.empty() && each.rule != rule) continue;
      int64_t lines[2] = {0, 0};
      for (size_t i = 0; i < 2; ++i) {
        if (!each.places[i].stack.empty()) lines[i] = each.places[i].stack[0].line;
      }
      out.insert(std::minmax(lines[0], lines[1]));
    }
    return out;
  }

  ptx::Module module;
  ptx::Function function;
  Program program;
  Collector collector;
  RaceChecker checker;
  LaunchEvent event;
  uint64_t launches = 0;
  uint32_t warps = 0;
};

constexpr uint64_t kGlobal = 1 << 20;

}  // namespace kiln::watch
