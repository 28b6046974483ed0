# Other libraries of lightweight threads for the benchmarks: Argobots, MassiveThreads, Qthreads.
#
#   cmake --preset release -DGODWIT_PEERS_DIR=DIR     DIR/argobots, DIR/massivethreads, DIR/qthreads: checkouts of their sources, or some of
#                                                     them. They are copied, built and installed below build/release/bench/peers;
#                                                     nothing is written to DIR. Argobots needs autoconf, automake and libtool.
#
# Without it: those that CMAKE_PREFIX_PATH or the system has. Gives back bench_libraries, BENCH_<NAME>_INCLUDE, BENCH_<NAME>_LIBRARY,
# targets peer_<name> to depend on, and bench_peer_versions for the head of results. Included by CMakeLists.txt; no part of Godwit.
set(GODWIT_PEERS_DIR "" CACHE PATH "Folder of the checkouts argobots, massivethreads, qthreads: benchmarks compare with them")
set(bench_libraries "")
set(bench_peer_versions "")

function(bench_build_peer name)
  include(ExternalProject)
  set(from ${GODWIT_PEERS_DIR}/${name})
  set(prefix ${CMAKE_CURRENT_BINARY_DIR}/peers)
  set(compiler CC=${CMAKE_C_COMPILER})
  # What a checkout has generated is as good as new, whatever the times of its files say.
  set(make make -j2 ACLOCAL=: AUTOMAKE=: AUTOCONF=: AUTOHEADER=:)
  if(name STREQUAL "qthreads")
    set(configure ${CMAKE_COMMAND} -S <SOURCE_DIR> -B <BINARY_DIR> -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=${prefix}
                  -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_C_COMPILER=${CMAKE_C_COMPILER} -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER})
    set(build ${CMAKE_COMMAND} --build <BINARY_DIR> --parallel 2)
    set(install ${CMAKE_COMMAND} --install <BINARY_DIR>)
  else()
    set(configure sh -c "test -x configure || ./autogen.sh" COMMAND ./configure --prefix=${prefix} ${compiler} CFLAGS=-O3)
    set(build ${make})
    set(install ${make} install)
  endif()
  set(in_source BUILD_IN_SOURCE ON)
  if(name STREQUAL "qthreads")
    set(in_source "")
  endif()
  ExternalProject_Add(peer_${name}
    PREFIX ${CMAKE_CURRENT_BINARY_DIR}/peers/${name}
    DOWNLOAD_COMMAND ${CMAKE_COMMAND} -E copy_directory ${from} <SOURCE_DIR>
    CONFIGURE_COMMAND ${configure} BUILD_COMMAND ${build} INSTALL_COMMAND ${install} ${in_source}
    BUILD_BYPRODUCTS ${ARGN} EXCLUDE_FROM_ALL ON
    LOG_DOWNLOAD ON LOG_CONFIGURE ON LOG_BUILD ON LOG_INSTALL ON LOG_OUTPUT_ON_FAILURE ON)
endfunction()

foreach(library "ARGOBOTS abt.h abt" "MASSIVETHREADS myth/myth.h myth" "QTHREADS qthread/qthread.h qthread")
  string(REPLACE " " ";" library "${library}")
  list(GET library 0 upper)
  list(GET library 1 header)
  list(GET library 2 file)
  string(TOLOWER "${upper}" name)
  if(EXISTS "${GODWIT_PEERS_DIR}/${name}")
    set(BENCH_${upper}_INCLUDE ${CMAKE_CURRENT_BINARY_DIR}/peers/include)
    set(BENCH_${upper}_LIBRARY ${CMAKE_CURRENT_BINARY_DIR}/peers/lib/lib${file}${CMAKE_SHARED_LIBRARY_SUFFIX})
    file(MAKE_DIRECTORY ${BENCH_${upper}_INCLUDE})
    bench_build_peer(${name} ${BENCH_${upper}_LIBRARY})
    execute_process(COMMAND git -C ${GODWIT_PEERS_DIR}/${name} rev-parse --short HEAD OUTPUT_VARIABLE version
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    string(STRIP "${name} ${version}" version)
    list(APPEND bench_peer_versions "${version}")
  else()
    find_path(BENCH_${upper}_INCLUDE ${header})
    find_library(BENCH_${upper}_LIBRARY ${file})
    mark_as_advanced(BENCH_${upper}_INCLUDE BENCH_${upper}_LIBRARY)
  endif()
  if(BENCH_${upper}_INCLUDE AND BENCH_${upper}_LIBRARY)
    list(APPEND bench_libraries ${upper})
  endif()
endforeach()
if(GODWIT_PEERS_DIR AND NOT bench_peer_versions)
  message(FATAL_ERROR "GODWIT_PEERS_DIR=${GODWIT_PEERS_DIR}: there is no folder argobots, massivethreads or qthreads in it: clone them "
                      "there, or leave the option out")
endif()
list(JOIN bench_peer_versions ", " bench_peer_versions)
