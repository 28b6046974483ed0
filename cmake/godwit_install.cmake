# Install rules: library, headers, CMake package (find_package(godwit)), pkg-config file.
# Included by the top CMakeLists.txt. Tested from outside by tests/install.
include(CMakePackageConfigHelpers)

# `cmake --install` where only some targets were built, as by scripts/run: builds the others first.
add_custom_target(godwit_installed DEPENDS godwit)
set(godwit_libraries $<TARGET_FILE:godwit>)
if(TARGET godwit_shared)
  add_dependencies(godwit_installed godwit_shared)
  list(APPEND godwit_libraries $<TARGET_FILE:godwit_shared>)
endif()
install(CODE "
  set(files \"${godwit_libraries}\")
  foreach(file IN LISTS files)
    if(NOT EXISTS \"\${file}\")
      message(STATUS \"Building what was not built yet\")
      execute_process(COMMAND \"${CMAKE_COMMAND}\" --build \"${CMAKE_BINARY_DIR}\" --target godwit_installed
                      COMMAND_ERROR_IS_FATAL ANY)
      break()
    endif()
  endforeach()")

set(godwit_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/godwit)
install(TARGETS godwit EXPORT godwit-targets)
if(TARGET godwit_shared)
  install(TARGETS godwit_shared EXPORT godwit-targets)
endif()
get_property(godwit_mpi_modules GLOBAL PROPERTY GODWIT_MPI_MODULES)
if(godwit_mpi_modules)  # opened by src/transport/mpi/load.cpp, which looks beside the library first
  foreach(module IN LISTS godwit_mpi_modules)
    string(REPLACE "godwit-mpi-" "mpi_" component ${module})  # a package of its own: godwit_cpack.cmake
    install(TARGETS ${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/godwit COMPONENT ${component})
  endforeach()
  add_dependencies(godwit_installed ${godwit_mpi_modules})
endif()
install(DIRECTORY include/godwit TYPE INCLUDE FILES_MATCHING PATTERN "*.hpp")
install(FILES include/godwit.h TYPE INCLUDE)
install(PROGRAMS tools/scale/godwit-scale TYPE BIN)
install(FILES tools/scale/godwit_fit.py DESTINATION ${CMAKE_INSTALL_LIBDIR}/godwit)
install(DIRECTORY src/sim/machines DESTINATION ${CMAKE_INSTALL_DATADIR}/godwit)
install(EXPORT godwit-targets NAMESPACE godwit:: DESTINATION ${godwit_package_dir})
configure_package_config_file(cmake/godwit-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/godwit-config.cmake
                              INSTALL_DESTINATION ${godwit_package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/godwit-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/godwit-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/godwit-config-version.cmake cmake/FindHwloc.cmake
        DESTINATION ${godwit_package_dir})

# pkg-config: a static library brings its own needs along, so they are not "private".
set(godwit_pc_libs "-pthread")
set(godwit_pc_name "-lgodwit")
if(TARGET godwit_shared)  # both are there: the static one, as ever
  set(godwit_pc_name "-l:libgodwit.a")
endif()
list(TRANSFORM godwit_context_definition PREPEND " -D" OUTPUT_VARIABLE godwit_pc_context)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^riscv")
  string(APPEND godwit_pc_libs " -latomic")
endif()
# A program written in C is linked by a compiler that does not know of C++.
foreach(library stdc++ c++)
  if(library IN_LIST CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
    string(APPEND godwit_pc_libs " -l${library} -lm")
    break()
  endif()
endforeach()
# A program with the static library in it looks for MPI components in its run path (src/transport/mpi/load.cpp).
set(godwit_pc_components "")
if(godwit_mpi_modules)
  set(godwit_pc_components "-Wl,-rpath,\${libdir}/godwit")
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    target_link_options(godwit INTERFACE $<INSTALL_INTERFACE:-Wl,-rpath,$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/godwit>)
  endif()
endif()
if(godwit_has_hwloc)
  get_target_property(type godwit TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    # Not "Requires: hwloc": with --static that asks for all that hwloc itself was linked with, and
    # distributions do not install the development files of these along with hwloc's.
    cmake_path(GET Hwloc_LIBRARY PARENT_PATH folder)
    string(PREPEND godwit_pc_libs "-L${folder} -lhwloc ")
  endif()
endif()
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
           OUTPUT_VARIABLE libdir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
           OUTPUT_VARIABLE includedir)
cmake_path(APPEND pc_to_prefix ${libdir} pkgconfig)
string(REGEX REPLACE "[^/]+" ".." pc_to_prefix ${pc_to_prefix})
configure_file(cmake/godwit.pc.in ${CMAKE_CURRENT_BINARY_DIR}/godwit.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/godwit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
# gdb commands, to be sourced: the library is static as a rule, so gdb could not find them by its name.
install(DIRECTORY tools/gdb/ DESTINATION ${CMAKE_INSTALL_DATADIR}/godwit/gdb FILES_MATCHING PATTERN "*.py")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
