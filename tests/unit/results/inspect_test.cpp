// SPDX-License-Identifier: Apache-2.0
// Does the JSON of an inspected file say "not there" by null or by a missing key, as documented?
#include <gmock/gmock.h>

#include "results/inspect/code.h"
#include "results/inspect/kernel.h"
#include "results/inspect/overview.h"
#include "results/inspect/symbols.h"

namespace kiln::results {
namespace {

TEST(InspectJson, AnOverviewOfNothing) {
  const Json json = to_json(Overview{});
  for (const char* key : {"member", "machine", "compiler"}) EXPECT_EQ(json[key], Json()) << key;
  EXPECT_EQ(json["driver"], (Json{{"sass", nullptr}, {"ptx", nullptr}}));
  EXPECT_EQ(json["faults"], Json::array());
}

TEST(InspectJson, FaultsOfImagesComeBeforeThoseOfKernels) {
  Overview file;
  file.image_faults = {"a"};
  file.kernel_faults = {"b"};
  file.here = {{"9.0", "H100", Service::Jit, "", 1}};
  const Json json = to_json(file);
  EXPECT_EQ(json["faults"], (Json{"a", "b"}));
  EXPECT_EQ(json["here"][0],
            (Json{{"arch", "9.0"}, {"service", "jit"}, {"by", nullptr}, {"jit_containers", 1}}));
}

TEST(InspectJson, AKernelWithoutBoundsOnAnUnknownGpu) {
  KernelFacts kernel;
  Json json = to_json(kernel);
  for (const char* key : {"max_threads", "required_threads", "cluster", "min_blocks", "occupancy"})
    EXPECT_EQ(json[key], Json()) << key;
  kernel.max_threads = {256, 1, 1};
  kernel.fit = Fit{8, 256, 0.5, "registers", 64};
  json = to_json(kernel);
  EXPECT_EQ(json["max_threads"], (Json{256, 1, 1}));
  EXPECT_EQ(json["occupancy"]["warps"], 64);
}

TEST(InspectJson, ALineOfSassHasOnlyTheKeysThatAreKnown) {
  Listing listing{"_Z1fv", "f()", "sm_90", {"", "a.cu"}, {SassLine{}}, true};
  Json line = to_json(listing)["lines"][0];
  for (const char* key : {"label", "target", "live", "source", "ptx_line"})
    EXPECT_FALSE(line.contains(key)) << key;
  EXPECT_EQ(line["control"]["write_barrier"], Json());
  listing.lines[0].source = {{1, 7, ""}};
  listing.lines[0].live_registers = 3;
  listing.lines[0].control.wait_mask = 0b101;
  line = to_json(listing)["lines"][0];
  EXPECT_EQ(line["source"][0], (Json{{"file", "a.cu"}, {"line", 7}, {"function", nullptr}}));
  EXPECT_EQ(line["live"], (Json{{"registers", 3}, {"predicates", 0}, {"uniform", 0}}));
  EXPECT_EQ(line["control"]["waits"], (Json{0, 2}));
}

TEST(InspectJson, TablesOfSymbolsAreThereWhenTheyWereRead) {
  Symbols symbols;
  EXPECT_FALSE(to_json(symbols).contains("symtab"));
  symbols.dynamic = {{'T', "f", "f()", "", false, 16, 8, 2, 1, 2, "12"}};
  EXPECT_EQ(to_json(symbols)["symtab"][0]["visibility"], "HIDDEN");  // an object file has no others
  symbols.libraries.resize(2);  // the file itself, and one that was not found
  EXPECT_EQ(to_json(symbols)["dynsym"][0]["type"], "FUNC");
  EXPECT_EQ(to_json(symbols)["libraries"][0]["found_by_loader"], false);
}

}  // namespace
}  // namespace kiln::results
