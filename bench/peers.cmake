# Other libraries for the benchmarks: Argobots, MassiveThreads, Qthreads (threads), Lace, libfork (fork and join), SAWS (bags of tasks).
#
#   cmake --preset release -DGODWIT_PEERS_DIR=DIR     DIR/argobots, DIR/massivethreads, DIR/qthreads, DIR/lace, DIR/libfork, DIR/saws: checkouts
#                                                     of their sources, or some of them. They are copied, built and installed below
#                                                     build/release/bench/peers; nothing is written to DIR. Argobots needs autoconf, automake
#                                                     and libtool, SAWS the OpenSHMEM of Open MPI (oshcc, oshrun).
#
# Without it: those that CMAKE_PREFIX_PATH or the system has. Gives back bench_libraries, BENCH_<NAME>_INCLUDE, BENCH_<NAME>_LIBRARY,
# targets peer_<name> to depend on, and bench_peer_versions for the head of results. SAWS is no library to call: its own program for
# unbalanced tree search is built (peer_saws), for bench/saws.py. Included by CMakeLists.txt; no part of Godwit.
set(GODWIT_PEERS_DIR "" CACHE PATH "Folder of the checkouts argobots, massivethreads, qthreads, lace, libfork, saws: benchmarks compare with them")
set(bench_libraries "")
set(bench_peer_versions "")

# bench_add_peer(NAME IN_SOURCE CONFIGURE... BUILD... INSTALL... BYPRODUCTS...)
function(bench_add_peer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "IN_SOURCE" "" "CONFIGURE;BUILD;INSTALL;BYPRODUCTS")
  include(ExternalProject)
  set(in_source "")
  if(arg_IN_SOURCE)
    set(in_source BUILD_IN_SOURCE ON)
  endif()
  ExternalProject_Add(peer_${name}
    PREFIX ${CMAKE_CURRENT_BINARY_DIR}/peers/${name}
    DOWNLOAD_COMMAND ${CMAKE_COMMAND} -E copy_directory ${GODWIT_PEERS_DIR}/${name} <SOURCE_DIR>
    CONFIGURE_COMMAND ${arg_CONFIGURE} BUILD_COMMAND ${arg_BUILD} INSTALL_COMMAND ${arg_INSTALL} ${in_source}
    BUILD_BYPRODUCTS ${arg_BYPRODUCTS} EXCLUDE_FROM_ALL ON
    LOG_DOWNLOAD ON LOG_CONFIGURE ON LOG_BUILD ON LOG_INSTALL ON LOG_OUTPUT_ON_FAILURE ON)
endfunction()

function(bench_build_peer name)
  set(prefix ${CMAKE_CURRENT_BINARY_DIR}/peers)
  # What a checkout has generated is as good as new, whatever the times of its files say.
  set(make make -j2 ACLOCAL=: AUTOMAKE=: AUTOCONF=: AUTOHEADER=:)
  if(name MATCHES "^(qthreads|lace)$")
    bench_add_peer(${name} BYPRODUCTS ${ARGN}
      CONFIGURE ${CMAKE_COMMAND} -S <SOURCE_DIR> -B <BINARY_DIR> -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=${prefix}
                -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER} -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
      BUILD ${CMAKE_COMMAND} --build <BINARY_DIR> --parallel 2
      INSTALL ${CMAKE_COMMAND} --install <BINARY_DIR>)
  elseif(name STREQUAL "libfork")  # headers only
    bench_add_peer(${name} CONFIGURE ${CMAKE_COMMAND} -E true BUILD ${CMAKE_COMMAND} -E true
      INSTALL ${CMAKE_COMMAND} -E copy <SOURCE_DIR>/single_header/libfork.hpp ${prefix}/include)
  else()
    bench_add_peer(${name} IN_SOURCE BYPRODUCTS ${ARGN}
      CONFIGURE sh -c "test -x configure || ./autogen.sh" COMMAND ./configure --prefix=${prefix} CC=${CMAKE_C_COMPILER} CFLAGS=-O3
      BUILD ${make} INSTALL ${make} install)
  endif()
endfunction()

