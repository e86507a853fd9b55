// SPDX-License-Identifier: Apache-2.0
// Does the cache give back what it was given, and nothing else? On a disk in memory.
#include "build/cache/cache.h"

#include <gmock/gmock.h>

#include "base/hash.h"
#include "base/text.h"
#include "build/cache/dependencies.h"
#include "build/cache/key_difference.h"
#include "build/cache/redis.h"
#include "sys/fake_files.h"

namespace kiln::build {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Entry sample(const std::string& name = "a", std::string content = "machine code") {
  return {hash_hex(name),
          "compile " + name,
          {{"flags", "-O3"}},
          {{"a.o", std::move(content)}, {"log", ""}}};
}

TEST(EntryFormat, IsReadAsItWasWritten) {
  Entry entry = sample();
  auto again = read_entry(write_entry(entry), entry.key);
  ASSERT_TRUE(again) << format(again.error());
  EXPECT_EQ(again->files[0].content, "machine code");
  EXPECT_EQ(again->parts["flags"], "-O3");
}

TEST(EntryFormat, EveryDamagedByteAndEveryCutIsSeen) {
  Entry entry = sample();
  std::string bytes = write_entry(entry);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_FALSE(read_entry(damaged, entry.key)) << i;
    EXPECT_FALSE(read_entry(bytes.substr(0, i), entry.key)) << i;
  }
  EXPECT_FALSE(read_entry(bytes, hash_hex("another"))) << "renamed to another key";
}

TEST(EntryFormat, ASignatureHoldsForItsSecretKeyAndBytesAlone) {
  std::string bytes = sign("bytes", "key", "a secret of the team");
  EXPECT_EQ(*verified(bytes, "key", "a secret of the team"), "bytes");
  EXPECT_FALSE(verified(bytes, "key", "another secret"));
  EXPECT_FALSE(verified(bytes, "another key", "a secret of the team"));
  EXPECT_FALSE(verified("X" + bytes.substr(1), "key", "a secret of the team"));
  EXPECT_FALSE(verified("short", "key", "a secret of the team"));
}

class CacheTest : public ::testing::Test {
 protected:
  Cache open() { return Cache::open(files, env, "/staging/down"); }
  sys::FakeFiles files;
  sys::Environment env{{"XDG_CACHE_HOME", "/c"}};
};

TEST_F(CacheTest, GivesBackWhatItWasGiven) {
  open().put(sample());
  Origin origin;
  Cache cache = open();
  auto entry = cache.get(sample().key, origin);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->files[0].content, "machine code");
  EXPECT_EQ(origin, Origin::Local);
  EXPECT_FALSE(cache.get(hash_hex("b"), origin));
}

TEST_F(CacheTest, ADamagedEntryIsToldAndRemoved) {
  open().put(sample());
  sys::fs::path file = entry_path("/c/kiln/store", sample().key);
  files.add(file, "kiln-entry 1\nrubbish");
  Cache cache = open();
  Origin origin;
  EXPECT_FALSE(cache.get(sample().key, origin));
  EXPECT_EQ(cache.damaged(), 1);
  EXPECT_THAT(cache.notes(), ElementsAre(HasSubstr("damaged and is being rebuilt")));
  EXPECT_FALSE(files.has(file));
}

TEST_F(CacheTest, AnEntryOfAnotherVersionOfTheFormatIsNoEntry) {
  std::string bytes = write_entry(sample());
  bytes.replace(0, 13, "kiln-entry 9\n");
  files.add(entry_path("/c/kiln/store", sample().key), bytes);
  Origin origin;
  EXPECT_FALSE(open().get(sample().key, origin));
}

TEST_F(CacheTest, AFolderThatTakesNothingIsToldAndTheBuildGoesOn) {
  Cache cache = open();
  files.fail_next_write(entry_path("/c/kiln/store", sample().key), EROFS);
  cache.put(sample());
  EXPECT_THAT(cache.notes(), ElementsAre(HasSubstr("the cache cannot be written")));
}

