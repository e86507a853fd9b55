// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <exception>

#include "call.h"
#include "kiln/check.h"
#include "kiln/tensor.h"

namespace kiln::detail {

Text::Text(Text&& other) noexcept : data_(other.data_), size_(other.size_), room_(other.room_) {
  other.data_ = nullptr;
  other.size_ = other.room_ = 0;
}
Text::~Text() { free(data_); }

void Text::reserve(size_t more) {
  if (data_ && size_ + more < room_) return;
  room_ = 2 * room_ + more + 64;
  char* wider = static_cast<char*>(realloc(data_, room_));
  if (!wider) abort();  // no memory for a message: nothing sensible is left to do
  data_ = wider;
}

Text& Text::add(const char* text, size_t size) {
  reserve(size);
  memcpy(data_ + size_, text, size);
  size_ += size;
  data_[size_] = 0;
  return *this;
}

Text& Text::add(const char* text) { return add(text, strlen(text)); }

Text& Text::addf(const char* format, ...) {
  va_list list;
  va_start(list, format);
  va_list again;
  va_copy(again, list);
  const int size = vsnprintf(nullptr, 0, format, list);
  va_end(list);
  if (size > 0) {
    reserve(static_cast<size_t>(size));
    vsnprintf(data_ + size_, static_cast<size_t>(size) + 1, format, again);
    size_ += static_cast<size_t>(size);
  }
  va_end(again);
  return *this;
}

namespace {

// A process may have set another locale: torch's default arguments and messages are written in this
// one.
locale_t c_locale() {
  static const locale_t kept = newlocale(LC_ALL_MASK, "C", nullptr);
  return kept;
}

}  // namespace

double read_real(const char* text, char** end) { return strtod_l(text, end, c_locale()); }

Text& Text::add_real(double value) {
  const CLocale locale;
  return addf("%g", value);
}

CLocale::CLocale() : before_(uselocale(c_locale())) {}
CLocale::~CLocale() { uselocale(static_cast<locale_t>(before_)); }

Text& Text::add_sizes(const int64_t* values, size_t count) {
  add("[");
  for (size_t i = 0; i < count; i++) addf(i ? ", %lld" : "%lld", static_cast<long long>(values[i]));
  return add("]");
}

void Text::clear() {
  size_ = 0;
  if (data_) data_[0] = 0;
}

char* Text::take() {
  reserve(0);
  data_[size_] = 0;
  char* data = data_;
  data_ = nullptr;
  size_ = room_ = 0;
  return data;
}

const char* dtype_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::u8:
      return "u8";
    case Dtype::i8:
      return "i8";
    case Dtype::i16:
      return "i16";
    case Dtype::i32:
      return "i32";
    case Dtype::i64:
      return "i64";
    case Dtype::f16:
      return "f16";
    case Dtype::f32:
      return "f32";
    case Dtype::f64:
      return "f64";
    case Dtype::c32:
      return "c32";
    case Dtype::c64:
      return "c64";
    case Dtype::c128:
      return "c128";
    case Dtype::bool8:
      return "bool";
    case Dtype::bf16:
      return "bf16";
    case Dtype::f8e5m2:
      return "f8e5m2";
    case Dtype::f8e4m3:
      return "f8e4m3";
    case Dtype::u16:
      return "u16";
    case Dtype::u32:
      return "u32";
    case Dtype::u64:
      return "u64";
  }
  return "an unknown dtype";
}

void add_device(Text& text, Device device) {
  if (device.type == DeviceType::cpu)
    text.add("cpu");
  else if (device.type == DeviceType::cuda)
    text.addf("cuda:%d", device.index);
  else
    text.addf("device type %d", static_cast<int>(device.type));
}

void add_error(Text& text, const char* what, const char* why, const char* fix) {
  text.add("error: ").add(what);
  if (why && *why) text.add("\n  why: ").add(why);
  if (fix && *fix) text.add("\n  fix: ").add(fix);
}

namespace {

// Derived from std::exception alone: its what() is all that torch reads, and runtime_error would
// need a newer libstdc++.
class OpError final : public std::exception {
 public:
  explicit OpError(char* text) : text_(text) {}
  OpError(const OpError& other) : std::exception(other), text_(strdup(other.text_)) {}
  OpError& operator=(const OpError&) = delete;
  ~OpError() override { free(text_); }
  const char* what() const noexcept override { return text_; }

 private:
  char* text_;
};

void add_piece(Text& text, const Piece& piece) {
  switch (piece.kind) {
    case Piece::text:
      text.add(static_cast<const char*>(piece.p), piece.count);
      break;
    case Piece::integer:
      text.addf("%lld", piece.i);
      break;
    case Piece::real:
      text.add_real(piece.f);
      break;
    case Piece::boolean:
      text.add(piece.i ? "true" : "false");
      break;
    case Piece::sizes:
      text.add_sizes(static_cast<const int64_t*>(piece.p), piece.count);
      break;
    case Piece::dtype:
      text.add(dtype_name(static_cast<Dtype>(piece.i)));
      break;
    case Piece::device:
      add_device(text, {static_cast<DeviceType>(piece.i >> 32), static_cast<int32_t>(piece.i)});
      break;
    case Piece::tensor: {
      const Tensor& t = *static_cast<const Tensor*>(piece.p);
      if (!t.defined()) {
        text.add("an undefined tensor");
        break;
      }
      text.add(dtype_name(t.dtype())).add_sizes(t.sizes().data(), t.sizes().size()).add(" on ");
      add_device(text, t.device());
      break;
    }
  }
}

void add_op_name(Text& text) {
  if (const char* name = current_op_name()) text.add(name).add(": ");
}

}  // namespace

