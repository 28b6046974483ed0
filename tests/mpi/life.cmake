# How programs begin and end under MPI, compared with the plain start: life_test.sh GROUP, one ctest each, and
# scripts/stress_mpi in short. Included by extras.cmake. Each under a minute on an idle machine.
set(life_here ${CMAKE_CURRENT_LIST_DIR})

if(NOT CMAKE_CROSSCOMPILING AND NOT sanitized AND godwit_mpi_families)
  add_executable(mpi_life ${life_here}/life.cpp)
  target_link_libraries(mpi_life PRIVATE godwit godwit_build)
  foreach(family IN LISTS godwit_mpi_families)
    add_dependencies(mpi_life godwit-mpi-${family})
  endforeach()

  # godwit_add_life_test(FAMILY GROUP [HOSTS WAY]). Beside other tests: Open MPI's mpirun sleeps for a second whenever a
  # rank fails, which is most of the time here, and nothing in it is measured.
  function(godwit_add_life_test family group)
    string(REPLACE ";" "." mode "${ARGN}")
    if(mode)
      string(PREPEND mode ".")
    endif()
    set(name mpi.life.${group}.${family}${mode})
    add_test(NAME ${name} COMMAND ${life_here}/life_test.sh $<TARGET_FILE:mpi_life> ${family} ${group} ${ARGN})
    set_tests_properties(${name} PROPERTIES LABELS mpi TIMEOUT 900 SKIP_RETURN_CODE 77
                         ENVIRONMENT "LIFE_ALL=$<BOOL:${GODWIT_ALL_MPI_TESTS}>")
  endfunction()

  list(GET godwit_mpi_families -1 last)  # MPICH, if it is there: its launcher does not wait
  foreach(family IN LISTS godwit_mpi_families)
    set(groups ends deaths again threads signals ranks)
    if(GODWIT_ALL_MPI_TESTS OR family STREQUAL last)
      list(APPEND groups options)  # refused before any MPI has begun; many starts
    endif()
    foreach(group ${groups})
      godwit_add_life_test(${family} ${group})
    endforeach()
    if(NOT GODWIT_ALL_MPI_TESTS)
      if(family STREQUAL last)
        foreach(group ends threads deaths relay)
          godwit_add_life_test(${family} ${group} ranks server)
        endforeach()
      endif()
      continue()
    endif()
    foreach(way server assist am rma)
      foreach(group ends threads again relay)
        if(group STREQUAL "relay" AND NOT way STREQUAL "server")
          continue()
        endif()
        godwit_add_life_test(${family} ${group} ranks ${way})
      endforeach()
    endforeach()
    foreach(way server am rma)  # who forwards messages while somebody dies
      foreach(group deaths signals)
        godwit_add_life_test(${family} ${group} ranks ${way})
      endforeach()
    endforeach()
  endforeach()

  add_test(NAME mpi.life.stress COMMAND ${PROJECT_SOURCE_DIR}/scripts/stress_mpi 10 2 3 4)
  set_tests_properties(mpi.life.stress PROPERTIES LABELS mpi TIMEOUT 240 RUN_SERIAL ON SKIP_RETURN_CODE 77
                       ENVIRONMENT "LIFE=$<TARGET_FILE:mpi_life>")
endif()
