// SPDX-License-Identifier: Apache-2.0
// What does a launch need beyond <<<>>>? kiln::launch: more than 48 KB of shared memory, clusters,
// cooperative grids, programmatic dependent launch. (A plain <<<>>> is checked too: a launch that
// failed raises when the op returns.)
#pragma once

#include <kiln/tensor.h>
#include <kiln/types.h>

namespace kiln {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr Dim3() = default;
  constexpr Dim3(int64_t x_, int64_t y_ = 1, int64_t z_ = 1)
      : x(static_cast<unsigned>(x_)), y(static_cast<unsigned>(y_)), z(static_cast<unsigned>(z_)) {}
#ifdef __CUDACC__
  Dim3(::dim3 d) : x(d.x), y(d.y), z(d.z) {}
#endif
};

struct Launch {
  Dim3 grid;
  Dim3 block;
  int64_t shared_bytes = 0;  // dynamic; above 48 KB the kernel's limit is raised first
  cudaStream_t stream = nullptr;
  Dim3 cluster{0, 0, 0};          // 0: none
  bool cooperative = false;       // all blocks resident at once, for a grid-wide barrier
  bool overlap_previous = false;  // may start before the kernel ahead of it in the stream has ended
                                  // (griddepcontrol.wait)
};

namespace detail {
void launch(const void* kernel, const Launch& how, void** arguments);

template <class... P>
void launch_converted(void (*kernel)(P...), const Launch& how, P... arguments) {
  void* pointers[sizeof...(P) + 1] = {
      const_cast<void*>(static_cast<const volatile void*>(&arguments))..., nullptr};
  launch(reinterpret_cast<const void*>(kernel), how, pointers);
}
}  // namespace detail

// Raises here when the launch is refused.
template <class... P, class... A>
void launch(void (*kernel)(P...), const Launch& how, A&&... arguments) {
  static_assert(sizeof...(P) == sizeof...(A),
                "kiln::launch: the kernel takes a different number of arguments. Pass one for each "
                "of its parameters");
  detail::launch_converted<P...>(kernel, how, static_cast<A&&>(arguments)...);
}

// How many blocks of `threads` cover n elements: at least one, since an empty grid is an error in
// CUDA.
unsigned blocks_for(int64_t n, int threads);

}  // namespace kiln