TEST_F(CacheTest, OffMeansOff) {
  env.set("KILN_CACHE_DIR", "off");
  EXPECT_FALSE(open().usable());
  env.set("KILN_CACHE_DIR", "relative");
  EXPECT_FALSE(cache_place(env));
  env.set("KILN_CACHE_DIR", "/d");
  EXPECT_EQ(cache_place(env)->folder, "/d");
  env.set("KILN_CACHE_SIZE", "20M");
  EXPECT_EQ(cache_place(env)->limit_bytes, 20u << 20);
  for (const char* wrong : {"lots", "-1", "99999999T", "9223372036854775807K", "8388608T", "1GG",
                            "5", "5368709120", "G", "B"}) {
    env.set("KILN_CACHE_SIZE", wrong);
    EXPECT_FALSE(cache_place(env)) << wrong;
  }
  env.set("KILN_CACHE_SIZE", "0");
  EXPECT_EQ(cache_place(env)->limit_bytes, 0u);
  env.set("KILN_CACHE_SIZE", "5368709120B");
  EXPECT_EQ(cache_place(env)->limit_bytes, uint64_t{5} << 30);
  env.set("KILN_CACHE_SIZE", "8388607T");
  EXPECT_EQ(cache_place(env)->limit_bytes, uint64_t{8388607} << 40);
}

TEST_F(CacheTest, AskingForThePlaceMakesNothing) {
  EXPECT_EQ(cache_place(env)->folder, "/c/kiln/store");
  EXPECT_FALSE(files.has("/c"));
  EXPECT_EQ(make_cache_place(files, env)->folder, "/c/kiln/store");
  EXPECT_TRUE(files.has("/c/kiln/store"));
}

TEST_F(CacheTest, TheLongestUnusedGoFirst) {
  for (const char* name : {"a", "b", "c"}) open().put(sample(name));
  Origin origin;
  Cache cache = open();
  ASSERT_TRUE(cache.get(hash_hex("a"), origin));  // used last
  uint64_t one = files.state(entry_path("/c/kiln/store", hash_hex("a"))).size_bytes;
  int64_t removed = 0;
  auto left = prune(files, "/c/kiln/store", 2 * one, &removed);
  ASSERT_TRUE(left);
  EXPECT_EQ(removed, 1);
  EXPECT_TRUE(cache.get(hash_hex("a"), origin));
  EXPECT_FALSE(cache.get(hash_hex("b"), origin));
}

TEST_F(CacheTest, AFolderIsSharedByThoseWhoKnowTheSecret) {
  env.set("KILN_CACHE_REMOTE", "/shared");
  env.set("KILN_CACHE_SECRET", "0123456789abcdef");
  open().put(sample());
  ASSERT_TRUE(files.remove("/c"));  // another machine
  Origin origin;
  ASSERT_TRUE(open().get(sample().key, origin));
  EXPECT_EQ(origin, Origin::Remote);
  ASSERT_TRUE(open().get(sample().key, origin));
  EXPECT_EQ(origin, Origin::Local) << "kept here now";

  ASSERT_TRUE(files.remove("/c"));
  env.set("KILN_CACHE_SECRET", "fedcba9876543210");
  Cache stranger = open();
  EXPECT_FALSE(stranger.get(sample().key, origin));
  EXPECT_THAT(stranger.notes(), ElementsAre(HasSubstr("not signed with this team's key")));
}

TEST_F(CacheTest, AnEntryThatIsNotAsLongAsItSaysIsDamagedBeforeItIsRead) {
  open().put(sample());
  const sys::fs::path file = entry_path("/c/kiln/store", sample().key);
  for (std::string bytes :
       {*files.read(file) + "x", std::string("kiln-entry 1\n10 99999999999 1\n"), std::string()}) {
    files.add(file, bytes);
    Cache cache = open();
    Origin origin;
    EXPECT_FALSE(cache.get(sample().key, origin));
    EXPECT_EQ(cache.damaged(), 1);
  }
}

TEST_F(CacheTest, ADamagedEntryOfASharedFolderIsNotTheEndOfSharing) {
  env.set("KILN_CACHE_REMOTE", "/shared");
  env.set("KILN_CACHE_SECRET", "0123456789abcdef");
  open().put(sample("a"));
  open().put(sample("b"));
  ASSERT_TRUE(files.remove("/c"));
  const std::string key = sample("a").key;
  files.add(sys::fs::path("/shared") / key.substr(0, 2) / key, std::string(1000, '\0'));
  Cache cache = open();
  Origin origin;
  EXPECT_FALSE(cache.get(key, origin));
  EXPECT_EQ(cache.damaged(), 1);
  EXPECT_TRUE(cache.get(sample("b").key, origin)) << "the place itself answers";
  EXPECT_EQ(origin, Origin::Remote);
}

