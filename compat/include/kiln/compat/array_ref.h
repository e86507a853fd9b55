// SPDX-License-Identifier: Apache-2.0
// How does torch pass lists? As ArrayRef: a borrowed pointer and a length; optional lists have a
// type of their own.
#pragma once

#include <kiln/compat/types.h>

#include <initializer_list>

namespace c10 {
inline namespace kc {

namespace kiln_detail {
[[noreturn]] void bad_index(const char* text, int64_t index, int64_t size);
[[noreturn]] void bad_slice(size_t from, const size_t* count, size_t size);
}  // namespace kiln_detail

template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end)
      : data_(begin), size_(static_cast<size_t>(end - begin)) {}
  template <class A>
  ArrayRef(const std::vector<T, A>& list) : data_(list.data()), size_(list.size()) {}
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& list) : data_(list.data()), size_(N) {}
  template <size_t N>
  constexpr ArrayRef(const T (&list)[N]) : data_(list), size_(N) {}
  constexpr ArrayRef(const std::initializer_list<T>& list) {
    data_ = list.begin();  // lives as long as the caller's expression, as torch has it
    size_ = list.size();
  }
  // Any other list of such items with its data in a row, as c10::SmallVector.
  template <class C, class = std::enable_if_t<std::is_same_v<typename C::value_type, T>>,
            class = decltype(static_cast<const T*>(std::declval<const C&>().data()))>
  ArrayRef(const C& list) : data_(list.data()), size_(list.size()) {}
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  const T& at(size_t i) const {
    if (i >= size_)
      kiln_detail::bad_index("ArrayRef: invalid index", static_cast<int64_t>(i),
                             static_cast<int64_t>(size_));
    return data_[i];
  }
  constexpr auto rbegin() const { return std::reverse_iterator<const T*>(end()); }
  constexpr auto rend() const { return std::reverse_iterator<const T*>(begin()); }
  constexpr const T* cbegin() const { return begin(); }
  constexpr const T* cend() const { return end(); }
  const T& front() const { return at(0); }
  const T& back() const { return at(size_ - 1); }
  ArrayRef slice(size_t from, size_t count) const {
    if (from + count > size_) kiln_detail::bad_slice(from, &count, size_);
    return {data_ + from, count};
  }
  ArrayRef slice(size_t from) const {
    if (from > size_) kiln_detail::bad_slice(from, nullptr, size_);
    return {data_ + from, size_ - from};
  }
  ArrayRef drop_front(size_t count = 1) const { return slice(count); }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  bool equals(ArrayRef o) const {
    if (size_ != o.size_) return false;
    for (size_t i = 0; i < size_; i++)
      if (!(data_[i] == o.data_[i])) return false;
    return true;
  }
  friend bool operator==(ArrayRef a, ArrayRef b) { return a.equals(b); }
  friend bool operator!=(ArrayRef a, ArrayRef b) { return !a.equals(b); }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};
template <class T>
bool operator==(const std::vector<T>& a, ArrayRef<T> b) {
  return b.equals(a);
}
template <class T>
bool operator!=(const std::vector<T>& a, ArrayRef<T> b) {
  return !b.equals(a);
}
using IntArrayRef = ArrayRef<int64_t>;
using IntList = IntArrayRef;
// Symbolic sizes are numbers outside of torch.compile, which traces no C++.
using SymInt = int64_t;
using SymIntArrayRef = IntArrayRef;
inline IntArrayRef asIntArrayRefUnchecked(IntArrayRef list) { return list; }
inline IntArrayRef fromIntArrayRefUnchecked(IntArrayRef list) { return list; }

class OptionalIntArrayRef {
 public:
  OptionalIntArrayRef() = default;
  OptionalIntArrayRef(std::nullopt_t) {}
  OptionalIntArrayRef(IntArrayRef list) : list_(list), has_(true) {}
  OptionalIntArrayRef(const std::vector<int64_t>& list) : list_(list), has_(true) {}
  OptionalIntArrayRef(const std::initializer_list<int64_t>& list) : list_(list), has_(true) {}
  OptionalIntArrayRef(const int64_t& one) : one_(one), single_(true), has_(true) {}
  OptionalIntArrayRef(const std::optional<IntArrayRef>& list);
  bool has_value() const { return has_; }
  explicit operator bool() const { return has_; }
  IntArrayRef value() const { return single_ ? IntArrayRef(&one_, 1) : list_; }
  IntArrayRef operator*() const { return value(); }

 private:
  IntArrayRef list_;
  int64_t one_ = 0;
  bool single_ = false, has_ = false;
};

}  // namespace kc
template <class T>
inline ArrayRef<T> makeArrayRef(const std::vector<T>& list) {
  return list;
}
template <class T>
inline ArrayRef<T> makeArrayRef(const T* data, size_t size) {
  return ArrayRef<T>(data, size);
}
template <class T>
inline ArrayRef<T> makeArrayRef(const T& one) {
  return ArrayRef<T>(one);
}
}  // namespace c10
