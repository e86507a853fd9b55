// SPDX-License-Identifier: Apache-2.0
// Does each fault of a wheel give its finding, and a good wheel none?
#include "ship/audit.h"

#include <gmock/gmock.h>

#include "ship/wheel.h"

namespace kiln::ship {
namespace {

using ::testing::HasSubstr;

LibraryView good_library() {
  LibraryView library;
  library.member = "my_ext/libmy_ext.so";
  library.bytes = 90'000;
  library.needs.machine = "aarch64";
  library.needs.system.tag = "manylinux_2_17_aarch64";
  library.needs.system.glibc = "2.17";
  library.needs.needed = {"libc.so.6"};
  library.needs.images = {"sm_80", "compute_80"};
  library.needs.driver = {580, 580, "", ""};
  return library;
}

WheelView good_wheel() {
  WheelView wheel;
  wheel.file_name = "my_ext-0.1.0-py3-none-manylinux_2_17_aarch64.whl";
  wheel.name = parse_wheel_name(wheel.file_name);
  wheel.bytes = 60'000;
  wheel.dist_info = "my_ext-0.1.0.dist-info";
  wheel.libraries = {good_library()};
  wheel.members = {{"my_ext/__init__.py", 10, 8, "sha256=a"},
                   {"my_ext/libmy_ext.so", 90'000, 40'000, "sha256=b"}};
  wheel.texts["METADATA"] =
      "Metadata-Version: 2.1\nName: my-ext\nVersion: 0.1.0\n\nText\nName: other\n";
  wheel.texts["WHEEL"] = "Wheel-Version: 1.0\nTag: py3-none-manylinux_2_17_aarch64\n";
  wheel.texts["RECORD"] = "my_ext/__init__.py,sha256=a,10\nmy_ext/libmy_ext.so,sha256=b,90000\n";
  return wheel;
}

// The one finding of that area that is no praise.
Finding complaint(const WheelView& wheel, const std::string& area) {
  std::vector<Finding> found;
  for (const Finding& finding : audit(wheel))
    if (finding.verdict != Verdict::Good) found.push_back(finding);
  EXPECT_EQ(found.size(), 1u) << text_of(found);
  if (found.size() != 1) return {};
  EXPECT_EQ(found[0].area, area);
  return found[0];
}

TEST(Audit, AGoodWheelHasNoComplaint) {
  for (const Finding& finding : audit(good_wheel()))
    EXPECT_EQ(finding.verdict, Verdict::Good) << finding.text;
}

TEST(Audit, ATagThatTheLibraryDoesNotKeep) {
  WheelView wheel = good_wheel();
  wheel.libraries[0].needs.system.tag = "manylinux_2_34_aarch64";
  wheel.libraries[0].needs.system.reasons = {"GLIBC_2.34"};
  EXPECT_THAT(complaint(wheel, "platform").text, HasSubstr("GLIBC_2.34"));
}

TEST(Audit, WhatTheTagRestsOnIsNotAlwaysGlibc) {
  WheelView wheel = good_wheel();
  const auto said = [&] {
    for (const Finding& finding : audit(wheel))
      if (finding.area == "platform") return finding.text;
    return std::string();
  };
  wheel.libraries[0].needs.system.glibc = "2.16";
  wheel.libraries[0].needs.system.reasons = {"GLIBCXX_3.4.29"};
  EXPECT_THAT(said(), HasSubstr("needs GLIBCXX_3.4.29"));
  wheel.libraries[0].needs.system.reasons.clear();
  EXPECT_THAT(said(), HasSubstr("needs GLIBC_2.16"));
}

TEST(Audit, ALibraryOfAnotherCpu) {
  WheelView wheel = good_wheel();
  wheel.libraries[0].needs.machine = "x86_64";
  EXPECT_THAT(complaint(wheel, "platform").text, HasSubstr("is for x86_64"));
}

TEST(Audit, AMemberThatIsNoPlainFile) {
  WheelView wheel = good_wheel();
  wheel.members[0].oddity = "a symbolic link to /etc/passwd";
  Finding found = complaint(wheel, "files");
  EXPECT_EQ(found.verdict, Verdict::Fault);
  EXPECT_THAT(found.text, HasSubstr("my_ext/__init__.py is a symbolic link to /etc/passwd"));
}

TEST(Audit, TorchIsBundled) {
  WheelView wheel = good_wheel();
  wheel.members.push_back({"my_ext.libs/libtorch_cpu-1a2b.so", 1, 1, "sha256=c"});
  wheel.texts["RECORD"] += "my_ext.libs/libtorch_cpu-1a2b.so,sha256=c,1\n";
  Finding found = complaint(wheel, "bundled");
  EXPECT_EQ(found.verdict, Verdict::Fault);
  EXPECT_THAT(found.text, HasSubstr("libtorch_cpu-1a2b.so"));
}

TEST(Audit, CudaIsBundled) {
  WheelView wheel = good_wheel();
  wheel.members.push_back({"my_ext.libs/libcudart.so.13", 1, 1, "sha256=c"});
  wheel.texts["RECORD"] += "my_ext.libs/libcudart.so.13,sha256=c,1\n";
  EXPECT_THAT(complaint(wheel, "bundled").text, HasSubstr("libcudart"));
}

TEST(Audit, TorchSymbolsBindIt) {
  WheelView wheel = good_wheel();
  wheel.libraries[0].torch_symbols = {"_ZN3c104impl3cow14delete_contextEPv"};
  EXPECT_THAT(complaint(wheel, "torch").text, HasSubstr("2.1"));
}

TEST(Audit, PythonSymbolsContradictTheTag) {
  WheelView wheel = good_wheel();
  wheel.libraries[0].python_symbols = {"PyLong_FromLong"};
  EXPECT_EQ(complaint(wheel, "Python").verdict, Verdict::Fault);
}

TEST(Audit, RpathOfTheBuilder) {
  WheelView wheel = good_wheel();
  wheel.libraries[0].needs.runpath = "$ORIGIN/../lib:/opt/torch/lib";
  EXPECT_THAT(complaint(wheel, "libraries").text, HasSubstr("/opt/torch/lib"));
}

TEST(Audit, ALibraryThatNobodyBrings) {
  WheelView wheel = good_wheel();
  wheel.libraries[0].needs.system.outside = {"libopenblas.so.0"};
  EXPECT_EQ(complaint(wheel, "libraries").verdict, Verdict::Fault);
  wheel.libraries[0].needs.system.outside = {"libcublas.so.13"};
  EXPECT_EQ(complaint(wheel, "libraries").verdict, Verdict::Note);
}

TEST(Audit, NoPtx) {
  WheelView wheel = good_wheel();
  wheel.libraries[0].needs.images = {"sm_80"};
  EXPECT_THAT(complaint(wheel, "GPUs").text, HasSubstr("no PTX"));
}

TEST(Audit, RecordLies) {
  WheelView wheel = good_wheel();
  wheel.members[0].hash = "sha256=z";
  EXPECT_THAT(complaint(wheel, "record").text, HasSubstr("__init__.py"));
  wheel = good_wheel();
  wheel.members.push_back({"my_ext/new.py", 1, 1, "sha256=c"});
  EXPECT_THAT(complaint(wheel, "record").text, HasSubstr("not in RECORD"));
  wheel = good_wheel();
  wheel.texts["RECORD"] += "my_ext/gone.py,sha256=c,1\n";
  EXPECT_THAT(complaint(wheel, "record").text, HasSubstr("gone.py"));
}

TEST(Audit, StrayAndStrangeFiles) {
  for (const char* name : {"my_ext/__pycache__/a.pyc", "my_ext/add.o", "tests/test_a.py",
                           "my_ext/a:b.py", "My_ext/__init__.py"}) {
    WheelView wheel = good_wheel();
    wheel.members.push_back({name, 1, 1, "sha256=c"});
    wheel.texts["RECORD"] += std::string(name) + ",sha256=c,1\n";
    complaint(wheel, "files");
  }
}

TEST(Audit, NamesThatPypiRefuses) {
  WheelView wheel = good_wheel();
  wheel.file_name = "my_ext-0.1.0+cu130-py3-none-manylinux_2_17_aarch64.whl";
  wheel.name = parse_wheel_name(wheel.file_name);
  wheel.texts["METADATA"] = "Name: my-ext\nVersion: 0.1.0+cu130\n";
  EXPECT_THAT(complaint(wheel, "name").text, HasSubstr("local version"));
  wheel = good_wheel();
  wheel.file_name = "my_ext-0.1.0-py3-none-linux_aarch64.whl";
  wheel.name = parse_wheel_name(wheel.file_name);
  wheel.texts["WHEEL"] = "Tag: py3-none-linux_aarch64\n";
  EXPECT_THAT(complaint(wheel, "platform").text, HasSubstr("PyPI rejects"));
  wheel = good_wheel();
  wheel.texts["METADATA"] = "Name: another\nVersion: 0.1.0\n";
  EXPECT_THAT(complaint(wheel, "name").text, HasSubstr("METADATA says another"));
  EXPECT_FALSE(parse_wheel_name("a-1.whl").valid);
  EXPECT_FALSE(parse_wheel_name("a-1-py3-none-any.zip").valid);
}

TEST(Audit, TooLargeAndNotStripped) {
  WheelView wheel = good_wheel();
  wheel.bytes = 200ull << 20;
  EXPECT_EQ(complaint(wheel, "size").verdict, Verdict::Fault);
  wheel = good_wheel();
  wheel.libraries[0].symbol_table_bytes = 20'000;
  EXPECT_EQ(complaint(wheel, "size").verdict, Verdict::Doubt);
}

}  // namespace
}  // namespace kiln::ship
