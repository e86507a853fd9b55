// SPDX-License-Identifier: Apache-2.0
// What does a libcupti say that a test wants to hear? One buffer of records, or the error that was
// asked for.
#include "cupti.h"

#include <cstring>
#include <new>

namespace {

FakeCupti g_said;
void (*g_request)(uint8_t**, size_t*, size_t*) = nullptr;
void (*g_complete)(void*, uint32_t, uint8_t*, size_t, size_t) = nullptr;

// As CUpti_ActivityKernel9 begins, 160 bytes in all here; a memset's record is as long.
constexpr size_t kRecordBytes = 160;

}  // namespace

FakeCupti& fake_cupti() { return g_said; }

extern "C" {

int cuptiActivityRegisterCallbacks(void (*request)(uint8_t**, size_t*, size_t*),
                                   void (*complete)(void*, uint32_t, uint8_t*, size_t, size_t)) {
  g_request = request;
  g_complete = complete;
  return 0;
}

int cuptiActivityEnable(int kind) {
  if (g_said.enable_code == 0) g_said.enabled.push_back(kind);
  return g_said.enable_code;
}

int cuptiActivityDisable(int kind) {
  std::erase(g_said.enabled, kind);
  return 0;
}

int cuptiActivityFlushAll(uint32_t) {
  uint8_t* buffer = nullptr;
  size_t bytes = 0, most = 0;
  g_request(&buffer, &bytes, &most);
  size_t used = 0;
  for (const FakeRecord& record : g_said.records) {
    std::memset(buffer + used, 0, kRecordBytes);
    std::memcpy(buffer + used, &record.kind, 4);
    std::memcpy(buffer + used + 16, &record.begin, 8);
    std::memcpy(buffer + used + 24, &record.end, 8);
    std::memcpy(buffer + used + 104, &record.name, sizeof record.name);
    used += kRecordBytes;
  }
  g_complete(nullptr, 0, buffer, bytes, used);
  return g_said.flush_code;
}

int cuptiActivityGetNextRecord(uint8_t* buffer, size_t bytes, void** record) {
  if (g_said.out_of_memory) throw std::bad_alloc();
  uint8_t* next = *record ? static_cast<uint8_t*>(*record) + kRecordBytes : buffer;
  if (next >= buffer + bytes) return 12;  // CUPTI_ERROR_MAX_LIMIT_REACHED
  *record = next;
  return 0;
}

int cuptiGetResultString(int code, const char** text) {
  *text = code == 35 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
                     : "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
  return 0;
}
}
