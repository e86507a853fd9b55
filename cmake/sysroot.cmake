# SPDX-License-Identifier: Apache-2.0
# Which compiler and which system's headers and libraries make kiln for others? The g++ of this machine for KILN_CPU, and the
# glibc in KILN_SYSROOT, which tools/wheel --arch makes: an older one than this machine's, so that the result runs on older systems.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${KILN_CPU})
set(CMAKE_SYSROOT ${KILN_SYSROOT})
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES KILN_CPU KILN_SYSROOT)
set(triplet ${KILN_CPU}-linux-gnu)
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
# A cross compiler looks beside itself first, where a newer libc is; -B comes before that.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-B${KILN_SYSROOT}/usr/lib/${triplet}/ -L${KILN_SYSROOT}/usr/lib/${triplet} -L${KILN_SYSROOT}/lib/${triplet}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${CMAKE_EXE_LINKER_FLAGS_INIT}")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "${CMAKE_EXE_LINKER_FLAGS_INIT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
