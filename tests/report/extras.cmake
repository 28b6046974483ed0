# godwit-report's tests: all of them link what it is made of, without main, and the writer of trace files for tests.
# The page itself is tried in a headless Chromium (browser_test.py; skipped with a message where there is none).
# Included by ../CMakeLists.txt, which leaves the folder out where the tool is not built.
set(here ${CMAKE_CURRENT_LIST_DIR})
if(TARGET report_core)
  add_library(report_test_support STATIC ${here}/trace_builder.cpp ${here}/simulate.cpp)
  target_link_libraries(report_test_support PUBLIC report_core godwit_build)
  foreach(name input analysis summary page moves waits compare)
    if(TARGET report_${name})
      target_link_libraries(report_${name} PRIVATE report_test_support)
    endif()
  endforeach()
  add_executable(report_generate ${here}/generate.cpp)
  target_link_libraries(report_generate PRIVATE report_test_support)
endif()
if(TARGET report_core AND NOT CMAKE_CROSSCOMPILING)
  set(programs $<TARGET_FILE:report_generate> $<TARGET_FILE:godwit-report>)
  add_test(NAME report.cli COMMAND ${here}/cli_test.sh ${programs})
  set_tests_properties(report.cli PROPERTIES LABELS report TIMEOUT 120 ENVIRONMENT "${env}")
  find_package(Python3 QUIET COMPONENTS Interpreter)
  if(Python3_Interpreter_FOUND AND NOT sanitized)
    add_test(NAME report.browser COMMAND ${Python3_EXECUTABLE} ${here}/browser_test.py ${programs})
    set_tests_properties(report.browser PROPERTIES LABELS report TIMEOUT 600 SKIP_RETURN_CODE 77)
  elseif(NOT sanitized)
    message(STATUS "report.browser left out: it needs python3")
  endif()
endif()

# Programs with one fault each. Their lines are found in debug information, which the library need not have.
if(TARGET report_core AND NOT CMAKE_CROSSCOMPILING AND NOT sanitized AND main_build)
  add_executable(report_faults ${here}/faults.cpp)
  target_link_libraries(report_faults PRIVATE godwit godwit_build)
  target_compile_options(report_faults PRIVATE -g)
  # A simulated worker has a CPU of its own, however many there are here.
  add_test(NAME report.cpus.sim
           COMMAND report_faults none --godwit-substrate=sim --godwit-workers=7 --godwit-stats-json=-)
  set_tests_properties(report.cpus.sim PROPERTIES LABELS report TIMEOUT 60 ENVIRONMENT "${env}"
                       PASS_REGULAR_EXPRESSION "\"cpus\": *7,")
  # godwit_add_fault(FAULT SENTENCE NAME COMMAND...): see faults_test.sh.
  function(godwit_add_fault fault sentence name)
    add_test(NAME report.fault.${name}
             COMMAND ${here}/faults_test.sh $<TARGET_FILE:godwit-report> ${here}/faults.cpp ${fault} ${sentence} ${ARGN})
    # Alone: what waits for a CPU is busy in a report.
    set_tests_properties(report.fault.${name} PROPERTIES LABELS report TIMEOUT 120 RUN_SERIAL ON ENVIRONMENT "${env}")
  endfunction()
  foreach(workers 2 4)
    foreach(substrate threads processes)
      set(run $<TARGET_FILE:report_faults>)
      set(options --godwit-substrate=${substrate} --godwit-workers=${workers})
      godwit_add_fault(semaphore "^Waiting: up to [5-7] threads at once waited for a global_semaphore at PLACE\\."
                       semaphore.${substrate}.${workers} ${run} semaphore ${options})
    endforeach()
    set(options --godwit-substrate=threads --godwit-workers=${workers})
    godwit_add_fault(lock "^Locks: up to [5-7] threads at once waited for a mutex at PLACE\\." lock.${workers} ${run} lock ${options})
    godwit_add_fault(sleep "^No thread wanted a CPU for [0-9]* % of the time: sleep at PLACE\\." sleep.${workers} ${run} sleep
                     ${options})
  endforeach()
  get_property(families GLOBAL PROPERTY GODWIT_MPI_FAMILIES)
  foreach(family IN LISTS families)
    get_property(launcher GLOBAL PROPERTY GODWIT_MPI_LAUNCHER_${family})
    if(launcher)
      set(options "")
      if(family STREQUAL "openmpi")
        set(options --oversubscribe --bind-to none)
      endif()
      godwit_add_fault(gets "^8,192 single gets of memory of worker 1's host at PLACE took [0-9]* % of the threads' time: check out the range\\."
                       gets.${family} env GODWIT_HOSTS=ranks OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
                       OMPI_MCA_mpi_yield_when_idle=1 ${launcher} ${options} -n 2 $<TARGET_FILE:report_faults> gets)
      add_test(NAME report.cpus.${family}
               COMMAND ${here}/../mpi/cpus_test.sh $<TARGET_FILE:report_faults> ${launcher} ${options})
      set_tests_properties(report.cpus.${family} PROPERTIES LABELS report TIMEOUT 120 SKIP_RETURN_CODE 77 RESOURCE_LOCK mpi
                           ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_mpi_yield_when_idle=1")
    endif()
  endforeach()
endif()
