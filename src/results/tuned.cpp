// SPDX-License-Identifier: Apache-2.0
// How is the file of tuned configurations written and read?
#include "results/tuned.h"

#include "results/fields.h"

namespace kiln::results {

template <class Fields>
static void describe(Fields& field, TunedEntry& entry) {
  field("op", entry.op);
  field("arguments", entry.arguments);
  field("gpu", entry.gpu);
  field("compute", entry.compute);
  field("defines", entry.defines);
  field("us", entry.us);
  field("date", entry.date);
  field("kiln", entry.kiln);
  field("with", entry.with);
  field("arch", entry.arch);
}

template <class Fields>
static void describe(Fields& field, TunedFile& file) {
  field("kiln_tuned", file.format);
  field("entries", file.entries);
}

Json to_json(const TunedEntry& entry) { return write(entry); }

Json to_json(const TunedFile& file) { return write(file); }

Result<TunedFile> read_tuned(const Json& json, std::string_view source) {
  const auto bad = [&](std::string why) {
    return Error{Fault::Usage, fmt::format("cannot read {}", source), std::move(why),
                 "kiln tune writes it again"};
  };
  if (!json.is_object() || !json.contains("kiln_tuned"))
    return bad("it is not a file of kiln tune");
  if (json["kiln_tuned"] != kTunedFormat) return bad("it was written by another version of kiln");
  Result<TunedFile> file = read<TunedFile>(json, source);
  if (!file) return bad(file.error().why);
  return file;
}

}  // namespace kiln::results
