// SPDX-License-Identifier: Apache-2.0
// Does a sink see what the host does to memory and to the order of work?
#include <atomic>
#include <thread>

#include "engine/cuda/types.h"
#include "engine/cudart/state.h"
#include "fatbin.h"
#include "recorder.h"

extern "C" const KilnEngine* kiln_engine(uint32_t);

namespace kiln::engine {
namespace {

// Also says to other threads how many launches have begun.
struct HostRecorder : Recorder {
  HostRecorder() : Recorder(kHostEvents) {}
  using Recorder::on;
  void on(const LaunchEvent& event) override {
    Recorder::on(event);
    if (!event.ended) ++begun;
  }
  std::atomic<int> begun{0};
};

// Writes 5 to p; with a second word that is not 0 it first waits until the host clears it.
const char* const kHostText = R"(.version 9.0
.target sm_90
.address_size 64
.global .align 4 .u32 counter = 5;
.visible .entry five(.param .u64 p)
{
  .reg .b64 %rd<4>; .reg .b32 %r<5>; .reg .pred %q;
  ld.param.u64 %rd1, [p];
  WAIT:
  ld.volatile.global.u32 %r1, [%rd1+4];
  setp.ne.u32 %q, %r1, 0;
  @%q bra WAIT;
  st.global.u32 [%rd1], 5;
  ret;
}
)";

class WatchHost : public testing::Test {
 protected:
  WatchHost() : image(engine->register_image(&fatbin.wrapper)) {
    engine->register_function(image, &key, "five");
    engine->register_variable(image, &variable, "counter", 4, 0);
    state().device.watched();  // what the environment asks for comes first
    before = state().device.sink;
    state().device.sink = &recorder;
  }
  ~WatchHost() override {
    state().device.sink = before;
    engine->unregister_image(image);
  }

  template <class... Arguments>
  int call(const char* name, Arguments... arguments) {
    using Function = int(Arguments...);
    return reinterpret_cast<Function*>(engine->runtime_function(name))(arguments...);
  }
  int launch(void* to, void* stream) {
    void* arguments[] = {&to};
    return call("cudaLaunchKernel", static_cast<const void*>(&key), KilnDim3{1, 1, 1},
                KilnDim3{1, 1, 1}, static_cast<void**>(arguments), size_t{0}, stream);
  }
  // The events since the last time. A call that fails has one more, with the words.
  std::vector<HostEvent> seen() {
    auto events = std::exchange(recorder.host, {});
    failures = 0;
    std::erase_if(events, [&](const HostEvent& event) {
      if (event.kind != HostKind::Failed) return false;
      EXPECT_NE(event.code, 0);
      EXPECT_FALSE(event.text.empty());
      return ++failures > 0;
    });
    return events;
  }
  HostEvent one() {
    auto events = seen();
    EXPECT_EQ(events.size(), 1u);
    return events.empty() ? HostEvent{} : events[0];
  }
  void* stream() {
    void* out = nullptr;
    EXPECT_EQ(call("cudaStreamCreate", &out), 0);
    return out;
  }
  static uint64_t number(const void* at) { return reinterpret_cast<uint64_t>(at); }

