// SPDX-License-Identifier: Apache-2.0
// How does the runtime build a message? In a growing buffer: std::string would raise the floor to
// GLIBCXX_3.4.21.
#pragma once

#include <stddef.h>

#include "kiln/types.h"

namespace kiln::detail {

class Text {
 public:
  Text() = default;
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  Text(Text&& other) noexcept;
  ~Text();
  Text& add(const char* text);
  Text& add(const char* text, size_t size);
  __attribute__((format(printf, 2, 3))) Text& addf(const char* format, ...);
  Text& add_real(double value);  // as %g writes it, with a point whatever the locale
  Text& add_sizes(const int64_t* values, size_t count);  // "[2, 3]"
  void clear();
  size_t size() const { return size_; }
  const char* c_str() const { return data_ ? data_ : ""; }
  char* take();  // the caller frees it; never null

 private:
  void reserve(size_t more);
  char* data_ = nullptr;
  size_t size_ = 0;
  size_t room_ = 0;
};

// strtod with a decimal point, whatever the locale of the process.
double read_real(const char* text, char** end);

// What runs in this thread while it lives sees the "C" locale: torch reads the defaults of a schema
// by std::stod, and takes 1.5 for 1 where a comma is expected.
class CLocale {
 public:
  CLocale();
  ~CLocale();
  CLocale(const CLocale&) = delete;
  CLocale& operator=(const CLocale&) = delete;

 private:
  void* before_;
};

const char* dtype_name(Dtype);              // "f32"; "dtype 99" for a number that is none
void add_device(Text&, Device);             // "cuda:0", "cpu"
[[noreturn]] void throw_text(Text&& text);  // as the exception that crosses into torch
// "error: WHAT\n  why: WHY\n  fix: FIX"
void add_error(Text&, const char* what, const char* why, const char* fix);

}  // namespace kiln::detail
