// SPDX-License-Identifier: Apache-2.0
// How does a function of kiln say that it failed? By Result<T>: a value, or an Error with what, why
// and fix.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace kiln {

// The exit code of the command that meets it.
enum class Fault { Work = 1, Usage = 2, Environment = 3, Bug = 4, Interrupted = 130 };

struct Error {
  Fault fault = Fault::Work;
  std::string what;  // "cannot load libflash.so"
  std::string why;   // "it holds sm_90a code and no PTX; this GPU is sm_89"
  std::string fix;   // "kiln build --arch 8.9"; may be empty
};

// "error: WHAT\n  why: WHY\n  fix: FIX", without the lines that are empty and without a last
// newline.
std::string format(const Error& error);

template <class T = std::monostate>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  Result() requires std::is_same_v<T, std::monostate> : state_(std::in_place_index<0>) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  Error& error() { return *std::get_if<1>(&state_); }
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

using Status = Result<std::monostate>;

}  // namespace kiln

#define KILN_CONCAT_INNER(a, b) a##b
#define KILN_CONCAT(a, b) KILN_CONCAT_INNER(a, b)
// TRY(auto x, f()): x is f()'s value, or the caller returns f()'s error.
#define TRY(declaration, expression) \
  TRY_INNER(declaration, expression, KILN_CONCAT(try_result_, __LINE__))
#define TRY_INNER(declaration, expression, name) \
  auto name = (expression);                      \
  if (!name) return std::move(name.error());     \
  declaration = std::move(*name)
// CHECK_OK(f()): the caller returns f()'s error, if any.
#define CHECK_OK(expression)                                                      \
  do {                                                                            \
    if (auto status_ = (expression); !status_) return std::move(status_.error()); \
  } while (0)
