// SPDX-License-Identifier: Apache-2.0
// Where do several machines share what they built? In a folder or on a Redis server, each asked
// within a bound of time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/env.h"
#include "sys/files.h"

namespace kiln::build {

// What a shared place has under a key: bytes that are yet to be verified, or why they cannot be an
// entry.
struct RemoteEntry {
  std::string bytes, damage;
};

class Remote {
 public:
  virtual ~Remote() = default;
  // Nothing when it has no such key; an error when it cannot be asked.
  virtual Result<std::optional<RemoteEntry>> get(const std::string& key) = 0;
  virtual Status put(const std::string& key, std::string_view bytes) = 0;
};

struct RemoteSettings {
  std::string place;   // "redis://:password@host:6379/0", or a folder
  std::string secret;  // the team's: what it did not sign is not used
  double limit_s = 0.5;
};

// KILN_CACHE_REMOTE, KILN_CACHE_SECRET (or KILN_CACHE_SECRET_FILE) and KILN_CACHE_TIMEOUT; nothing
// where the first is not set.
Result<std::optional<RemoteSettings>> remote_settings(const sys::Files& files,
                                                      const sys::Environment& env);

// Without the password: for messages.
std::string shown_place(std::string_view place);

Result<std::unique_ptr<Remote>> open_remote(sys::Files& files, const RemoteSettings& settings);

}  // namespace kiln::build
