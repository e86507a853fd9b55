# SPDX-License-Identifier: Apache-2.0
# Which sources stand in for libcudart's names in the runtime archive? Sets KILN_CUDART_SOURCES (front.cpp is not among them).
# The sections of a name are its own: link with -Wl,--gc-sections, compile the .cpp with -ffunction-sections -fdata-sections.
set(KILN_CUDART_SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/cudart_trampoline.S
    ${CMAKE_CURRENT_LIST_DIR}/cudart_convert.cpp
    ${CMAKE_CURRENT_LIST_DIR}/refused_library.cpp)
# cmake does not follow the includes of an assembler file under every generator.
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/cudart_trampoline.S PROPERTIES OBJECT_DEPENDS
    "${CMAKE_CURRENT_LIST_DIR}/cudart.def;${CMAKE_CURRENT_LIST_DIR}/gpu_libraries.def;${CMAKE_CURRENT_LIST_DIR}/front_entry.h;${CMAKE_CURRENT_LIST_DIR}/cudart_trampoline_x86_64.inc;${CMAKE_CURRENT_LIST_DIR}/cudart_trampoline_aarch64.inc")

if(KILN_TESTS)
  # The trampolines without the front: the test program supplies kiln_front_target.
  add_library(kiln_cudart STATIC ${KILN_CUDART_SOURCES})
  target_link_libraries(kiln_cudart PUBLIC kiln_flags)
  target_include_directories(kiln_cudart PUBLIC ${CMAKE_CURRENT_LIST_DIR})
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_FOUND)
    target_include_directories(kiln_cudart SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
  endif()
  kiln_unit_tests(cudart kiln_cudart)
  # It declares CUDA's functions with types of its own.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/tests/unit/cudart/trampoline_test.cpp PROPERTIES
                              SKIP_UNITY_BUILD_INCLUSION ON)

  # The calls of the test once more for the other CPU, where a cross compiler and qemu are there.
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set(other x86_64)
  else()
    set(other aarch64)
  endif()
  find_program(KILN_CROSS_CXX ${other}-linux-gnu-g++)
  find_program(KILN_CROSS_RUN NAMES qemu-${other}-static qemu-${other})
  if(KILN_CROSS_CXX AND KILN_CROSS_RUN)
    set(calls ${CMAKE_CURRENT_BINARY_DIR}/trampoline_calls_${other})
    set(cross_sources ${CMAKE_SOURCE_DIR}/tests/unit/cudart/cross/main.cpp ${KILN_CUDART_SOURCES})
    add_custom_command(OUTPUT ${calls}
      COMMAND ${KILN_CROSS_CXX} -std=c++17 -O2 -static-libstdc++ -static-libgcc -Wall -Wextra -Werror -I${CMAKE_CURRENT_LIST_DIR}
              -I${CMAKE_SOURCE_DIR}/tests/unit/cudart -o ${calls} ${cross_sources}
      DEPENDS ${cross_sources} ${CMAKE_SOURCE_DIR}/tests/unit/cudart/trampoline_calls.h
              ${CMAKE_CURRENT_LIST_DIR}/cudart.def ${CMAKE_CURRENT_LIST_DIR}/front_entry.h
              ${CMAKE_CURRENT_LIST_DIR}/cudart_trampoline_${other}.inc
      VERBATIM)
    add_custom_target(cudart_calls_${other} ALL DEPENDS ${calls})
    add_test(NAME unit.cudart.${other} COMMAND ${KILN_CROSS_RUN} -L /usr/${other}-linux-gnu ${calls})
    set_tests_properties(unit.cudart.${other} PROPERTIES TIMEOUT 60)
  endif()
endif()