TEST_F(CacheTest, ADamagedCountDoesNotPrune) {
  open().put(sample());
  for (const char* counts :
       {R"({"bytes": 9223372036854775807})", R"({"bytes": -5})", R"({"bytes": "x"})", "[", ""}) {
    files.add("/c/kiln/store/counts.json", counts);
    EXPECT_EQ(read_counts(files, "/c/kiln/store").bytes, 0) << counts;
  }
}

TEST_F(CacheTest, SharingNeedsASecret) {
  env.set("KILN_CACHE_REMOTE", "/shared");
  Cache cache = open();
  EXPECT_THAT(cache.notes(), ElementsAre(HasSubstr("no secret")));
  EXPECT_TRUE(files.has("/staging/down"));
  EXPECT_THAT(open().notes(), IsEmpty()) << "said once";
}

TEST(Redis, AddressesAndReplies) {
  auto address = parse_redis_address("redis://:pass@host:7000/2");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "host");
  EXPECT_EQ(address->port, 7000);
  EXPECT_EQ(address->password, "pass");
  EXPECT_EQ(address->database, 2);
  EXPECT_EQ(parse_redis_address("redis://[::1]:7000")->host, "::1");
  for (const char* wrong : {"redis://", "redis://h:0", "redis://h:x", "redis://h/x", "http://h"})
    EXPECT_FALSE(parse_redis_address(wrong)) << wrong;
  EXPECT_EQ(redis_command({"GET", "a"}), "*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
  EXPECT_EQ((**parse_redis_reply("$3\r\na\r\n\r\n")).value, "a\r\n");
  EXPECT_FALSE((**parse_redis_reply("$-1\r\n")).value);
  EXPECT_TRUE((**parse_redis_reply("-ERR no\r\n")).is_error);
  for (const char* part : {"", "$3", "$3\r\nab", "+O"})
    EXPECT_FALSE(*parse_redis_reply(part)) << "more must come";
  for (const char* odd : {"$999999999999\r\n", "$x\r\n", "?\r\n", "\r\n"})
    EXPECT_FALSE(parse_redis_reply(odd)) << odd;
}

TEST(Redis, AReplyComesInPiecesOfAnySize) {
  const std::string reply = "$5\r\nab\r\nc\r\n";
  for (size_t piece = 1; piece <= reply.size(); ++piece) {
    RedisReplyReader reader;
    for (size_t at = 0; at < reply.size(); at += piece) {
      auto whole = reader.add(std::string_view(reply).substr(at, piece));
      ASSERT_TRUE(whole) << format(whole.error());
      EXPECT_EQ(*whole, at + piece >= reply.size());
    }
    EXPECT_EQ(reader.take().value, "ab\r\nc");
  }
}

TEST(Redis, ALineWithoutAnEndAndMoreThanTheReplyAreErrors) {
  for (char kind : {'$', '-', '+', ':', '?'}) {
    RedisReplyReader reader;
    bool refused = false;
    for (int i = 0; i < 100 && !refused; ++i) refused = !reader.add(std::string(100, kind));
    EXPECT_TRUE(refused) << kind;
  }
  EXPECT_FALSE(parse_redis_reply("+OK\r\n+OK\r\n"));
  EXPECT_FALSE(parse_redis_reply("$1\r\naXY"));
}

TEST(Redis, AnErrorIsShownWithoutWhatSteersATerminalAndCutShort) {
  const auto refused = parse_redis_reply("\x1b]0;x\x07" + std::string(3000, 'x') + "\r\n");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().why.find('\x1b'), std::string::npos);
  EXPECT_LT(refused.error().why.size(), 500u);
}

TEST(Remote, APasswordIsNotShown) {
  EXPECT_EQ(shown_place("redis://:hunter2@host:7000/2"), "redis://...@host:7000/2");
  EXPECT_EQ(shown_place("redis://me:hunter2@h@host"), "redis://...@host");
  EXPECT_EQ(shown_place("redis://host"), "redis://host");
  EXPECT_EQ(shown_place("/mnt/team@work"), "/mnt/team@work");
  EXPECT_EQ(parse_redis_address("redis://:hunter2@host:x").error().what.find("hunter2"),
            std::string::npos);
}

