# The suite of far_checks.hpp on every transport: mpi.far.near.N by shared memory, mpi.far.WAY.FAMILY.N under a launcher
# on one node (each rank a host; with more than two ranks once more with two ranks per host), and
# mpi.hosts.far.WAY.FAMILY between network namespaces (scripts/hosts; skipped where those cannot be made). Included by
# extras.cmake, which defines godwit_add_mpi_test. Outside the main build each way under one MPI only, and on one node.
set(far_suite_ranks 3)
if(GODWIT_ALL_MPI_TESTS)
  set(far_suite_ranks 2 3 4)
endif()
set(far_suite_hosts ${PROJECT_SOURCE_DIR}/scripts/hosts)

if(NOT GODWIT_SANITIZE MATCHES "thread")
  add_executable(mpi_far_suite ${godwit_mpi_tests_dir}/far_suite.cpp)
  target_link_libraries(mpi_far_suite PRIVATE godwit godwit_build)
  foreach(family IN LISTS godwit_mpi_families)
    add_dependencies(mpi_far_suite godwit-mpi-${family})
  endforeach()

  set(far_suite_near 2 4)
  if(CMAKE_CROSSCOMPILING AND NOT GODWIT_ALL_TESTS AND NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set(far_suite_near "")  # a minute each in an emulator
  endif()
  foreach(workers ${far_suite_near})
    add_test(NAME mpi.far.near.${workers} COMMAND mpi_far_suite near ${workers})
    set_tests_properties(mpi.far.near.${workers} PROPERTIES LABELS mpi TIMEOUT 330 ENVIRONMENT "${env}"
                         PASS_REGULAR_EXPRESSION "far_suite ok")
  endforeach()

  set(far_suite_turn 0)
  foreach(way rma rma_atomics server assist am)
    set(families ${godwit_mpi_families})
    if(families AND NOT main_build AND NOT GODWIT_ALL_MPI_TESTS)
      list(LENGTH families far_suite_count)
      math(EXPR far_suite_turn "(${far_suite_turn} + 1) % ${far_suite_count}")
      list(GET families ${far_suite_turn} families)
    endif()
    foreach(ranks ${far_suite_ranks})
      godwit_add_mpi_test(NAME mpi.far.${way} RANKS ${ranks} TIMEOUT 330 FAMILIES ${families}
                          COMMAND $<TARGET_FILE:mpi_far_suite> ${way})
    endforeach()
    if(NOT main_build AND NOT GODWIT_ALL_MPI_TESTS)
      continue()
    endif()
    foreach(family IN LISTS godwit_mpi_families)
      get_property(launcher GLOBAL PROPERTY GODWIT_MPI_LAUNCHER_${family})
      if(NOT launcher)
        continue()
      endif()
      if(launcher MATCHES "/mpirun\\.openmpi$")
        set(launcher openmpi)  # Debian's; under that name it calls itself OpenRTE
      endif()
      set(name mpi.hosts.far.${way}.${family})
      add_test(NAME ${name} COMMAND ${far_suite_hosts} --hosts 2 --mpi ${launcher} --timeout 310 --
                                    $<TARGET_FILE:mpi_far_suite> ${way})
      set(far_suite_env ${env})
      if(GODWIT_SANITIZE MATCHES "address")
        list(FILTER far_suite_env INCLUDE REGEX "^ASAN_OPTIONS=")
        set(far_suite_env "${far_suite_env}:detect_leaks=0")
      endif()
      set_tests_properties(${name} PROPERTIES LABELS "mpi;hosts" TIMEOUT 330 ${godwit_mpi_beside_others} SKIP_RETURN_CODE 77
                           ENVIRONMENT "${far_suite_env}")
    endforeach()
  endforeach()
endif()
