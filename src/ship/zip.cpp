// SPDX-License-Identifier: Apache-2.0
// How are files packed into a zip so that the same files always make the same bytes?
// (APPNOTE.TXT 6.3, 4.3)
#include "ship/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <chrono>

namespace kiln::ship {

namespace {

constexpr uint32_t kLocal = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50;
constexpr uint16_t kNeeds = 20, kMadeByUnix = 3 << 8 | 20, kUtf8 = 1 << 11, kDeflate = 8;
constexpr uint64_t kMost = 0xffffffff;

void put16(std::string& out, uint32_t value) {
  out += static_cast<char>(value);
  out += static_cast<char>(value >> 8);
}
void put32(std::string& out, uint64_t value) {
  put16(out, static_cast<uint32_t>(value));
  put16(out, static_cast<uint32_t>(value >> 16));
}

struct DosTime {
  uint16_t time = 0, date = 0;
};

DosTime dos_time(int64_t seconds) {
  using namespace std::chrono;
  sys_seconds at{std::chrono::seconds(seconds)};
  year_month_day day(floor<days>(at));
  if (int(day.year()) < 1980) return {0, 1 << 5 | 1};
  hh_mm_ss clock(at - floor<days>(at));
  return {static_cast<uint16_t>(clock.hours().count() << 11 | clock.minutes().count() << 5 |
                                clock.seconds().count() / 2),
          static_cast<uint16_t>((int(day.year()) - 1980) << 9 | unsigned(day.month()) << 5 |
                                unsigned(day.day()))};
}

Result<std::string> deflated(const std::string& content) {
  z_stream stream{};
  Error failed{Fault::Bug, "cannot compress a file", "zlib has no memory", ""};
  if (deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK) return failed;
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  int state = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (state != Z_STREAM_END) return failed;
  return out;
}

}  // namespace

Result<std::string> write_zip(const std::vector<PackedFile>& files, int64_t seconds) {
  std::string out, directory;
  DosTime time = dos_time(seconds);
  if (files.size() > 0xffff)
    return Error{Fault::Work, "cannot pack this many files",
                 fmt::format("{}; a zip can hold 65,535", files.size()),
                 "leave some out of the package"};
  for (const PackedFile& file : files) {
    if (file.content.size() > kMost / 2 || out.size() > kMost / 2)
      return Error{Fault::Work, fmt::format("cannot pack {}", file.name),
                   "a wheel of more than 2 GiB",
                   "build for fewer architectures, or ship large data separately"};
    TRY(std::string packed, deflated(file.content));
    uLong crc = crc32(0, reinterpret_cast<const Bytef*>(file.content.data()),
                      static_cast<uInt>(file.content.size()));
    std::string common;
    put16(common, kNeeds);
    put16(common, kUtf8);
    put16(common, kDeflate);
    put16(common, time.time);
    put16(common, time.date);
    put32(common, crc);
    put32(common, packed.size());
    put32(common, file.content.size());
    put16(common, static_cast<uint32_t>(file.name.size()));
    put16(common, 0);  // extra
    put32(directory, kEntry);
    put16(directory, kMadeByUnix);
    directory += common;
    put16(directory, 0);  // comment
    put16(directory, 0);  // disk
    put16(directory, 0);  // internal attributes
    put32(directory, uint64_t{file.executable ? 0100755u : 0100644u} << 16);
    put32(directory, out.size());
    directory += file.name;
    put32(out, kLocal);
    out.append(common).append(file.name).append(packed);
  }
  uint64_t start = out.size();
  out += directory;
  put32(out, kEnd);
  put32(out, 0);
  put16(out, static_cast<uint32_t>(files.size()));
  put16(out, static_cast<uint32_t>(files.size()));
  put32(out, directory.size());
  put32(out, start);
  put16(out, 0);
  return out;
}

}  // namespace kiln::ship
