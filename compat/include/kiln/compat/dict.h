// SPDX-License-Identifier: Apache-2.0
// What is c10::Dict? A map that keeps the order of insertion, and whose copies share their entries.
#pragma once

#include <kiln/compat/value.h>

#include <list>
#include <memory>
#include <stdexcept>
#include <unordered_map>

namespace c10 {
inline namespace kc {

template <class K, class V>
class Dict {
 public:
  using key_type = K;
  using mapped_type = V;
  using size_type = size_t;
  class Entry {
   public:
    Entry(K key, V value) : key_(static_cast<K&&>(key)), value_(static_cast<V&&>(value)) {}
    const K& key() const { return key_; }
    const V& value() const { return value_; }
    template <class T>
    void setValue(T&& value) const {
      value_ = static_cast<T&&>(value);
    }

   private:
    K key_;
    mutable V value_;
  };
  using value_type = Entry;
  using iterator = typename std::list<Entry>::const_iterator;

  Dict() : all_(std::make_shared<All>()) {}
  size_t size() const { return all_->entries.size(); }
  bool empty() const { return all_->entries.empty(); }
  iterator begin() const { return all_->entries.begin(); }
  iterator end() const { return all_->entries.end(); }
  iterator find(const K& key) const {
    const auto found = all_->places.find(key);
    return found == all_->places.end() ? end() : iterator(found->second);
  }
  bool contains(const K& key) const { return all_->places.count(key) != 0; }
  V at(const K& key) const {
    const iterator found = find(key);
    if (found == end())
      throw std::out_of_range("Argument passed to at() was not in the map.");  // torch's text
    return found->value();
  }
  std::pair<iterator, bool> insert(K key, V value) const {
    const iterator found = find(key);
    if (found != end()) return {found, false};
    const auto place = all_->entries.emplace(all_->entries.end(), key, static_cast<V&&>(value));
    all_->places.emplace(static_cast<K&&>(key), place);
    return {place, true};
  }
  std::pair<iterator, bool> insert_or_assign(K key, V value) const {
    const iterator found = find(key);
    if (found == end()) return insert(static_cast<K&&>(key), static_cast<V&&>(value));
    found->setValue(static_cast<V&&>(value));
    return {found, false};
  }
  size_t erase(const K& key) const {
    const auto found = all_->places.find(key);
    if (found == all_->places.end()) return 0;
    all_->entries.erase(found->second);
    all_->places.erase(found);
    return 1;
  }
  void erase(iterator place) const { erase(K(place->key())); }
  void clear() const {
    all_->entries.clear();
    all_->places.clear();
  }
  void reserve(size_t count) const { all_->places.reserve(count); }
  Dict copy() const {
    Dict made;
    for (const Entry& one : *this) made.insert(one.key(), one.value());
    return made;
  }
  bool is(const Dict& other) const { return all_ == other.all_; }
  // As torch's, and Python's: without regard to the order.
  friend bool operator==(const Dict& a, const Dict& b) {
    if (a.size() != b.size()) return false;
    for (const Entry& one : a) {
      const iterator other = b.find(one.key());
      if (other == b.end() || !(other->value() == one.value())) return false;
    }
    return true;
  }
  friend bool operator!=(const Dict& a, const Dict& b) { return !(a == b); }

 private:
  struct All {
    std::list<Entry> entries;
    std::unordered_map<K, typename std::list<Entry>::iterator> places;
  };
  std::shared_ptr<All> all_;
};

}  // namespace kc
}  // namespace c10
namespace torch {
using c10::Dict;
}

#ifndef __CUDA_ARCH__
namespace kiln {
namespace compat {
template <class K, class V>
struct Caster<c10::Dict<K, V>> {
  KILN_TYPE(dict, false, 0, 2, Inner<&Caster<K>::type, &Caster<V>::type>::list);
  static c10::Dict<K, V> take(Value& v) {
    c10::Dict<K, V> out;
    for (size_t i = 0; i + 1 < v.list.size(); i += 2)
      out.insert(Caster<K>::take(v.list[i]), Caster<V>::take(v.list[i + 1]));
    return out;
  }
  static void give(Value& v, const c10::Dict<K, V>& dict) {
    v.kind = Value::Kind::dict;
    v.list.resize(2 * dict.size());
    size_t i = 0;
    for (const auto& one : dict) {
      Caster<K>::give(v.list[i++], one.key());
      Caster<V>::give(v.list[i++], one.value());
    }
  }
};
}  // namespace compat
}  // namespace kiln
#endif