  const KilnEngine* engine = kiln_engine(KILN_ENGINE_ABI_VERSION);
  Fatbin fatbin{kHostText};
  void* image;
  int key = 0, variable = 0;
  HostRecorder recorder;
  int failures = 0;  // in what seen() gave
  Sink* before = nullptr;
};

TEST_F(WatchHost, MemoryComesAndGoes) {
  void* device = nullptr;
  ASSERT_EQ(call("cudaMalloc", &device, size_t{100}), 0);
  HostEvent event = one();
  EXPECT_EQ(event.kind, HostKind::Allocate);
  EXPECT_EQ(event.to.at, number(device));
  EXPECT_EQ(event.width, 100u);
  EXPECT_EQ(event.memory, AllocationKind::Device);
  EXPECT_TRUE(event.waits);
  ASSERT_EQ(call("cudaFree", device), 0);
  event = one();
  EXPECT_EQ(event.kind, HostKind::Free);
  EXPECT_EQ(event.width, 100u);
  EXPECT_EQ(event.code, 0);
  EXPECT_EQ(call("cudaFree", device), 1);
  event = one();
  EXPECT_EQ(event.to.at, number(device));
  EXPECT_EQ(event.code, 1) << "freed twice";
  void *pinned = nullptr, *managed = nullptr, *later = nullptr, *s = stream();
  seen();
  ASSERT_EQ(call("cudaMallocHost", &pinned, size_t{8}), 0);
  ASSERT_EQ(call("cudaMallocManaged", &managed, size_t{8}, 1u), 0);
  ASSERT_EQ(call("cudaMallocAsync", &later, size_t{8}, s), 0);
  ASSERT_EQ(call("cudaFreeAsync", later, s), 0);
  auto events = seen();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].memory, AllocationKind::Host);
  EXPECT_EQ(events[1].memory, AllocationKind::Managed);
  EXPECT_FALSE(events[2].waits);
  EXPECT_GE(events[2].stream, 2u);
  EXPECT_EQ(events[3].stream, events[2].stream);
  EXPECT_EQ(events[3].kind, HostKind::Free);
  int word = 0;
  ASSERT_EQ(call("cudaHostRegister", static_cast<void*>(&word), size_t{4}, 0u), 0);
  ASSERT_EQ(call("cudaHostUnregister", static_cast<void*>(&word)), 0);
  events = seen();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_TRUE(events[0].registered);
  EXPECT_TRUE(events[1].registered);
  call("cudaFreeHost", pinned);
  call("cudaFree", managed);
  call("cudaStreamDestroy", s);
}

TEST_F(WatchHost, CopiesAndFillsSayWhichBytes) {
  void *device = nullptr, *s = stream();
  ASSERT_EQ(call("cudaMalloc", &device, size_t{1024}), 0);
  std::vector<char> host(1024);
  seen();
  const auto copy = [&](size_t bytes) {
    return call("cudaMemcpy", device, static_cast<const void*>(host.data()), bytes,
                int{kHostToDevice});
  };
  ASSERT_EQ(copy(64), 0);
  HostEvent event = one();
  EXPECT_EQ(event.kind, HostKind::Copy);
  EXPECT_EQ(event.to.at, number(device));
  EXPECT_EQ(event.from.at, number(host.data()));
  EXPECT_EQ(event.width, 64u);
  EXPECT_TRUE(event.waits);
  EXPECT_EQ(event.stream, 0u);
  EXPECT_EQ(copy(2000), 1);
  event = one();
  EXPECT_EQ(event.code, 1) << "beyond the end";
  EXPECT_EQ(event.width, 2000u);
  EXPECT_EQ(copy(0), 0);
  EXPECT_TRUE(seen().empty()) << "touches nothing";
  ASSERT_EQ(call("cudaMemcpy2DAsync", static_cast<void*>(host.data()), size_t{32},
                 static_cast<const void*>(device), size_t{64}, size_t{16}, size_t{4},
                 int{kDeviceToHost}, s),
            0);
  event = one();
  EXPECT_EQ(event.from.pitch, 64u);
  EXPECT_EQ(event.to.pitch, 32u);
  EXPECT_EQ(event.width, 16u);
  EXPECT_EQ(event.height, 4u);
  EXPECT_FALSE(event.waits);
  EXPECT_GE(event.stream, 2u);
  ASSERT_EQ(call("cudaMemsetAsync", device, 7, size_t{128}, s), 0);
  event = one();
  EXPECT_EQ(event.kind, HostKind::Fill);
  EXPECT_EQ(event.value, 7u);
  EXPECT_EQ(event.width, 128u);
  uint32_t value = 0;
  ASSERT_EQ(call("cudaMemcpyFromSymbol", static_cast<void*>(&value),
                 static_cast<const void*>(&variable), size_t{4}, size_t{0}, int{kDeviceToHost}),
            0);
  event = one();
  EXPECT_EQ(event.kind, HostKind::Copy);
  EXPECT_EQ(event.to.at, number(&value));
  EXPECT_EQ(value, 5u);
  ASSERT_EQ(call("cudaMemset2D", device, size_t{64}, 1, size_t{32}, size_t{3}), 0);
  event = one();
  EXPECT_EQ(event.to.pitch, 64u);
  EXPECT_EQ(event.height, 3u);
  call("cudaFree", device);
  call("cudaStreamDestroy", s);
}