class DependenciesTest : public ::testing::Test {
 protected:
  DependenciesTest() {
    files.add("/w/a.cu",
              "#include \"b.h\"\n#  include <sys.h>\n#if __has_include(\"extra.h\")\n#endif\n");
    files.add("/w/inc2/b.h").add("/usr/include/sys.h").add_directory("/w/inc1");
    step.search = {"/w/inc1", "/w/inc2", "/usr/include"};
    step.roots = {{"/w", "/proc/self/cwd"}};
    seen = collected({{"/w/a.cu", "/w/inc2/b.h", "/usr/include/sys.h"}, {}, false});
  }
  // As the cache keeps them.
  Reads collected(const ReadFiles& read) {
    ContentHashes hashes(files);
    Collected found = collect_reads(files, hashes, step, read, "/build", INT64_MAX);
    EXPECT_TRUE(found.sound);
    return with_canonical_names(step.roots, std::move(found.reads));
  }
  std::optional<std::string> difference() {
    ContentHashes hashes(files);
    auto found = first_difference(files, hashes, with_real_names(step.roots, seen));
    return found ? std::optional(sentence(*found)) : std::nullopt;
  }
  sys::FakeFiles files;
  Step step;
  Reads seen;
};

TEST_F(DependenciesTest, HoldCanonicalNamesAndWhereNothingWas) {
  EXPECT_THAT(seen.files, Contains(Field(&ReadFile::path, "/proc/self/cwd/inc2/b.h")));
  EXPECT_THAT(seen.absent, Contains("/proc/self/cwd/b.h"));
  EXPECT_THAT(seen.absent, Contains("/proc/self/cwd/inc1/b.h"));
  EXPECT_THAT(seen.absent, Contains("/proc/self/cwd/inc1/extra.h"));
  EXPECT_THAT(seen.absent, Not(Contains("/proc/self/cwd/inc2/b.h")));
  EXPECT_FALSE(difference());
}

TEST_F(DependenciesTest, AChangedHeaderIsSeen) {
  files.add("/w/inc2/b.h", "new");
  EXPECT_EQ(difference(), "/w/inc2/b.h changed");
}

TEST_F(DependenciesTest, AHeaderThatIsGoneIsSeen) {
  ASSERT_TRUE(files.remove("/usr/include/sys.h"));
  EXPECT_EQ(difference(), "/usr/include/sys.h is gone");
}

TEST_F(DependenciesTest, AShadowingHeaderIsSeenThoughNoFileChanged) {
  files.add("/w/inc1/b.h");
  EXPECT_EQ(difference(), "/w/inc1/b.h appeared");
}

TEST_F(DependenciesTest, WhatHasIncludeAsksForIsSeen) {
  files.add("/w/inc1/extra.h");
  EXPECT_EQ(difference(), "/w/inc1/extra.h appeared");
}

TEST_F(DependenciesTest, ALibraryThatAppearsBeforeTheOneLinkedIsSeen) {
  files.add("/l2/libx.a").add_directory("/l1");
  step.kind = StepKind::Link;
  step.libraries = {"/l1", "/l2"};
  seen = collected({{"/l2/libx.a"}, {}, false});
  EXPECT_FALSE(difference());
  for (const char* name : {"/l1/libx.so", "/l1/libx.a", "/l2/libx.so"}) {
    files.add(name);
    EXPECT_EQ(difference(), std::string(name) + " appeared");
    ASSERT_TRUE(files.remove(name));
  }
}

TEST_F(DependenciesTest, WhatAnAssemblerReadsIsKnownOrNothingIs) {
  files.add("/w/inc2/data.bin", "1")
      .add("/w/a.cpp", "asm(\".incbin \\\"data.bin\\\"\");")
      .add_directory("/build");
  step.kind = StepKind::Host;
  step.writes_assembler_depfile = true;
  seen = collected({{"/w/a.cpp"}, {"/w/inc2/data.bin"}, false});
  EXPECT_FALSE(difference());
  EXPECT_THAT(seen.absent, Contains("/build/data.bin"));
  EXPECT_THAT(seen.absent, Contains("/proc/self/cwd/inc1/data.bin"));
  files.add("/w/inc2/data.bin", "2");
  EXPECT_EQ(difference(), "/w/inc2/data.bin changed");
  step.writes_assembler_depfile = false;
  seen = collected({{"/w/a.cpp"}, {}, false});
  EXPECT_EQ(difference(), "the files that asm() reads are not known");
}

