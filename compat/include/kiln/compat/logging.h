// SPDX-License-Identifier: Apache-2.0
// What of c10/util/Logging.h do sources use? Comparisons, conditions and messages in glog's manner.
// As in torch, warnings and errors are printed, and what is fatal is thrown.
#pragma once

#include <kiln/compat/check.h>

#include <cstdio>
#include <iosfwd>

namespace c10 {
inline namespace kc {
namespace kiln_detail {
enum Severity { GLOG_INFO, GLOG_WARNING, GLOG_ERROR, GLOG_FATAL };
class LogMessage {
 public:
  LogMessage(const char* file, int line, Severity severity) : severity_(severity) {
    text_ = c10::str('[', "IWEF"[severity], ' ', file, ':', line, "] ");
  }
  LogMessage(const LogMessage&) = delete;
  ~LogMessage() noexcept(false) {
    if (severity_ == GLOG_FATAL) throw Error(text_);
    if (severity_ != GLOG_INFO) fputs((text_ + "\n").c_str(), stderr);
  }
  template <class T>
  LogMessage& operator<<(const T& value) {
    text_ += c10::str(value);
    return *this;
  }
  LogMessage& operator<<(std::ostream& (*)(std::ostream&)) { return *this << '\n'; }  // std::endl
  LogMessage& stream() { return *this; }

 private:
  std::string text_;
  Severity severity_;
};
// `a ? void(0) : Voidify() & message << b` is one expression.
struct Voidify {
  void operator&(const LogMessage&) {}
};
}  // namespace kiln_detail
}  // namespace kc
}  // namespace c10

#define KILN_LOG(severity) \
  ::c10::kiln_detail::LogMessage(__FILE__, __LINE__, ::c10::kiln_detail::GLOG_##severity).stream()
#define LOG(severity) KILN_LOG(severity)
#define LOG_IF(severity, condition) \
  !(condition) ? static_cast<void>(0) : ::c10::kiln_detail::Voidify() & KILN_LOG(severity)
#define VLOG(level) LOG_IF(INFO, false)
#define CHECK(condition) LOG_IF(FATAL, !(condition)) << "Check failed: " #condition " "
#ifdef NDEBUG
#define DCHECK(condition) \
  while (false) CHECK(condition)
#else
#define DCHECK(condition) CHECK(condition)
#endif
#define CHECK_EQ(a, b) TORCH_CHECK_EQ(a, b)
#define CHECK_NE(a, b) TORCH_CHECK_NE(a, b)
#define CHECK_LE(a, b) TORCH_CHECK_LE(a, b)
#define CHECK_LT(a, b) TORCH_CHECK_LT(a, b)
#define CHECK_GE(a, b) TORCH_CHECK_GE(a, b)
#define CHECK_GT(a, b) TORCH_CHECK_GT(a, b)
#define CHECK_NOTNULL(value) TORCH_CHECK_NOTNULL(value)