TEST_F(WatchHost, ArraysAreMemoryToo) {
  struct Channels {
    int x, y, z, w, kind;
  } float_channel{32, 0, 0, 0, 2};
  void* array = nullptr;
  ASSERT_EQ(call("cudaMallocArray", &array, static_cast<const void*>(&float_channel), size_t{8},
                 size_t{4}, 0u),
            0);
  const HostEvent made = one();
  EXPECT_EQ(made.kind, HostKind::Allocate);
  EXPECT_EQ(made.width, 8u * 4 * 4);
  std::vector<float> host(32, 1.0f);
  ASSERT_EQ(call("cudaMemcpy2DToArray", array, size_t{4}, size_t{1},
                 static_cast<const void*>(host.data()), size_t{16}, size_t{16}, size_t{2},
                 int{kHostToDevice}),
            0);
  const HostEvent copy = one();
  EXPECT_EQ(copy.to.at, made.to.at + 32 + 4) << "row 1, byte 4";
  EXPECT_EQ(copy.to.pitch, 32u);
  EXPECT_EQ(copy.width, 16u);
  EXPECT_EQ(copy.height, 2u);
  EXPECT_TRUE(copy.waits);
  ASSERT_EQ(call("cudaFreeArray", array), 0);
  EXPECT_EQ(one().to.at, made.to.at);
}

TEST_F(WatchHost, StreamsAndEventsOrderWork) {
  void *a = nullptr, *b = stream(), *event = nullptr, *device = nullptr;
  ASSERT_EQ(call("cudaStreamCreateWithFlags", &a, 1u), 0);
  auto events = seen();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, HostKind::StreamCreate);
  EXPECT_FALSE(events[0].nonblocking);
  EXPECT_TRUE(events[1].nonblocking);
  const uint64_t of_b = events[0].stream, of_a = events[1].stream;
  EXPECT_NE(of_a, of_b);
  ASSERT_EQ(call("cudaEventCreate", &event), 0);
  ASSERT_EQ(call("cudaMalloc", &device, size_t{8}), 0);
  ASSERT_EQ(call("cudaMemset", device, 0, size_t{8}), 0);
  ASSERT_EQ(call("cudaStreamWaitEvent", b, event, 0u), 0);
  seen();
  ASSERT_EQ(launch(device, a), 0);
  ASSERT_EQ(call("cudaEventRecord", event, a), 0);
  ASSERT_EQ(call("cudaStreamWaitEvent", b, event, 0u), 0);
  ASSERT_EQ(call("cudaEventSynchronize", event), 0);
  ASSERT_EQ(call("cudaStreamSynchronize", b), 0);
  ASSERT_EQ(call("cudaDeviceSynchronize"), 0);
  ASSERT_EQ(recorder.launches.size(), 2u);
  EXPECT_EQ(recorder.launches[0].stream, of_a);
  events = seen();
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].kind, HostKind::EventRecord);
  EXPECT_EQ(events[0].stream, of_a);
  EXPECT_NE(events[0].event, 0u);
  EXPECT_EQ(events[1].kind, HostKind::StreamWaitEvent);
  EXPECT_EQ(events[1].stream, of_b);
  EXPECT_EQ(events[1].event, events[0].event);
  EXPECT_EQ(events[2].kind, HostKind::EventSynchronize);
  EXPECT_EQ(events[2].event, events[0].event);
  EXPECT_EQ(events[3].kind, HostKind::StreamSynchronize);
  EXPECT_EQ(events[3].stream, of_b);
  EXPECT_EQ(events[4].kind, HostKind::DeviceSynchronize);
  // The default streams have ids of their own.
  ASSERT_EQ(launch(device, nullptr), 0);
  ASSERT_EQ(launch(device, reinterpret_cast<void*>(2)), 0);
  EXPECT_EQ(recorder.launches[2].stream, 0u);
  EXPECT_EQ(recorder.launches[4].stream, 1u);
  ASSERT_EQ(call("cudaStreamDestroy", a), 0);
  EXPECT_EQ(one().stream, of_a);
  call("cudaStreamDestroy", b);
  call("cudaEventDestroy", event);
  call("cudaFree", device);
}