TEST_F(DependenciesTest, APrecompiledHeaderCountsOnceItIsThere) {
  files.add("/w/b.cpp", "#include \"b.h\"\n").add_directory("/build");
  step.kind = StepKind::Host;
  step.source = "/w/b.cpp";
  step.writes_assembler_depfile = true;
  step.commands = {{path_word("g++"), path_word("-I/w/inc1"), path_word("-I/w/inc2")}};
  seen = collected({{"/w/b.cpp", "/w/inc2/b.h"}, {}, false});
  files.add("/w/inc2/b.h.gch", "1");
  EXPECT_EQ(difference(), "/w/inc2/b.h.gch appeared");
  seen = collected({{"/w/b.cpp", "/w/inc2/b.h"}, {}, false});
  EXPECT_FALSE(difference());
  files.add("/w/inc2/b.h.gch", "2");
  EXPECT_EQ(difference(), "/w/inc2/b.h.gch changed");
}

TEST_F(DependenciesTest, AMissingDepfileIsNeverBelieved) {
  seen = collected({{"/w/a.cu"}, {}, true});
  EXPECT_FALSE(seen.are_known());
  EXPECT_TRUE(difference());
}

TEST_F(DependenciesTest, AreTheSameInAMovedCheckout) {
  files.add("/moved/a.cu", *files.read("/w/a.cu"))
      .add("/moved/inc2/b.h")
      .add_directory("/moved/inc1");
  step.roots = {{"/moved", "/proc/self/cwd"}};
  EXPECT_FALSE(difference());
}

Json command(std::string_view line) {
  Json words = Json::array();
  for (std::string_view word : text::split(line, ' ')) words.push_back(word);
  return {{"words", words}, {"kinds", std::string(words.size(), 'o')}};
}

TEST(KeyDifference, NamesThePartThatIsNotWhatItWas) {
  const Json before = {
      {"kiln", "0.1.0"},
      {"commands", Json::array({command("gcc -E -DX=1 a.cu"), command("cicc -arch compute_90")})},
      {"compilers and environment", {{"cicc", "aa"}, {"CPATH", "CPATH=/i"}}},
      {"inputs", Json::object()},
      {"source", {{"/p/a.cu", "11"}}}};
  auto told = [&](auto change) {
    Json now = before;
    change(now);
    return what_differs(before, now);
  };
  EXPECT_EQ(told([](Json&) {}), "");
  EXPECT_EQ(told([](Json& now) { now["commands"][0] = command("gcc -E -DX=2 a.cu"); }),
            "-DX=1 is now -DX=2");
  EXPECT_EQ(told([](Json& now) { now["commands"][1] = command("cicc -arch compute_90 -fast"); }),
            "-fast is new");
  EXPECT_EQ(told([](Json& now) { now["commands"][0] = command("gcc -E a.cu"); }), "-DX=1 is gone");
  EXPECT_EQ(told([](Json& now) { now["commands"][0] = command("gcc -DX=1 -E a.cu"); }),
            "the order of the flags changed");
  EXPECT_EQ(told([](Json& now) { now["compilers and environment"]["cicc"] = "bb"; }),
            "cicc changed");
  EXPECT_EQ(told([](Json& now) { now["compilers and environment"].erase("CPATH"); }),
            "CPATH is gone");
  EXPECT_EQ(told([](Json& now) { now["source"]["/p/a.cu"] = "22"; }), "/p/a.cu changed");
  EXPECT_EQ(told([](Json& now) { now["kiln"] = "0.2.0"; }), "kiln 0.1.0 is now 0.2.0");
  EXPECT_EQ(told([](Json& now) {
              now["inputs"] = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}};
            }),
            "a is new, b is new, c is new, d is new, 1 more");
  EXPECT_EQ(what_differs(Json("damaged"), before), "");
}

TEST(Includes, AreReadInAllTheirForms) {
  EXPECT_THAT(
      include_names("#include <a/b.h> // x\n # include\"c.h\"\n#include_next <d.h>\n#define X "
                    "__has_include(<e.h>)\n"
                    "#include MACRO\n#if defined(A) && \\\n  __has_include(\"f.h\")\n"),
      ElementsAre(IncludeName{"a/b.h", false}, IncludeName{"c.h", true}, IncludeName{"d.h", false},
                  IncludeName{"e.h", false}, IncludeName{"f.h", true}));
}

}  // namespace
}  // namespace kiln::build
