// SPDX-License-Identifier: Apache-2.0
// How are files read and written that others may have chosen, filled or want to change?
#pragma once

#include "sys/files.h"

namespace kiln::sys {

// What may be read of a path that a binary, another user or another machine has chosen or filled.
struct ReadLimit {
  uint64_t max_bytes = 0;
  bool own_only = false;  // refuse what another user (save root) owns or may write to
};

// A regular file whose last part is not a link, of at most max_bytes. Pipes and devices are not
// opened, so that nothing waits and nothing is set off.
Result<std::string> read_limited(const Files& files, const fs::path& path, const ReadLimit& limit);
// The first bytes of such a file, fewer where it has no more.
Result<std::string> read_beginning(const Files& files, const fs::path& path, size_t bytes);

// As Files::write. Whatever the umask, only this user may write to the file and to the folders made
// for it.
Status write_protected(Files& files, const fs::path& path, std::string_view content,
                       Durable durable);

// As Files::write for a file that the user made: links to it, its mode and its owner stay.
Status rewrite(Files& files, const fs::path& path, std::string_view content);

}  // namespace kiln::sys
