// SPDX-License-Identifier: Apache-2.0
// What does libkiln_measure.so export? The functions of abi.h.
#include "measure/abi.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "host/compare.h"
#include "host/generate.h"
#include "host/library.h"
#include "host/random.h"
#include "measure/argument_json.h"
#include "measure/device/cuda_device.h"
#include "measure/device/engine_device.h"
#include "measure/render.h"
#include "measure/result.h"

namespace kiln::measure {
namespace {

char* owned(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

template <class Body>
char* answer(Body body) {
  try {
    const Result<std::string> result = body();
    return owned(result ? *result : dump(to_json(result.error())));
  } catch (const std::exception& e) {
    return owned(dump(
        to_json(Error{Fault::Bug, "the timing core reached an unexpected state", e.what(), ""})));
  }
}

Status told(int code, const KilnContender& from) {
  if (code == 0) return {};
  const char* text = from.error ? from.error(from.user) : nullptr;
  return host::parse_error(text && *text ? text : "it gave no reason",
                           std::string(from.name) + " failed");
}

Contender contender_of(const KilnContender& from) {
  Contender to;
  to.name = from.name;
  to.call = [&from](int rotation) { return told(from.call(from.user, rotation), from); };
  if (from.check) to.check = [&from] { return told(from.check(from.user), from); };
  if (from.capture && from.replay)
    to.capture = [&from](int calls) -> Result<Device::Launch> {
      CHECK_OK(told(from.capture(from.user, calls), from));
      return Device::Launch([&from] { return told(from.replay(from.user), from); });
    };
  if (from.refresh)
    to.refresh = [&from](bool fresh) { return told(from.refresh(from.user, fresh), from); };
  to.rotations = from.rotations > 0 ? from.rotations : 1;
  to.bytes = from.bytes;
  to.flops = from.flops;
  to.bytes_declared = from.bytes_declared != 0;
  return to;
}

Result<std::unique_ptr<Device>> open_device(const Json& options) {
  if (options.value("device", "cuda") == "engine") return open_engine_device();
  CudaPlace place;
  place.index = options.value("index", 0);
  place.stream = reinterpret_cast<void*>(options.value("stream", uintptr_t{0}));
  return open_cuda_device(place);
}

}  // namespace
}  // namespace kiln::measure

using namespace kiln;           // NOLINT: the C functions below stand for what is in there
using namespace kiln::measure;  // NOLINT

extern "C" {

int kiln_measure_abi_version(void) { return KILN_MEASURE_ABI_VERSION; }

char* kiln_measure_run(const char* options_json, const KilnContender* contenders, int count) {
  return answer([&]() -> Result<std::string> {
    TRY(const Json options, parse_json(options_json, "the options"));
    TRY(const std::unique_ptr<Device> device, open_device(options));
    std::vector<Contender> all;
    for (int i = 0; i < count; ++i) all.push_back(contender_of(contenders[i]));
    TRY(const RunOptions how, run_options(options));
    TRY(const Report report, run(*device, all, how));
    return dump(to_json(result_of(report)));
  });
}

char* kiln_measure_render(const char* kind, const char* json) {
  return answer([&]() -> Result<std::string> {
    TRY(const Json value, parse_json(json, "the result"));
    return render(kind, value);
  });
}

char* kiln_measure_tensor(const char* spec, uint64_t seed, uint64_t argument, void** storage) {
  *storage = nullptr;
  return answer([&]() -> Result<std::string> {
    TRY(const host::TensorSpec parsed, host::parse_tensor_spec(spec));
    TRY(const host::Array array, host::make_array(parsed, host::seed_for_argument(seed, argument)));
    *storage = std::malloc(array.storage.size() + 1);
    if (!*storage)
      return Error{Fault::Environment, "cannot create a tensor", "the host is out of memory", ""};
    std::memcpy(*storage, array.storage.data(), array.storage.size());
    return dump({{"dtype", array.dtype},
                 {"sizes", array.layout.sizes},
                 {"strides", array.layout.strides},
                 {"offset", array.layout.offset},
                 {"bytes", array.storage.size()}});
  });
}

char* kiln_measure_arguments(const KilnOpInfo* ops, uint32_t op_count, const char* name,
                             const char* texts_json) {
  return answer([&]() -> Result<std::string> {
    TRY(const Json list, parse_json(texts_json, "the arguments"));
    const auto texts = list.get<std::vector<std::string>>();
    TRY(const Json found,
        ops ? bound_arguments({ops, op_count}, name, texts) : free_arguments(texts));
    return dump(found);
  });
}

int kiln_measure_tolerance(int32_t dtype, double root_mean_square, double median, double rtol,
                           double atol, double out[2]) {
  const host::DType* type = host::find_dtype(dtype);
  if (!type) return 1;
  const auto given = [](double one) {
    return std::isnan(one) ? std::nullopt : std::optional<double>(one);
  };
  const host::Scale scale{root_mean_square, median};
  const host::Tolerance found = host::tolerance_for(*type, *type, scale, given(rtol), given(atol));
  out[0] = found.rtol, out[1] = found.atol;
  return 0;
}

void kiln_measure_summary(const double* samples, size_t count, double out[9]) {
  const Summary s = summarise({samples, count});
  const double all[] = {s.median, s.interval.low, s.interval.high,
                        s.least,  s.greatest,     s.mean,
                        s.p25,    s.p75,          static_cast<double>(s.outliers.far)};
  std::copy(std::begin(all), std::end(all), out);
}

void kiln_measure_ratio(const double* a, const double* b, size_t count, uint64_t seed,
                        int resamples, double out[3]) {
  const Ratio ratio = paired_ratio({a, count}, {b, count}, seed, resamples);
  out[0] = ratio.value, out[1] = ratio.interval.low, out[2] = ratio.interval.high;
}

void kiln_measure_unpaired_ratio(const double* a, size_t a_count, const double* b, size_t b_count,
                                 uint64_t seed, int resamples, double out[3]) {
  const Ratio ratio = unpaired_ratio({a, a_count}, {b, b_count}, seed, resamples);
  out[0] = ratio.value, out[1] = ratio.interval.low, out[2] = ratio.interval.high;
}

double kiln_measure_drift(const double* samples, size_t count) { return drift({samples, count}); }

void kiln_measure_free(void* memory) { std::free(memory); }

}  // extern "C"
