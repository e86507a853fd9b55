// SPDX-License-Identifier: Apache-2.0
// Do textures and surfaces read and write what CUDA says: addressing, filtering, formats, layers?
#include <cmath>
#include <vector>

#include "expect.h"

constexpr int kWidth = 8, kHeight = 4;

template <class T>
__global__ void read_2d(cudaTextureObject_t texture, const float* x, const float* y, T* out) {
  out[threadIdx.x] = tex2D<T>(texture, x[threadIdx.x], y[threadIdx.x]);
}
__global__ void fetch_1d(cudaTextureObject_t texture, float* out) {
  out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x);
}
__global__ void read_layer(cudaTextureObject_t texture, int layer, float* out) {
  out[threadIdx.x] = tex2DLayered<float>(texture, threadIdx.x + 0.5f, 0.5f, layer);
}
__global__ void read_3d(cudaTextureObject_t texture, float* out) {
  out[threadIdx.x] = tex3D<float>(texture, threadIdx.x + 1.0f, 1.0f, 1.0f);
}
__global__ void shift_surface(cudaSurfaceObject_t surface, float by) {
  float value;
  surf2Dread(&value, surface, threadIdx.x * 4, threadIdx.y);
  surf2Dwrite(value + by, surface, threadIdx.x * 4, threadIdx.y);
}

