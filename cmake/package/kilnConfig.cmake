# SPDX-License-Identifier: Apache-2.0
# How does a CMake project build ops with kiln and call them from C++?
#
#   find_package(kiln REQUIRED)
#   kiln_add_op_library(my_ext SOURCES add.cu ARCH "8.0;9.0" DEFINES BLOCK=256)
#   target_link_libraries(app PRIVATE my_ext)         # my_ext.h: int my_ext_my_add(const KilnTensor* a, ...)
#
#   kiln_add_op_library(NAME (SOURCES file... | PROJECT folder) [ARCH list] [DEFINES K=V...] [INCLUDES folder...]
#                       [CUDA_FLAGS flag...] [LDFLAGS flag...])
#
# NAME is the namespace of the ops too; with PROJECT it must be the name in its kiln.toml. `kiln build --release` runs at each
# build and ends in milliseconds when nothing changed.
#
# cmake -DCMAKE_PREFIX_PATH="$(python -c 'import kiln; print(kiln.cmake_prefix_path)')" finds the package.
get_filename_component(kiln_ROOT_DIR "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(kiln_EXECUTABLE "${kiln_ROOT_DIR}/bin/kiln")
set(kiln_INCLUDE_DIR "${kiln_ROOT_DIR}/include")
if(NOT EXISTS "${kiln_EXECUTABLE}")
  set(kiln_FOUND FALSE)
  set(kiln_NOT_FOUND_MESSAGE "this kiln is not whole: there is no ${kiln_EXECUTABLE}; install it again")
  return()
endif()

# The headers of kiln, for who calls libraries by kiln/abi.h alone.
if(NOT TARGET kiln::abi)
  add_library(kiln::abi INTERFACE IMPORTED)
  set_target_properties(kiln::abi PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${kiln_INCLUDE_DIR}")
endif()

function(kiln_add_op_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PROJECT" "SOURCES;ARCH;DEFINES;INCLUDES;CUDA_FLAGS;LDFLAGS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "kiln_add_op_library(${name}): what is '${arg_UNPARSED_ARGUMENTS}'?")
  endif()
  if(NOT arg_SOURCES AND NOT arg_PROJECT)
    message(FATAL_ERROR "kiln_add_op_library(${name}): SOURCES or PROJECT is missing")
  endif()
  if(arg_SOURCES AND arg_PROJECT)
    message(FATAL_ERROR "kiln_add_op_library(${name}): SOURCES and PROJECT exclude each other")
  endif()
  set(root "${CMAKE_CURRENT_BINARY_DIR}/${name}.kiln")
  set(library "${root}/lib/lib${name}.so")
  set(command "${kiln_EXECUTABLE}" build --release --name ${name} --build-dir "${root}/build" -o "${root}")
  foreach(source IN LISTS arg_SOURCES arg_PROJECT)
    get_filename_component(source "${source}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND command "${source}")
  endforeach()
  if(arg_ARCH)
    string(REPLACE ";" "," archs "${arg_ARCH}")  # a list would become several words
    list(APPEND command --arch "${archs}")
  endif()
  foreach(define IN LISTS arg_DEFINES)
    list(APPEND command -D "${define}")
  endforeach()
  foreach(folder IN LISTS arg_INCLUDES)
    get_filename_component(folder "${folder}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND command -I "${folder}")
  endforeach()
  foreach(flag IN LISTS arg_CUDA_FLAGS)
    list(APPEND command "--cuda-flag=${flag}")
  endforeach()
  foreach(flag IN LISTS arg_LDFLAGS)
    list(APPEND command "--ldflag=${flag}")
  endforeach()
  # Always run, for kiln knows better than a list of files here whether anything changed; it writes what differs.
  add_custom_target(${name}_kiln_build COMMAND ${command} BYPRODUCTS "${library}" VERBATIM
    COMMENT "kiln build --release ${name}" COMMAND_EXPAND_LISTS)
  file(MAKE_DIRECTORY "${root}/include")
  add_library(${name} SHARED IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES
    IMPORTED_LOCATION "${library}"
    IMPORTED_SONAME "lib${name}.so"
    INTERFACE_INCLUDE_DIRECTORIES "${root}/include")
  add_dependencies(${name} ${name}_kiln_build)
endfunction()
set(kiln_FOUND TRUE)
