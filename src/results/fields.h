// SPDX-License-Identifier: Apache-2.0
// How does a result become JSON and come back? Each struct lists its fields once:
//
//   template <class Fields>
//   static void describe(Fields& field, Summary& s) {
//     field("median_ns", s.median_ns);     // a missing key is an error
//     field.maybe("of_copy", s.of_copy);   // a std::optional whose key may be missing
//   }
//
// and that list both writes and reads it. nlohmann's macros take no optional fields, and their
// errors do not say where in a result the key is missing.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kiln::results {

// An object whose keys are data, in the order of the text.
template <class T>
using Named = std::vector<std::pair<std::string, T>>;

template <class T, class Fields>
concept Described = requires(Fields& fields, T& value) {
  describe(fields, value);
};

class Writer {
 public:
  template <class T>
  void operator()(const char* key, T& value) {
    json_[key] = written(value);
  }
  template <class T>
  void maybe(const char* key, std::optional<T>& value) {
    if (value) json_[key] = written(*value);
  }
  Json take() { return std::move(json_); }

 private:
  template <class T>
  static Json written(T& value) {
    if constexpr (Described<T, Writer>) {
      Writer inner;
      describe(inner, value);
      return inner.take();
    } else {
      return Json(value);
    }
  }
  template <class T>
  static Json written(std::optional<T>& value) {
    return value ? written(*value) : Json();
  }
  template <class T>
  static Json written(std::vector<T>& values) {
    Json out = Json::array();
    for (T& value : values) out.push_back(written(value));
    return out;
  }
  template <class T>
  static Json written(Named<T>& values) {
    Json out = Json::object();
    for (auto& [key, value] : values) out[key] = written(value);
    return out;
  }

  Json json_ = Json::object();
};

// Keeps the first problem; after it nothing is read.
class Reader {
 public:
  Reader(const Json& json, std::string path, std::string& problem)
      : json_(json), path_(std::move(path)), problem_(problem) {}

  template <class T>
  void operator()(const char* key, T& value) {
    if (const Json* found = find(key))
      read(*found, inside(key), value);
    else if (problem_.empty())
      problem_ = fmt::format("{} has no key '{}'", path_.empty() ? "it" : path_, key);
  }
  template <class T>
  void maybe(const char* key, std::optional<T>& value) {
    if (const Json* found = find(key)) read(*found, inside(key), value);
  }

  template <Described<Reader> T>
  void read(const Json& json, const std::string& path, T& value) {
    if (!expect(json.is_object(), json, path, "an object")) return;
    Reader inner(json, path, problem_);
    describe(inner, value);
  }
  void read(const Json& json, const std::string& path, std::string& value) {
    if (expect(json.is_string(), json, path, "a string")) value = json.get<std::string>();
  }
  void read(const Json& json, const std::string& path, bool& value) {
    if (expect(json.is_boolean(), json, path, "true or false")) value = json.get<bool>();
  }
  // JSON has no NaN and no infinity: they are written as null.
  void read(const Json& json, const std::string& path, double& value) {
    if (json.is_null())
      value = std::numeric_limits<double>::quiet_NaN();
    else if (expect(json.is_number(), json, path, "a number"))
      value = json.get<double>();
  }
  // Python writes 3.0 for a whole number that it computed.
  template <std::integral T>
  void read(const Json& json, const std::string& path, T& value) {
    const bool whole = json.is_number_integer() ||
                       (json.is_number_float() && std::trunc(json.get<double>()) == json);
    if (expect(whole, json, path, "a whole number")) value = json.get<T>();
  }
  void read(const Json& json, const std::string&, Json& value) { value = json; }
  template <class T>
  void read(const Json& json, const std::string& path, std::optional<T>& value) {
    if (json.is_null())
      value.reset();
    else
      read(json, path, value.emplace());
  }
  template <class T>
  void read(const Json& json, const std::string& path, std::vector<T>& values) {
    if (!expect(json.is_array(), json, path, "an array")) return;
    for (size_t i = 0; i < json.size() && problem_.empty(); ++i)
      read(json[i], fmt::format("{}[{}]", path, i), values.emplace_back());
  }
  template <class T>
  void read(const Json& json, const std::string& path, Named<T>& values) {
    if (!expect(json.is_object(), json, path, "an object")) return;
    for (const auto& [key, one] : json.items())
      read(one, path + "." + key, values.emplace_back(key, T()).second);
  }

 private:
  const Json* find(const char* key) const {
    if (!problem_.empty()) return nullptr;
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  std::string inside(const char* key) const { return path_.empty() ? key : path_ + "." + key; }
  bool expect(bool fits, const Json& json, const std::string& path, std::string_view what) {
    if (!fits && problem_.empty())
      problem_ =
          fmt::format("{} is {}; expected {}", path.empty() ? "it" : path,
                      json.is_null() ? "null" : std::string("of type ") + json.type_name(), what);
    return fits && problem_.empty();
  }

  const Json& json_;
  std::string path_;
  std::string& problem_;
};

template <Described<Writer> T>
Json write(T value) {
  Writer writer;
  describe(writer, value);
  return writer.take();
}

// `source` names the text in the error: a file, an option.
template <Described<Reader> T>
Result<T> read(const Json& json, std::string_view source) {
  T value;
  std::string problem;
  Reader(json, "", problem).read(json, "", value);
  if (problem.empty()) return value;
  return Error{Fault::Work, fmt::format("cannot read {}", source), problem,
               "results of another version of kiln can differ: make this one again"};
}

}  // namespace kiln::results
