// SPDX-License-Identifier: Apache-2.0
// Are launches, copies and frees of different streams told apart?
#include "race_run.h"

namespace kiln::watch {
namespace {

constexpr uint64_t kFirst = 7, kSecond = 8;

struct Streams : RaceRun {
  explicit Streams(bool nonblocking = false) {
    for (uint64_t stream : {kFirst, kSecond}) {
      HostEvent create;
      create.kind = HostKind::StreamCreate;
      create.stream = stream;
      create.nonblocking = nonblocking;
      checker.on(create);
    }
  }
  void write(uint64_t stream) {
    launch(1, 32, 1, stream);
    store(1, 0, 0, kAll, kGlobal);
    end();
  }
  void read(uint64_t stream) {
    launch(1, 32, 1, stream);
    load(2, 0, 0, kAll, kGlobal);
    end();
  }
  void copy(uint64_t stream, bool to_memory, bool waits = false) {
    HostEvent out;
    out.kind = HostKind::Copy;
    out.stream = stream;
    out.waits = waits;
    out.to.at = to_memory ? kGlobal : 16 * kGlobal;
    out.from.at = to_memory ? 16 * kGlobal : kGlobal;
    out.width = 128;
    checker.on(out);
  }
  void free(uint64_t stream, bool waits) {
    HostEvent out;
    out.kind = HostKind::Free;
    out.stream = stream;
    out.waits = waits;
    out.to.at = kGlobal;
    out.width = 128;
    checker.on(out);
  }
};

TEST(RaceHost, StreamsAreNotOrdered) {
  Streams r;
  r.write(kFirst);
  r.read(kFirst);
  EXPECT_EQ(r.pairs(), Pairs{}) << "a stream is";
  r.read(kSecond);
  EXPECT_EQ(r.pairs("stream-race"), (Pairs{{1, 2}}));
  EXPECT_NE(r.collector.findings().findings[0].advice.find("cudaStreamWaitEvent"),
            std::string::npos);
}

TEST(RaceHost, EventsAndWaitsOrderStreams) {
  {
    Streams r;
    r.write(kFirst);
    r.host(HostKind::EventRecord, kFirst, 5);
    r.host(HostKind::StreamWaitEvent, kSecond, 5);
    r.read(kSecond);
    EXPECT_EQ(r.pairs(), Pairs{});
  }
  {
    Streams r;
    r.host(HostKind::EventRecord, kFirst, 5);
    r.write(kFirst);  // after it was recorded
    r.host(HostKind::StreamWaitEvent, kSecond, 5);
    r.read(kSecond);
    EXPECT_EQ(r.pairs(), (Pairs{{1, 2}}));
  }
  for (HostKind wait : {HostKind::StreamSynchronize, HostKind::DeviceSynchronize}) {
    Streams r;
    r.write(kFirst);
    r.host(wait, kFirst);
    r.read(kSecond);
    EXPECT_EQ(r.pairs(), Pairs{});
  }
  {
    Streams r;
    r.write(kFirst);
    r.host(HostKind::StreamSynchronize, kSecond);
    r.read(kSecond);
    EXPECT_EQ(r.pairs(), (Pairs{{1, 2}})) << "it waited for the other";
  }
}

TEST(RaceHost, TheDefaultStreamWaitsForBlockingOnes) {
  Streams r;
  r.write(kFirst);
  r.read(0);
  r.write(kSecond);
  EXPECT_EQ(r.pairs(), Pairs{});
  Streams apart(true);
  apart.write(kFirst);
  apart.read(0);
  EXPECT_EQ(apart.pairs(), (Pairs{{1, 2}}));
}

// The second launch reads, which must not hide the first one's write.
TEST(RaceHost, AReadBetweenHidesNothing) {
  Streams r;
  r.write(kFirst);
  r.read(kFirst);
  r.launch(1, 32, 1, kSecond);
  r.load(3, 0, 0, kAll, kGlobal);
  r.end();
  EXPECT_EQ(r.pairs(), (Pairs{{1, 3}}));
}

TEST(RaceHost, CopiesAreAccesses) {
  Streams r;
  r.copy(kFirst, true);
  r.read(kFirst);
  EXPECT_EQ(r.pairs(), Pairs{});
  r.read(kSecond);
  EXPECT_EQ(r.pairs("stream-race"), (Pairs{{0, 2}}));
  Streams waited;
  waited.copy(kFirst, true, true);
  waited.read(kSecond);
  EXPECT_EQ(waited.pairs(), Pairs{});
  Streams out;
  out.write(kFirst);
  out.copy(kSecond, false);
  EXPECT_EQ(out.pairs("stream-race"), (Pairs{{0, 1}}));
}

TEST(RaceHost, MemoryIsFreedInUse) {
  Streams r;
  r.read(kFirst);
  r.free(kSecond, false);
  EXPECT_EQ(r.pairs("freed-in-use"), (Pairs{{0, 2}}));
  Streams same;
  same.read(kFirst);
  same.free(kFirst, false);
  EXPECT_EQ(same.pairs(), Pairs{});
  Streams waits;
  waits.read(kFirst);
  waits.free(kSecond, true);
  EXPECT_EQ(waits.pairs(), Pairs{}) << "cudaFree waits for all";
}

TEST(RaceHost, NewMemoryHasNoPast) {
  Streams r;
  r.write(kFirst);
  HostEvent allocate;
  allocate.kind = HostKind::Allocate;
  allocate.to.at = kGlobal;
  allocate.width = 4096;
  r.checker.on(allocate);
  r.read(kSecond);
  EXPECT_EQ(r.pairs(), Pairs{});
}

TEST(RaceHost, NodesOfAGraphAreOrderedByItsEdges) {
  for (bool edge : {true, false}) {
    Streams r;
    HostEvent graph;
    graph.graph = 1;
    graph.stream = kFirst;
    graph.kind = HostKind::GraphBegin;
    r.checker.on(graph);
    graph.kind = HostKind::GraphNode;
    graph.node = 0;
    r.checker.on(graph);
    r.write(kFirst);
    graph.node = 1;
    if (edge) graph.before = {0};
    r.checker.on(graph);
    r.read(kFirst);
    graph.kind = HostKind::GraphEnd;
    r.checker.on(graph);
    EXPECT_EQ(r.pairs(), edge ? Pairs{} : (Pairs{{1, 2}}));
    r.read(kFirst);
    EXPECT_EQ(r.pairs(), edge ? Pairs{} : (Pairs{{1, 2}})) << "the stream goes on behind it";
  }
}

TEST(RaceHost, OneStreamKeepsNothingOfThePast) {
  RaceRun r;
  for (int i = 0; i < 100; ++i) {
    r.launch(1, 32);
    r.store(static_cast<uint32_t>(i % 50), 0, 0, kAll, kGlobal);
    r.load(static_cast<uint32_t>(50 + i % 49), 0, 0, kAll, kGlobal);
    r.end();
  }
  EXPECT_EQ(r.pairs(), Pairs{});
  EXPECT_LE(r.checker.pool().used(), 2u);
}

}  // namespace
}  // namespace kiln::watch
