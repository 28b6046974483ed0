# Finds every MPI on the machine: find_package(GodwitMpis). CMake's own FindMPI finds one.
#
# Reads GODWIT_MPI_COMPILERS, a list of compiler wrappers; empty: mpicxx, mpicxx.openmpi and mpicxx.mpich, as
# far as they exist. A wrapper is only asked for its flags: everything is compiled with the project's own
# compiler. Gives GodwitMpis_FAMILIES (of openmpi, mpich, mvapich, intelmpi; the first wrapper of a family
# wins), and per family FAMILY the target GodwitMpis::FAMILY and the variables
#   GodwitMpis_FAMILY_COMPILER   the wrapper          GodwitMpis_FAMILY_VERSION    "4.1.4"
#   GodwitMpis_FAMILY_LAUNCHER   its mpirun or mpiexec, or ...-NOTFOUND
# and GodwitMpis_REJECTED, one line per wrapper that is there but of no use. Used by src/transport/mpi.

# The flags of WRAPPER that matter to C code, in the variables OUT_includes, OUT_defines, OUT_libraries.
function(godwit_mpi_flags wrapper out)
  set(found FALSE)
  foreach(options "--showme:compile;--showme:link" "-compile_info;-link_info" "-show;-show")  # Open MPI, MPICH
    list(GET options 0 compile_option)
    list(GET options 1 link_option)
    execute_process(COMMAND ${wrapper} ${compile_option} RESULT_VARIABLE compile_status
                    OUTPUT_VARIABLE compile_line ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    execute_process(COMMAND ${wrapper} ${link_option} RESULT_VARIABLE link_status
                    OUTPUT_VARIABLE link_line ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(compile_status EQUAL 0 AND link_status EQUAL 0)
      set(found TRUE)
      break()
    endif()
  endforeach()
  if(NOT found)
    set(compile_line "")
    set(link_line "")
  endif()
  # Only what says where MPI is: a wrapper's optimisation and LTO flags are those of its own build.
  set(includes "")
  set(defines "")
  set(folders "")
  set(libraries "")
  string(REGEX REPLACE "(-Xlinker|-isystem) +" "\\1" compile_line "${compile_line}")
  separate_arguments(words UNIX_COMMAND "${compile_line}")
  foreach(word IN LISTS words)
    if(word MATCHES "^(-I|-isystem)(.+)$")
      list(APPEND includes ${CMAKE_MATCH_2})
    elseif(word MATCHES "^-D(.+)$")
      list(APPEND defines ${CMAKE_MATCH_1})
    endif()
  endforeach()
  string(REGEX REPLACE "-Xlinker +" "-Wl," link_line "${link_line}")
  separate_arguments(words UNIX_COMMAND "${link_line}")
  foreach(word IN LISTS words)
    if(word MATCHES "^-L(.+)$")
      list(APPEND folders ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-l(.+)$")
      set(name ${CMAKE_MATCH_1})
      if(NOT name MATCHES "^(mpi_?cxx|mpichcxx|mpicxx)$")  # the C++ bindings that MPI 3 removed
        set(path "path-NOTFOUND")
        find_library(path ${name} PATHS ${folders} NO_DEFAULT_PATH NO_CACHE)
        if(path)
          list(APPEND libraries ${path})
        else()
          list(APPEND libraries -l${name})
        endif()
      endif()
    elseif(word MATCHES "^/.*\\.(so|a)[.0-9]*$" OR word MATCHES "^-Wl,(--?rpath|/|--enable-new-dtags)")
      list(APPEND libraries ${word})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES includes)
  list(TRANSFORM folders PREPEND -L)
  set(${out}_includes "${includes}" PARENT_SCOPE)
  set(${out}_defines "${defines}" PARENT_SCOPE)
  set(${out}_libraries "${folders};${libraries}" PARENT_SCOPE)
endfunction()

# Builds a program with those flags that names its MPI: OUT becomes "FAMILY VERSION", or "" and WHY says why
# not. A good answer is kept in the cache.
function(godwit_mpi_identify wrapper flags out why)
  string(SHA1 key "${wrapper} ${CMAKE_CXX_COMPILER} ${CMAKE_CXX_FLAGS} ${${flags}_includes} ${${flags}_libraries}")
  if(NOT GODWIT_MPI_PROBE_${key})
    set(binary ${CMAKE_CURRENT_BINARY_DIR}/godwit_mpi_probe)
    set(defines ${${flags}_defines})
    list(TRANSFORM defines PREPEND -D)
    try_compile(works SOURCE_FROM_CONTENT probe.cpp [=[
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <cstdio>
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#if defined(I_MPI_VERSION)
#define NAME "intelmpi " I_MPI_VERSION
#elif defined(MVAPICH2_VERSION)
#define NAME "mvapich " MVAPICH2_VERSION
#elif defined(MVAPICH_VERSION)
#define NAME "mvapich " MVAPICH_VERSION
#elif defined(MPICH_VERSION)
#define NAME "mpich " MPICH_VERSION
#elif defined(OMPI_MAJOR_VERSION)
#define NAME "openmpi " TEXT(OMPI_MAJOR_VERSION) "." TEXT(OMPI_MINOR_VERSION) "." TEXT(OMPI_RELEASE_VERSION)
#else
#define NAME "unknown 0"
#endif
#if MPI_VERSION < 3
#error MPI 3 is needed
#endif
int main(int argc, char** argv) {
  std::puts("godwit-mpi-is " NAME);
  return MPI_Init(&argc, &argv);
}
]=]
                CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${${flags}_includes}"
                LINK_LIBRARIES ${${flags}_libraries}
                COMPILE_DEFINITIONS ${defines}
                OUTPUT_VARIABLE output COPY_FILE ${binary} COPY_FILE_ERROR copy_error NO_CACHE)
    if(NOT works OR copy_error)
      string(REGEX MATCH "[^\n]*(error|undefined reference|cannot find)[^\n]*" line "${output}")
      set(${out} "" PARENT_SCOPE)
      set(${why} "a program with its flags does not build: ${line}" PARENT_SCOPE)
      return()
    endif()
    file(STRINGS ${binary} text REGEX "godwit-mpi-is [a-z]+ " LIMIT_COUNT 1)
    string(REGEX MATCH "godwit-mpi-is ([a-z]+ [^ ]+)" text "${text}")
    set(GODWIT_MPI_PROBE_${key} "${CMAKE_MATCH_1}" CACHE INTERNAL "which MPI ${wrapper} is")
  endif()
  set(${out} ${GODWIT_MPI_PROBE_${key}} PARENT_SCOPE)
  if(GODWIT_MPI_PROBE_${key} MATCHES "^unknown")
    set(${out} "" PARENT_SCOPE)
    set(${why} "an MPI that godwit does not know" PARENT_SCOPE)
  endif()
endfunction()

# Is PROGRAM the launcher of the MPI in godwit_mpi_family? All are called mpiexec.
function(godwit_mpi_launcher_fits result program)
  execute_process(COMMAND ${program} --version OUTPUT_VARIABLE text ERROR_VARIABLE text TIMEOUT 20)
  if(godwit_mpi_family STREQUAL "openmpi")
    set(expected "Open ?MPI|OpenRTE|PRTE|prte")
  elseif(godwit_mpi_family STREQUAL "intelmpi")
    set(expected "Intel")
  else()
    set(expected "HYDRA|Hydra|hydra")
  endif()
  if(NOT text MATCHES "${expected}")
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

function(godwit_mpi_launcher wrapper family out)
  set(godwit_mpi_family ${family})
  cmake_path(GET wrapper PARENT_PATH folder)
  file(REAL_PATH ${wrapper} real)
  cmake_path(GET real PARENT_PATH real_folder)
  set(path "path-NOTFOUND")
  find_program(path NAMES mpirun.${family} mpiexec.${family} mpirun mpiexec NAMES_PER_DIR
               PATHS ${folder} ${real_folder} NO_DEFAULT_PATH VALIDATOR godwit_mpi_launcher_fits NO_CACHE)
  set(${out} ${path} PARENT_SCOPE)
endfunction()

set(GodwitMpis_FAMILIES "")
set(GodwitMpis_REJECTED "")
set(godwit_mpi_wrappers ${GODWIT_MPI_COMPILERS})
if(NOT godwit_mpi_wrappers)
  set(godwit_mpi_wrappers mpicxx mpicxx.openmpi mpicxx.mpich)
endif()
set(godwit_mpi_seen "")
foreach(godwit_mpi_name IN LISTS godwit_mpi_wrappers)
  set(godwit_mpi_wrapper "godwit_mpi_wrapper-NOTFOUND")
  find_program(godwit_mpi_wrapper ${godwit_mpi_name} NO_CACHE)
  if(NOT godwit_mpi_wrapper)
    if(GODWIT_MPI_COMPILERS)
      list(APPEND GodwitMpis_REJECTED "${godwit_mpi_name}: no such program")
    endif()
    continue()
  endif()
  godwit_mpi_flags(${godwit_mpi_wrapper} godwit_mpi)
  string(SHA1 godwit_mpi_key "${godwit_mpi_includes} ${godwit_mpi_libraries}")
  if(godwit_mpi_key IN_LIST godwit_mpi_seen)
    continue()  # mpicxx is mpicxx.openmpi on Debian
  endif()
  list(APPEND godwit_mpi_seen ${godwit_mpi_key})
  godwit_mpi_identify(${godwit_mpi_wrapper} godwit_mpi godwit_mpi_is godwit_mpi_why)
  if(NOT godwit_mpi_is MATCHES "^([a-z]+) (.+)$")
    list(APPEND GodwitMpis_REJECTED "${godwit_mpi_wrapper}: ${godwit_mpi_why}")
    continue()
  endif()
  set(godwit_mpi_family ${CMAKE_MATCH_1})
  set(godwit_mpi_version ${CMAKE_MATCH_2})
  if(godwit_mpi_family IN_LIST GodwitMpis_FAMILIES)
    list(APPEND GodwitMpis_REJECTED "${godwit_mpi_wrapper}: ${godwit_mpi_family} a second time, after \
${GodwitMpis_${godwit_mpi_family}_COMPILER}")
    continue()
  endif()
  list(APPEND GodwitMpis_FAMILIES ${godwit_mpi_family})
  set(GodwitMpis_${godwit_mpi_family}_COMPILER ${godwit_mpi_wrapper})
  set(GodwitMpis_${godwit_mpi_family}_VERSION ${godwit_mpi_version})
  godwit_mpi_launcher(${godwit_mpi_wrapper} ${godwit_mpi_family} GodwitMpis_${godwit_mpi_family}_LAUNCHER)
  if(NOT TARGET GodwitMpis::${godwit_mpi_family})
    add_library(GodwitMpis::${godwit_mpi_family} INTERFACE IMPORTED GLOBAL)
    set_target_properties(GodwitMpis::${godwit_mpi_family} PROPERTIES
                          INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${godwit_mpi_includes}"
                          INTERFACE_INCLUDE_DIRECTORIES "${godwit_mpi_includes}"
                          INTERFACE_COMPILE_DEFINITIONS "${godwit_mpi_defines}"
                          INTERFACE_LINK_LIBRARIES "${godwit_mpi_libraries}")
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
list(JOIN GodwitMpis_REJECTED "; " godwit_mpi_rejected)
if(godwit_mpi_rejected)
  string(PREPEND godwit_mpi_rejected " -- not usable: ")
endif()
find_package_handle_standard_args(GodwitMpis REQUIRED_VARS GodwitMpis_FAMILIES
  REASON_FAILURE_MESSAGE
    "install libopenmpi-dev and openmpi-bin, or libmpich-dev and mpich (Debian, Ubuntu), or name the compiler \
wrapper with -DGODWIT_MPI_COMPILERS=/path/mpicxx, or build with -DGODWIT_WITH_MPI=OFF${godwit_mpi_rejected}")
