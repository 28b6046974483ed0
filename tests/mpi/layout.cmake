# Equal addresses in ranks of different environments, and main's output once (layout_check.sh), for programs
# that are position-independent or at a fixed address. Included by extras.cmake. Needs no MPI library, only
# launchers.
set(layout_here ${CMAKE_CURRENT_LIST_DIR})

function(godwit_add_layout_check target compile link)
  add_executable(${target} ${layout_here}/layout_check.cpp)
  target_link_libraries(${target} PRIVATE godwit godwit_build ${CMAKE_DL_LIBS})
  target_compile_options(${target} PRIVATE ${compile})
  target_link_options(${target} PRIVATE ${link})
endfunction()

function(godwit_add_layout_test name target)
  add_test(NAME ${name} COMMAND ${layout_here}/layout_check.sh $<TARGET_FILE:${target}> ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS mpi TIMEOUT 180 ${godwit_mpi_beside_others} SKIP_RETURN_CODE 77
                       ENVIRONMENT "${env}")
endfunction()

if(NOT CMAKE_CROSSCOMPILING AND NOT GODWIT_SANITIZE MATCHES "thread")
  set(layout_kinds pie no_pie)
  godwit_add_layout_check(mpi_layout_check_pie -fPIE -pie)
  godwit_add_layout_check(mpi_layout_check_no_pie -fno-pie -no-pie)
  find_program(GODWIT_LAYOUT_OPENMPI mpirun.openmpi)
  find_program(GODWIT_LAYOUT_MPICH NAMES mpirun.mpich mpiexec.hydra)
  mark_as_advanced(GODWIT_LAYOUT_OPENMPI GODWIT_LAYOUT_MPICH)
  foreach(kind IN LISTS layout_kinds)
    set(target mpi_layout_check_${kind})
    godwit_add_layout_test(mpi.layout.plain.${kind} ${target} plain)
    if(GODWIT_LAYOUT_OPENMPI)
      godwit_add_layout_test(mpi.layout.openmpi.${kind} ${target} ${GODWIT_LAYOUT_OPENMPI} --oversubscribe
                             --bind-to none)
    endif()
    if(GODWIT_LAYOUT_MPICH)
      godwit_add_layout_test(mpi.layout.mpich.${kind} ${target} ${GODWIT_LAYOUT_MPICH})
    endif()
  endforeach()
endif()
