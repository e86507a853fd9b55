// SPDX-License-Identifier: Apache-2.0
// What does c10/macros/Macros.h define? Attributes, visibility, launch bounds. Symbols of a library
// are its own here, so the export macros are empty.
#pragma once

#ifndef C10_HOST_DEVICE
#ifdef __CUDACC__
#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#else
#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_HOST
#endif
#endif
#define C10_ALWAYS_INLINE inline __attribute__((always_inline))
#define C10_ALWAYS_INLINE_ATTRIBUTE __attribute__((always_inline))
#define C10_NOINLINE __attribute__((noinline))
#define C10_LIKELY(e) __builtin_expect(static_cast<bool>(e), 1)
#define C10_UNLIKELY(e) __builtin_expect(static_cast<bool>(e), 0)
#define C10_UNUSED __attribute__((unused))
#define C10_USED __attribute__((used))
#define C10_RESTRICT __restrict
#define C10_NODISCARD [[nodiscard]]
#define C10_FALLTHROUGH [[fallthrough]]
#define C10_STRINGIZE_IMPL(x) #x
#define C10_STRINGIZE(x) C10_STRINGIZE_IMPL(x)
#define C10_CONCATENATE_IMPL(a, b) a##b
#define C10_CONCATENATE(a, b) C10_CONCATENATE_IMPL(a, b)
#define C10_UID __COUNTER__
#define C10_ANONYMOUS_VARIABLE(name) C10_CONCATENATE(name, C10_UID)
#define C10_MACRO_EXPAND(args) args
#define C10_CLANG_DIAGNOSTIC_PUSH()
#define C10_CLANG_DIAGNOSTIC_POP()
#define C10_CLANG_DIAGNOSTIC_IGNORE(flag)
#define C10_CLANG_HAS_WARNING(flag) 0
#define KILN_PRAGMA(text) _Pragma(#text)
#define C10_DIAGNOSTIC_PUSH_AND_IGNORED_IF_DEFINED(warning) \
  _Pragma("GCC diagnostic push") KILN_PRAGMA(GCC diagnostic ignored warning)
#define C10_DIAGNOSTIC_POP() _Pragma("GCC diagnostic pop")
#define C10_DISABLE_COPY_AND_ASSIGN(name) \
  name(const name&) = delete;             \
  name& operator=(const name&) = delete
#define C10_RETURN_MOVE_IF_OLD_COMPILER 0
#define C10_HOST_CONSTEXPR_EXCEPT_WIN_CUDA constexpr
#define CONSTEXPR_EXCEPT_WIN_CUDA constexpr
#define C10_ALWAYS_INLINE_UNLESS_MOBILE C10_ALWAYS_INLINE
#define C10_ERASE C10_ALWAYS_INLINE C10_ATTR_VISIBILITY_HIDDEN
#define C10_ATTR_VISIBILITY_HIDDEN __attribute__((__visibility__("hidden")))
// For the sanitizers of clang, which kiln does not build with.
#define __ubsan_ignore_float_divide_by_zero__
#define __ubsan_ignore_undefined__
#define __ubsan_ignore_signed_int_overflow__
#define __ubsan_ignore_pointer_overflow__
#define __ubsan_ignore_function__
#define __ubsan_ignore_float_cast_overflow__
#define C10_HAS_CPP_ATTRIBUTE(x) __has_cpp_attribute(x)
#define C10_API
#define C10_EXPORT
#define C10_IMPORT
#define C10_HIDDEN
#define C10_API_ENUM
#define C10_CUDA_API
#define C10_CUDA_EXPORT
#define C10_CUDA_IMPORT
#define TORCH_API
#define TORCH_CUDA_CPP_API
#define TORCH_CUDA_CU_API
#define TORCH_CUDA_API
#define TORCH_PYTHON_API
#define TORCH_XPU_API
// One to three names, as torch's light headers open and close their namespaces.
#define KILN_NAMESPACE_1(a) namespace a {
#define KILN_NAMESPACE_2(a, b) namespace a::b {
#define KILN_NAMESPACE_3(a, b, c) namespace a::b::c {
#define KILN_NAMESPACE_OF(_1, _2, _3, name, ...) name
#define HIDDEN_NAMESPACE_BEGIN(...)                                                      \
  KILN_NAMESPACE_OF(__VA_ARGS__, KILN_NAMESPACE_3, KILN_NAMESPACE_2, KILN_NAMESPACE_1, ) \
  (__VA_ARGS__)
#define HIDDEN_NAMESPACE_END(...) }
#define C10_WARP_SIZE 32
#define C10_WARP_SIZE_STATIC 32
#define C10_WARP_SIZE_UPPER_BOUND 32
#define C10_WARP_SIZE_LOWER_BOUND 32
#ifdef __CUDACC__
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(t) __launch_bounds__(t)
#define C10_LAUNCH_BOUNDS_2(t, b) __launch_bounds__(t, b)
#define C10_MAX_THREADS_PER_BLOCK(v) (((v) <= 1024) ? (v) : 256)
// As torch has it for compute capability 8.0: at least that many blocks, as far as threads allow.
#define C10_MIN_BLOCKS_PER_SM(threads, blocks) \
  ((((threads) * (blocks) <= 2048) ? (blocks) : ((2048 + (threads)-1) / (threads))))
#endif
// Those who use them include assert.h by its name, or CUDA's headers, which have it.
#define CUDA_KERNEL_ASSERT(condition) \
  if (C10_UNLIKELY(!(condition))) __assert_fail(#condition, __FILE__, __LINE__, __func__)
#define CUDA_KERNEL_ASSERT_MSG(condition, text) CUDA_KERNEL_ASSERT((condition) && text)
#define CUDA_KERNEL_ASSERT_PRINTF(condition, ...) CUDA_KERNEL_ASSERT(condition)
#define SYCL_KERNEL_ASSERT(condition) CUDA_KERNEL_ASSERT(condition)