template <class T>
cudaArray_t array_of(const std::vector<T>& values) {
  cudaArray_t array;
  cudaChannelFormatDesc desc = cudaCreateChannelDesc<T>();
  EXPECT_OK(cudaMallocArray(&array, &desc, kWidth, kHeight, cudaArraySurfaceLoadStore));
  EXPECT_OK(cudaMemcpy2DToArray(array, 0, 0, values.data(), kWidth * sizeof(T), kWidth * sizeof(T),
                                kHeight, cudaMemcpyHostToDevice));
  return array;
}
cudaTextureObject_t texture_of(cudaArray_t array, cudaTextureFilterMode filter,
                               cudaTextureAddressMode mode, bool normalized,
                               cudaTextureReadMode read = cudaReadModeElementType) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc desc = {};
  desc.addressMode[0] = desc.addressMode[1] = desc.addressMode[2] = mode;
  desc.filterMode = filter;
  desc.readMode = read;
  desc.normalizedCoords = normalized;
  cudaTextureObject_t texture = 0;
  EXPECT_OK(cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
  return texture;
}
template <class T>
std::vector<T> read(cudaTextureObject_t texture, const std::vector<float>& x,
                    const std::vector<float>& y) {
  float *dx, *dy;
  T* out;
  std::vector<T> result(x.size());
  cudaMalloc(&dx, x.size() * 4);
  cudaMalloc(&dy, x.size() * 4);
  cudaMalloc(&out, x.size() * sizeof(T));
  cudaMemcpy(dx, x.data(), x.size() * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(dy, y.data(), x.size() * 4, cudaMemcpyHostToDevice);
  read_2d<T><<<1, static_cast<unsigned>(x.size())>>>(texture, dx, dy, out);
  EXPECT_OK(cudaMemcpy(result.data(), out, x.size() * sizeof(T), cudaMemcpyDeviceToHost));
  return result;
}

void points_lines_and_edges() {
  std::vector<float> values(kWidth * kHeight);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  cudaArray_t array = array_of(values);
  auto points = texture_of(array, cudaFilterModePoint, cudaAddressModeClamp, false);
  EXPECT(read<float>(points, {0.0f, 1.9f, 7.5f, -3.0f, 99.0f}, {0.0f, 1.0f, 3.0f, 2.0f, 99.0f}) ==
         std::vector<float>({0, 9, 31, 16, 31}));
  auto lines = texture_of(array, cudaFilterModeLinear, cudaAddressModeClamp, false);
  EXPECT(read<float>(lines, {0.5f, 1.0f, 2.25f, 1.0f}, {0.5f, 0.5f, 0.5f, 1.0f}) ==
         std::vector<float>({0, 0.5f, 1.75f, 4.5f}));
  auto wraps = texture_of(array, cudaFilterModePoint, cudaAddressModeWrap, true);
  EXPECT(read<float>(wraps, {0.0f, 1.0f, -0.125f}, {0.0f, 0.25f, 0.0f}) ==
         std::vector<float>({0, 8, 7}));
  auto mirrors = texture_of(array, cudaFilterModePoint, cudaAddressModeMirror, true);
  EXPECT(read<float>(mirrors, {1.0f, -0.01f}, {0.0f, 0.0f}) == std::vector<float>({7, 0}));
  auto borders = texture_of(array, cudaFilterModePoint, cudaAddressModeBorder, false);
  EXPECT(read<float>(borders, {-1.0f, 2.0f}, {0.0f, 0.0f}) == std::vector<float>({0, 2}));
  EXPECT_OK(cudaDestroyTextureObject(points));
  EXPECT_OK(cudaFreeArray(array));
}

void bytes_as_they_are_and_normalised() {
  std::vector<unsigned char> values(kWidth * kHeight);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<unsigned char>(255 - i);
  cudaArray_t array = array_of(values);
  auto plain = texture_of(array, cudaFilterModePoint, cudaAddressModeClamp, false);
  EXPECT(read<unsigned char>(plain, {0.0f, 3.0f}, {0.0f, 2.0f}) ==
         std::vector<unsigned char>({255, 236}));
  auto normalised = texture_of(array, cudaFilterModePoint, cudaAddressModeClamp, false,
                               cudaReadModeNormalizedFloat);
  EXPECT(read<float>(normalised, {0.0f, 3.0f}, {0.0f, 2.0f}) ==
         std::vector<float>({1.0f, 236.0f / 255.0f}));
}

void linear_memory_layers_volumes() {
  std::vector<float> values(kWidth * kHeight * 2), result(kWidth);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  float *memory, *out;
  EXPECT_OK(cudaMalloc(&memory, values.size() * 4));
  EXPECT_OK(cudaMalloc(&out, kWidth * 4));
  EXPECT_OK(cudaMemcpy(memory, values.data(), values.size() * 4, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = memory;
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = values.size() * 4;
  cudaTextureDesc desc = {};
  cudaTextureObject_t texture;
  EXPECT_OK(cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
  fetch_1d<<<1, kWidth>>>(texture, out);
  EXPECT_OK(cudaMemcpy(result.data(), out, kWidth * 4, cudaMemcpyDeviceToHost));
  EXPECT(result[0] == 0 && result[kWidth - 1] == kWidth - 1);

  for (bool layered : {true, false}) {
    cudaArray_t array;
    cudaExtent extent = {kWidth, kHeight, 2};
    cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
    EXPECT_OK(cudaMalloc3DArray(&array, &channel, extent, layered ? cudaArrayLayered : 0));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = {values.data(), kWidth * 4, kWidth, kHeight};
    copy.dstArray = array;
    copy.extent = extent;
    copy.kind = cudaMemcpyHostToDevice;
    EXPECT_OK(cudaMemcpy3D(&copy));
    auto object = texture_of(array, layered ? cudaFilterModePoint : cudaFilterModeLinear,
                             cudaAddressModeClamp, false);
    if (layered) {
      read_layer<<<1, kWidth>>>(object, 1, out);
    } else {
      read_3d<<<1, kWidth - 1>>>(object, out);
    }
    EXPECT_OK(cudaMemcpy(result.data(), out, kWidth * 4, cudaMemcpyDeviceToHost));
    EXPECT(layered ? result[3] == kWidth * kHeight + 3 : result[0] == (0 + 41) / 2.0f);
  }
  EXPECT_OK(cudaFree(memory));
  if (!on_the_engine()) return;
  // The memory goes, the object stays: told, and no crash.
  fetch_1d<<<1, kWidth>>>(texture, out);
  EXPECT_CODE(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  EXPECT_OK(cudaDeviceReset());
}

void surfaces_read_and_write() {
  std::vector<float> values(kWidth * kHeight, 1.0f);
  cudaArray_t array = array_of(values);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface;
  EXPECT_OK(cudaCreateSurfaceObject(&surface, &resource));
  shift_surface<<<1, dim3(kWidth, kHeight)>>>(surface, 2.5f);
  EXPECT_OK(cudaMemcpy2DFromArray(values.data(), kWidth * 4, array, 0, 0, kWidth * 4, kHeight,
                                  cudaMemcpyDeviceToHost));
  EXPECT(values == std::vector<float>(kWidth * kHeight, 3.5f));
  shift_surface<<<1, dim3(kWidth + 1, kHeight)>>>(surface, 1.0f);
  EXPECT_CODE(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  EXPECT_OK(cudaDeviceReset());
}

int main() {
  points_lines_and_edges();
  bytes_as_they_are_and_normalised();
  linear_memory_layers_volumes();
  surfaces_read_and_write();
  return finish();
}
