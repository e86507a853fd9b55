// SPDX-License-Identifier: Apache-2.0
// Two op libraries in one program without torch: memory, a call, a result, an error.
#include <scale_ops.h>
#include <shift_ops.h>

#include <cstdio>
#include <vector>

int main() {
  const KilnLibrary* ops = scale_ops_library();
  int32_t device = 0, index = 0;
  if (ops->default_device(&device, &index)) return 1;
  std::vector<float> values = {0, 1, 2, 3, 4};
  const size_t bytes = values.size() * sizeof(float);
  const int64_t size = 5, stride = 1;
  void* memory = nullptr;
  if (ops->allocate(device, index, bytes, &memory)) return 1;
  if (ops->copy(memory, device, values.data(), KILN_DEVICE_CPU, bytes)) return 1;
  KilnTensor x = {memory, &size, &stride, 1, KILN_F32, device, index, nullptr, nullptr};

  KilnTensor* result = nullptr;
  int64_t count = 0;
  if (scale_ops_scale(&x, &result)) return std::fprintf(stderr, "%s\n", scale_ops_last_error()), 1;
  if (shift_ops_shift(result, 0.5, &count))
    return std::fprintf(stderr, "%s\n", shift_ops_last_error()), 1;
  if (ops->synchronize(device, index)) return 1;
  if (ops->copy(values.data(), KILN_DEVICE_CPU, result->data, device, bytes)) return 1;
  for (float value : values) std::printf("%g ", value);
  std::printf("of %lld\n", static_cast<long long>(count));
  result->release(result);

  x.dtype = KILN_F64;
  if (!shift_ops_shift(&x, 1, &count)) return 1;
  std::printf("%s\n", shift_ops_last_error());
  return ops->deallocate(device, index, memory);
}
