// SPDX-License-Identifier: Apache-2.0
// How many compilers may run side by side without running out of memory?
#include "build/run/jobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace kiln::build {

namespace {

constexpr size_t kMostRemembered = 2000;
// The next run of the same step may take a little more.
constexpr double kReserve = 1.2;

std::string name_of_step(const Step& step) {
  return fmt::format("{} {} {}", name_of(step.kind), canonical_path(step.roots, step.source),
                     step.arch);
}

std::string gigabytes(uint64_t bytes) {
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

}  // namespace

uint64_t assumed_peak_bytes(StepKind kind) {
  switch (kind) {
    case StepKind::Whole:
    case StepKind::Device:
      return 1'500'000'000;
    case StepKind::Front:
    case StepKind::Object:
    case StepKind::Host:
      return 1'000'000'000;
    case StepKind::Fat:
    case StepKind::Link:
      return 300'000'000;
  }
  return 1'500'000'000;
}

Result<JobLimit> job_limit(const std::optional<std::string>& max_jobs, int cores,
                           uint64_t available_bytes, std::vector<uint64_t> peaks_bytes) {
  if (max_jobs) {
    auto count = text::to_int(text::trim(*max_jobs));
    if (!count || *count < 1 || *count > 4096)
      return Error{Fault::Environment, "cannot use MAX_JOBS",
                   "it is '" + *max_jobs + "', not a number above 0",
                   "unset MAX_JOBS, or set it to the number of compilers to run in parallel"};
    return JobLimit{static_cast<int>(*count), "MAX_JOBS"};
  }
  std::sort(peaks_bytes.begin(), peaks_bytes.end(), std::greater<>());
  uint64_t taken = 0;
  int fitting = 0;
  for (uint64_t peak : peaks_bytes) {
    if (taken + peak > available_bytes) break;
    taken += peak;
    ++fitting;
  }
  bool memory_binds = fitting < static_cast<int>(peaks_bytes.size()) && fitting < cores;
  if (!memory_binds) return JobLimit{cores, fmt::format("{} cores", cores)};
  return JobLimit{std::max(1, fitting),
                  fmt::format("{} of memory for steps of up to {} each", gigabytes(available_bytes),
                              gigabytes(peaks_bytes[0]))};
}

Peaks::Peaks(sys::Files& files, sys::fs::path file) : files_(files), file_(std::move(file)) {
  auto text = files.read(file_);
  auto json = text ? parse_json(*text, "peaks") : Result<Json>(Json::object());
  if (json && json->is_object()) known_ = std::move(*json);
}

uint64_t Peaks::expected_bytes(const Step& step) const {
  auto found = known_.find(name_of_step(step));
  if (found == known_.end() || !found->is_number_unsigned()) return assumed_peak_bytes(step.kind);
  return static_cast<uint64_t>(static_cast<double>(found->get<uint64_t>()) * kReserve);
}

void Peaks::saw(const Step& step, uint64_t bytes) {
  if (bytes == 0) return;
  if (known_.size() >= kMostRemembered) known_ = Json::object();
  known_[name_of_step(step)] = bytes;
  changed_ = true;
}

void Peaks::keep() {
  if (changed_) (void)files_.write(file_, dump(known_), sys::Durable::Scratch);
}

}  // namespace kiln::build
