# Toolchain: cross to SPARC V9 with Debian's g++-sparc64-linux-gnu, run tests under qemu-user.
# Used by the preset sparc64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR sparc64)
set(CMAKE_C_COMPILER sparc64-linux-gnu-gcc CACHE STRING "")
set(CMAKE_CXX_COMPILER sparc64-linux-gnu-g++ CACHE STRING "")
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-sparc64;-L;/usr/sparc64-linux-gnu" CACHE STRING "")
set(CMAKE_FIND_ROOT_PATH /usr/sparc64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