function(bench_peer_version name)
  execute_process(COMMAND git -C ${GODWIT_PEERS_DIR}/${name} rev-parse --short HEAD OUTPUT_VARIABLE version
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  string(STRIP "${name} ${version}" version)
  list(APPEND bench_peer_versions "${version}")
  set(bench_peer_versions "${bench_peer_versions}" PARENT_SCOPE)
endfunction()

# Name, header, library; libfork has none.
foreach(library "ARGOBOTS abt.h abt" "MASSIVETHREADS myth/myth.h myth" "QTHREADS qthread/qthread.h qthread" "LACE lace.h lace" "LIBFORK libfork.hpp")
  string(REPLACE " " ";" library "${library}")
  list(POP_FRONT library upper header file)
  string(TOLOWER "${upper}" name)
  if(name STREQUAL "libfork" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
    message(STATUS "Benchmarks without libfork: it needs std::source_location, which clang has from 16 on")
    continue()
  endif()
  set(suffix ${CMAKE_SHARED_LIBRARY_SUFFIX})
  if(name STREQUAL "lace")
    set(suffix ${CMAKE_STATIC_LIBRARY_SUFFIX})
  endif()
  if(EXISTS "${GODWIT_PEERS_DIR}/${name}")
    set(BENCH_${upper}_INCLUDE ${CMAKE_CURRENT_BINARY_DIR}/peers/include)
    file(MAKE_DIRECTORY ${BENCH_${upper}_INCLUDE})
    if(file)
      set(BENCH_${upper}_LIBRARY ${CMAKE_CURRENT_BINARY_DIR}/peers/lib/lib${file}${suffix})
    endif()
    bench_build_peer(${name} ${BENCH_${upper}_LIBRARY})
    bench_peer_version(${name})
  else()
    find_path(BENCH_${upper}_INCLUDE ${header})
    mark_as_advanced(BENCH_${upper}_INCLUDE)
    if(file)
      find_library(BENCH_${upper}_LIBRARY ${file})
      mark_as_advanced(BENCH_${upper}_LIBRARY)
    endif()
  endif()
  if(BENCH_${upper}_INCLUDE AND (BENCH_${upper}_LIBRARY OR NOT file))
    list(APPEND bench_libraries ${upper})
  endif()
endforeach()
if(EXISTS "${GODWIT_PEERS_DIR}/saws")
  find_program(BENCH_OSHCC oshcc)
  mark_as_advanced(BENCH_OSHCC)
  if(BENCH_OSHCC)
    set(header ${CMAKE_CURRENT_SOURCE_DIR}/peers/saws_shmem14.h)
    set(flags "-w -fcommon -O3 -msse4.2 -include ${header}")
    bench_add_peer(saws IN_SOURCE CONFIGURE ${CMAKE_COMMAND} -E true
      BUILD make -C examples/uts "GCFLAGS=${flags} -D_GNU_SOURCE" "GCXXFLAGS=${flags}" PMI_LIB= uts-scioto
      INSTALL ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/peers/bin COMMAND
              ${CMAKE_COMMAND} -E copy examples/uts/uts-scioto ${CMAKE_CURRENT_BINARY_DIR}/peers/bin/saws-uts)
    set_target_properties(peer_saws PROPERTIES EXCLUDE_FROM_ALL OFF)  # nothing depends on it
    bench_peer_version(saws)
  endif()
endif()
if(GODWIT_PEERS_DIR AND NOT bench_peer_versions AND NOT EXISTS "${GODWIT_PEERS_DIR}/saws"
   AND NOT EXISTS "${GODWIT_PEERS_DIR}/itoyori" AND NOT EXISTS "${GODWIT_PEERS_DIR}/NPB-CPP")  # these are for scripts beside this one
  message(FATAL_ERROR "GODWIT_PEERS_DIR=${GODWIT_PEERS_DIR}: there is no folder argobots, massivethreads, qthreads, lace, libfork, saws, itoyori "
                      "or NPB-CPP in it: clone some there, or leave the option out")
endif()
list(JOIN bench_peer_versions ", " bench_peer_versions)
