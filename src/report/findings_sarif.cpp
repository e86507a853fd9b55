// SPDX-License-Identifier: Apache-2.0
// How do findings read as SARIF? (OASIS, Static Analysis Results Interchange Format 2.1.0)
#include <fmt/format.h>

#include "report/findings.h"

namespace kiln::report {
namespace {

using results::Finding;
using results::FindingLine;
using results::FindingPlace;

// As a URI has it: a blank is %20.
std::string sarif_uri(std::string_view path) {
  constexpr std::string_view kPlain = "/-._~!$&'()*+,;=@";
  std::string out;
  for (const char c : path) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || kPlain.find(c) != kPlain.npos)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

// A code host knows files by their path in the repository.
Json sarif_artifact(const std::string& file, const std::string& folder) {
  const std::string prefix = folder.ends_with('/') || folder.empty() ? folder : folder + "/";
  const bool inside = !prefix.empty() && file.starts_with(prefix);
  if (!inside && file.starts_with('/')) return {{"uri", "file://" + sarif_uri(file)}};
  return {{"uri", sarif_uri(inside ? file.substr(prefix.size()) : file)},
          {"uriBaseId", "%SRCROOT%"}};
}

Json sarif_location(const FindingPlace& place, const FindingLine& line, const std::string& folder) {
  Json region{{"startLine", std::max<int64_t>(line.line, 1)}};
  if (!line.text.empty()) region["snippet"] = {{"text", line.text}};
  Json out{{"physicalLocation",
            {{"artifactLocation", sarif_artifact(line.file, folder)}, {"region", region}}}};
  std::string text = place.action;
  if (place.thread.size() == 3 && place.block.size() == 3)
    text +=
        fmt::format(" by thread ({},{},{}) of block ({},{},{})", place.thread[0], place.thread[1],
                    place.thread[2], place.block[0], place.block[1], place.block[2]);
  if (!text.empty()) out["message"] = {{"text", text}};
  if (!place.kernel.empty())
    out["logicalLocations"] =
        Json::array({{{"fullyQualifiedName", place.kernel}, {"kind", "function"}}});
  return out;
}

Json sarif_result(const Finding& finding, const std::string& folder, const std::string& target) {
  std::string text = finding.message;
  if (!finding.advice.empty()) text += "\nFix: " + finding.advice;
  if (finding.count > 1) text += fmt::format("\nIt happened {} times.", finding.count);
  Json result{{"ruleId", finding.rule},
              {"level", finding.severity},
              {"message", {{"text", text}}},
              {"locations", Json::array()},
              {"occurrenceCount", finding.count}};
  Json related = Json::array();
  for (const FindingPlace& place : finding.places) {
    for (size_t i = 0; i < place.stack.size(); ++i) {
      Json at = sarif_location(place, place.stack[i], folder);
      if (result["locations"].empty()) {
        result["locations"].push_back(std::move(at));
        continue;
      }
      at["id"] = related.size() + 1;
      related.push_back(std::move(at));
    }
  }
  // What the host did has no line, and code hosts refuse a result without a place.
  if (result["locations"].empty() && !target.empty()) {
    const FindingPlace none;
    const FindingPlace& place = finding.places.empty() ? none : finding.places[0];
    result["locations"].push_back(sarif_location(place, {target, 1, ""}, folder));
  }
  if (!related.empty()) result["relatedLocations"] = std::move(related);
  if (finding.suppressed)
    result["suppressions"] =
        Json::array({{{"kind", "external"}, {"justification", *finding.suppressed}}});
  return result;
}

}  // namespace

std::string findings_sarif(const results::Findings& findings, const std::string& folder,
                           const std::string& target) {
  Json rules = Json::array();
  for (const results::RuleRow& row : results::rules()) {
    rules.push_back({{"id", row.name},
                     {"shortDescription", {{"text", row.title}}},
                     {"defaultConfiguration", {{"level", name_of(row.severity)}}},
                     {"properties", {{"check", name_of(row.check)}}}});
  }
  Json results = Json::array();
  for (const Finding& finding : findings.findings)
    results.push_back(sarif_result(finding, folder, target));
  const Json log{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                 {"version", "2.1.0"},
                 {"runs", Json::array({{{"tool",
                                         {{"driver",
                                           {{"name", "kiln sanitize"},
                                            {"version", KILN_VERSION_STRING},
                                            {"rules", std::move(rules)}}}}},
                                        {"columnKind", "utf16CodeUnits"},
                                        {"results", std::move(results)}}})}};
  return dump(log, 1) + "\n";
}

}  // namespace kiln::report
