# Find hwloc, with pkg-config's help where there is one. Gives the imported target hwloc::hwloc. Installed
# next to godwit-config.cmake, which uses it again.

find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(Hwloc_PC QUIET hwloc)
endif()
find_path(Hwloc_INCLUDE_DIR hwloc.h HINTS ${Hwloc_PC_INCLUDE_DIRS})
find_library(Hwloc_LIBRARY hwloc HINTS ${Hwloc_PC_LIBRARY_DIRS})
mark_as_advanced(Hwloc_INCLUDE_DIR Hwloc_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Hwloc
  REQUIRED_VARS Hwloc_LIBRARY Hwloc_INCLUDE_DIR VERSION_VAR Hwloc_PC_VERSION
  REASON_FAILURE_MESSAGE
    "install libhwloc-dev (Debian, Ubuntu) or hwloc-devel, or build with -DGODWIT_WITH_HWLOC=OFF")

if(Hwloc_FOUND AND NOT TARGET hwloc::hwloc)
  add_library(hwloc::hwloc UNKNOWN IMPORTED GLOBAL)
  set_target_properties(hwloc::hwloc PROPERTIES IMPORTED_LOCATION ${Hwloc_LIBRARY}
                                                INTERFACE_INCLUDE_DIRECTORIES ${Hwloc_INCLUDE_DIR})
endif()