void throw_text(Text&& text) { throw OpError(text.take()); }

void check_failed(const char* file, int line, const char* condition, const Piece* pieces,
                  size_t count) {
  Text text;
  add_op_name(text);
  if (count == 0) text.add("a check failed: ").add(condition);
  for (size_t i = 0; i < count; i++) add_piece(text, pieces[i]);
  const char* slash = strrchr(file, '/');
  text.addf("\n  at: %s:%d, KILN_CHECK(%s)", slash ? slash + 1 : file, line, condition);
  if (strstr(condition, "is_cuda") && default_backend() == Backend::engine)
    text.add(
        "\n  fix: here ops run on the engine, with CPU tensors: leave out the check; kiln itself "
        "refuses tensors on different devices");
  throw_text(static_cast<Text&&>(text));
}

void no_dtype(Dtype seen, const Dtype* known, size_t count) {
  Text text;
  add_op_name(text);
  text.addf("dtype %s is not supported\n  why: it is written for ", dtype_name(seen));
  for (size_t i = 0; i < count; i++) text.add(i ? ", " : "").add(dtype_name(known[i]));
  text.add("\n  fix: convert the tensor with .to(), or add the type to the op's kiln::dispatch");
  throw_text(static_cast<Text&&>(text));
}

void no_value(int64_t seen, const int64_t* known, size_t count) {
  Text text;
  add_op_name(text);
  text.addf("the value %lld is not supported\n  why: it is compiled for ",
            static_cast<long long>(seen));
  for (size_t i = 0; i < count; i++)
    text.addf(i ? ", %lld" : "%lld", static_cast<long long>(known[i]));
  text.add("\n  fix: use one of these, or add the value to the op's kiln::dispatch_value");
  throw_text(static_cast<Text&&>(text));
}

// "NAME = ", where the current call knows the argument.
static void add_argument_name(Text& text, const Slot& slot) {
  const Call* call = current_call();
  if (!call || !call->arguments) return;
  const auto index = &slot - call->arguments;
  if (index >= 0 && index < call->op->parameter_count)
    text.add(parameter_name(call->op, static_cast<int>(index))).add(" = ");
}

void out_of_range(const Slot& slot, int bytes, bool is_signed) {
  Text text;
  add_op_name(text);
  text.add("the argument ");
  add_argument_name(text, slot);
  text.addf("%lld does not fit\n  why: the C++ parameter is a %d-bit %s integer",
            static_cast<long long>(slot.i), 8 * bytes, is_signed ? "signed" : "unsigned");
  text.add("\n  fix: pass a smaller value, or make the parameter an int64_t");
  throw_text(static_cast<Text&&>(text));
}

void beyond_float(const Slot& slot) {
  Text text;
  add_op_name(text);
  text.add("the argument ");
  add_argument_name(text, slot);
  text.add_real(slot.f).add(
      " does not fit\n  why: the C++ parameter is a float, at most 3.40282e+38; it would become "
      "infinite\n  fix: make the parameter a double, or pass infinity itself");
  throw_text(static_cast<Text&&>(text));
}

void bad_access(const TensorRep* rep, const char* method, Dtype wanted, int wanted_ndim) {
  Text text;
  add_op_name(text);
  const char* name = tensor_name(rep);
  text.addf("%s%s%s<%s>() ", *name ? name : "", *name ? "." : "", method, dtype_name(wanted));
  if (rep->dtype != wanted) {
    text.addf(
        "on a tensor of %s\n  why: the C++ type must be the tensor's dtype\n  fix: choose the type "
        "with "
        "kiln::dispatch, or "
        "convert the tensor before the call",
        dtype_name(rep->dtype));
  } else if (wanted_ndim >= 0 && rep->ndim != wanted_ndim) {
    text.addf("with %d dimensions on a tensor of sizes ", wanted_ndim)
        .add_sizes(rep->sizes, static_cast<size_t>(rep->ndim));
  } else {
    text.add("on a tensor that is not contiguous: sizes ")
        .add_sizes(rep->sizes, static_cast<size_t>(rep->ndim));
    text.add(", strides ").add_sizes(rep->strides, static_cast<size_t>(rep->ndim));
    text.add(
        "\n  fix: pass x.contiguous() (NumPy: np.ascontiguousarray(x)), or read it through view<T, "
        "N>(), which takes strides");
  }
  throw_text(static_cast<Text&&>(text));
}

}  // namespace kiln::detail