void count_up(void* at) { ++*static_cast<int*>(at); }

TEST_F(WatchHost, AGraphNamesItsNodesAndWhatTheyWaitFor) {
  void *s = stream(), *device = nullptr, *graph = nullptr, *executable = nullptr;
  ASSERT_EQ(call("cudaMalloc", &device, size_t{8}), 0);
  seen();
  int calls = 0;
  ASSERT_EQ(call("cudaStreamBeginCapture", s, 0), 0);
  ASSERT_EQ(call("cudaMemsetAsync", device, 0, size_t{8}, s), 0);
  ASSERT_EQ(launch(device, s), 0);
  ASSERT_EQ(call("cudaLaunchHostFunc", s, &count_up, static_cast<void*>(&calls)), 0);
  ASSERT_EQ(call("cudaStreamEndCapture", s, &graph), 0);
  EXPECT_TRUE(seen().empty()) << "nothing has happened yet";
  EXPECT_TRUE(recorder.launches.empty());
  ASSERT_EQ(call("cudaGraphInstantiate", &executable, graph, 0ull), 0);
  ASSERT_EQ(call("cudaGraphLaunch", executable, s), 0);
  EXPECT_EQ(calls, 1);
  const auto events = seen();
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(events[0].kind, HostKind::GraphBegin);
  EXPECT_EQ(events[1].kind, HostKind::GraphNode);
  EXPECT_TRUE(events[1].before.empty());
  EXPECT_EQ(events[2].kind, HostKind::Fill);
  EXPECT_EQ(events[3].kind, HostKind::GraphNode);
  EXPECT_EQ(events[3].before, std::vector<uint32_t>{0});
  EXPECT_EQ(events[4].kind, HostKind::GraphNode);
  EXPECT_EQ(events[4].before, std::vector<uint32_t>{1});
  EXPECT_EQ(events[5].kind, HostKind::Call);
  EXPECT_EQ(events[6].kind, HostKind::GraphEnd);
  for (const HostEvent& each : events) EXPECT_EQ(each.stream, events[0].stream);
  ASSERT_EQ(recorder.launches.size(), 2u);
  EXPECT_EQ(recorder.launches[0].stream, events[0].stream);
  call("cudaGraphExecDestroy", executable);
  call("cudaGraphDestroy", graph);
  call("cudaStreamDestroy", s);
  call("cudaFree", device);
}

// The kernel waits for what another thread of the host does: its calls must not wait for the
// kernel. They are seen when the launch has ended.
TEST_F(WatchHost, CallsDuringALaunchDoNotWaitForIt) {
  void* shared = nullptr;
  ASSERT_EQ(call("cudaMallocHost", &shared, size_t{8}), 0);
  auto* words = static_cast<uint32_t*>(shared);
  words[1] = 1;
  seen();
  std::thread other([&] {
    while (recorder.begun == 0) std::this_thread::yield();
    EXPECT_EQ(call("cudaMemset", static_cast<void*>(words + 1), 0, size_t{4}), 0);
  });
  ASSERT_EQ(launch(shared, nullptr), 0);
  other.join();
  EXPECT_EQ(words[0], 5u);
  const auto events = seen();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, HostKind::Fill);
  ASSERT_EQ(recorder.launches.size(), 2u);
  EXPECT_NE(events[0].thread, recorder.launches[0].thread);
  call("cudaFreeHost", shared);
}

}  // namespace
}  // namespace kiln::engine
