# SPDX-License-Identifier: Apache-2.0
# kiln_module(NAME [SOURCES ...] [USES modules...] [LIBRARIES targets...]): a static library kiln_NAME from src/NAME/*.cpp.
# Its unit tests are tests/unit/NAME/*.cpp; they become the test program test_NAME.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
# src/base/fmt.cpp compiles fmt 9 once for all; a later one has other names inside and stays a header.
if(fmt_VERSION VERSION_LESS 10)
  set_target_properties(fmt::fmt-header-only PROPERTIES INTERFACE_COMPILE_DEFINITIONS "")
endif()
if(KILN_TESTS)
  find_package(GTest REQUIRED)
endif()

add_library(kiln_flags INTERFACE)
if(KILN_QUICK)
  # For people who want to use kiln: a warning is none of theirs, and must not stop the first build.
  target_compile_options(kiln_flags INTERFACE -w)
elseif(KILN_UNITY)
  # Where files are compiled together, names of one shadow those of the next, and types of a file are as if of a header.
  target_compile_options(kiln_flags INTERFACE -Wall -Wextra -Werror -Wno-subobject-linkage)
else()
  target_compile_options(kiln_flags INTERFACE -Wall -Wextra -Wshadow -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(kiln_flags INTERFACE -Wno-unknown-pragmas)  # GCC ivdep; after -Wall, which turns it on
endif()
# GCC 12 warns of its own std::string operator+ (GCC PR 105329).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(kiln_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
target_include_directories(kiln_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/runtime/include)
target_compile_definitions(kiln_flags INTERFACE KILN_VERSION_STRING="${KILN_VERSION}")
target_link_libraries(kiln_flags INTERFACE Threads::Threads)
if(NOT KILN_SHIPS)
  # What is built to be tested stops at an index behind a container's end, in every test.
  target_compile_definitions(kiln_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()
if(KILN_ASAN STREQUAL "thread")
  # Fences are the kernels' own: TSan does not understand them and warns.
  target_compile_options(kiln_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer -g1 -Wno-tsan)
  target_link_options(kiln_flags INTERFACE -fsanitize=thread)
elseif(KILN_ASAN)
  target_compile_options(kiln_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1)
  target_link_options(kiln_flags INTERFACE -fsanitize=address,undefined)
endif()

# GoogleTest's headers take longer to compile than most tests.
if(KILN_TESTS)
  # A program as they are: those of a library are not compiled as position independent programs.
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_headers.cpp CONTENT "int main() { return 0; }\n")
  add_executable(kiln_test_headers ${CMAKE_BINARY_DIR}/test_headers.cpp)
  target_link_libraries(kiln_test_headers PRIVATE kiln_flags GTest::gtest GTest::gmock)
  target_compile_options(kiln_test_headers PRIVATE -O0)
  target_compile_definitions(kiln_test_headers PRIVATE KILN_TEST_DATA="${CMAKE_SOURCE_DIR}/tests")
  target_precompile_headers(kiln_test_headers PRIVATE <gtest/gtest.h> <gmock/gmock.h>)
endif()

function(kiln_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LIBRARIES" ${ARGN})
  if(NOT ARG_SOURCES)
    file(GLOB_RECURSE ARG_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  add_library(kiln_${name} STATIC ${ARG_SOURCES})
  list(TRANSFORM ARG_USES PREPEND kiln_)
  target_link_libraries(kiln_${name} PUBLIC kiln_flags ${ARG_USES} ${ARG_LIBRARIES})
  # Most of a source's compile time goes to the headers that they share.
  if(KILN_UNITY)
    set(together 16)
    if(KILN_QUICK OR NOT KILN_SHIPS)
      set(together 40)
    endif()
    set_target_properties(kiln_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${together})
  endif()
  # Kernels take the time of a test; the rest of it takes longer to compile well than to run. A first run needs even less.
  if((KILN_QUICK OR NOT KILN_SHIPS) AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT name MATCHES "^(engine|watch)$")
    target_compile_options(kiln_${name} PRIVATE $<IF:$<BOOL:${KILN_QUICK}>,-Og,-O1>)
  endif()
  # The engine's library has of these what it calls, and no more: much of them is for the command.
  if(name MATCHES "^(base|ptx|binary|results|report)$")
    target_compile_options(kiln_${name} PRIVATE -ffunction-sections -fdata-sections)
  endif()
  kiln_unit_tests(${name} kiln_${name})
endfunction()

# kiln_static_libstdcxx(TARGET): what ships runs also where libstdc++ is older. libgcc stays shared: a static one of GCC 12
# asks for _dl_find_object of glibc 2.35. The libstdc++.a asks an older glibc (cmake/sysroot.cmake) for what that does not have.
function(kiln_static_libstdcxx target)
  if(KILN_ASAN)
    return()
  endif()
  target_link_options(${target} PRIVATE -static-libstdc++)
  if(KILN_SYSROOT)
    target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/old_glibc.c)
    target_link_options(${target} PRIVATE -Wl,--wrap=exp,--wrap=exp2,--wrap=log,--wrap=log2,--wrap=pow)
  endif()
endfunction()

# kiln_unit_tests(NAME libraries...): tests/unit/NAME/*.cpp as test_NAME, one ctest entry. NAME_x86-64-v3 has the tests
# of NAME, as they were compiled for it: the level is that of the code under test.
function(kiln_unit_tests name)
  string(REGEX REPLACE "_x86-64-v[0-9]$" "" folder ${name})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/${folder}/*.cpp)
  if(NOT KILN_TESTS OR NOT sources)
    return()
  endif()
  if(NOT folder STREQUAL name)
    set(sources $<TARGET_OBJECTS:test_${folder}>)
  endif()
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE ${ARGN} GTest::gtest GTest::gmock GTest::gtest_main)
  # Tests are compiled more often than they run long: the code under test keeps its own optimisation.
  target_compile_options(test_${name} PRIVATE -O0)
  target_compile_definitions(test_${name} PRIVATE KILN_TEST_DATA="${CMAKE_SOURCE_DIR}/tests")
  if(folder STREQUAL name)
    target_precompile_headers(test_${name} REUSE_FROM kiln_test_headers)
  endif()
  if(KILN_UNITY)
    set(together 8)
    if(NOT KILN_SHIPS)
      set(together 24)
    endif()
    set_target_properties(test_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${together})
  endif()
  # Under a sanitizer the engine's take minutes: in parts, so that every core has some.
  if(KILN_ASAN AND name STREQUAL "engine")
    foreach(part RANGE 3)
      add_test(NAME unit.${name}.${part} COMMAND test_${name})
      set_tests_properties(unit.${name}.${part} PROPERTIES
                           ENVIRONMENT "GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${part}")
    endforeach()
  else()
    add_test(NAME unit.${name} COMMAND test_${name})
  endif()
endfunction()
