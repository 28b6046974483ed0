# godwit-report's tests: all of them link what it is made of, without main, and the writer of trace files for tests.
# The page itself is tried in a headless Chromium (browser_test.py; skipped with a message where there is none).
# Included by ../CMakeLists.txt, which leaves the folder out where the tool is not built.
set(here ${CMAKE_CURRENT_LIST_DIR})
if(TARGET report_core)
  add_library(report_test_support STATIC ${here}/trace_builder.cpp ${here}/simulate.cpp)
  target_link_libraries(report_test_support PUBLIC report_core godwit_build)
  foreach(name input analysis summary page moves waits compare blame system spawns)
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
           COMMAND report_faults nothing --godwit-substrate=sim --godwit-workers=7 --godwit-stats-json=-)
  set_tests_properties(report.cpus.sim PROPERTIES LABELS report TIMEOUT 60 ENVIRONMENT "${env}"
                       PASS_REGULAR_EXPRESSION "\"cpus\": *7,")
  add_executable(report_faults_counted ${here}/faults.cpp)
  target_link_libraries(report_faults_counted PRIVATE godwit godwit_build)
  target_compile_definitions(report_faults_counted PRIVATE GODWIT_COUNT_SPAWNS)
  target_compile_options(report_faults_counted PRIVATE -g)
  # godwit_add_fault(FAULT SENTENCE NAME COMMAND...): see faults_test.sh.
  function(godwit_add_fault fault sentence name)
    add_test(NAME report.fault.${name}
             COMMAND ${here}/faults_test.sh $<TARGET_FILE:godwit-report> ${here}/faults.cpp ${fault} ${sentence} ${ARGN})
    # Alone: what waits for a CPU is busy in a report.
    set_tests_properties(report.fault.${name} PROPERTIES LABELS report TIMEOUT 120 RUN_SERIAL ON SKIP_RETURN_CODE 77
                         ENVIRONMENT "${env}")
  endfunction()
  set(waited "[5-8] of [78] threads waited at once for a")
  set(blocking "threads waited in the operating system for [0-9]* % of their time, mostly blocking at PLACE\\.")
  set(pages "the operating system worked for [0-9]* % of the threads' time .[0-9,]* page faults., mostly for pages at PLACE\\.")
  set(serial "serial from .* to .*: serial at PLACE, before it spawned\\.")
  set(leaf "one big leaf: leaf at PLACE ran for up to ")
  set(fine "tasks too fine: .*, mostly fine at PLACE\\.")
  set(uneven "uneven tasks: uneven at PLACE ran for up to ")
  set(nothing "nothing stands out\\.")
  foreach(workers 2 4)
    set(begin "^Speed-up [0-9.]* on ${workers} workers: ")
    foreach(substrate threads processes)
      set(run $<TARGET_FILE:report_faults>)
      set(options --godwit-substrate=${substrate} --godwit-workers=${workers})
      godwit_add_fault(semaphore "${begin}${waited} global_semaphore at PLACE\\."
                       semaphore.${substrate}.${workers} ${run} semaphore ${options})
      godwit_add_fault(barrier "${begin}${waited} global_barrier at PLACE\\." barrier.${substrate}.${workers} ${run} barrier
                       ${options})
      foreach(fault serial leaf fine uneven nothing blocking)
        godwit_add_fault(${fault} "${begin}${${fault}}" ${fault}.${substrate}.${workers} ${run} ${fault} ${options})
      endforeach()
      if(workers EQUAL 2)
        godwit_add_fault(pages "${begin}${pages}" pages.${substrate} ${run} pages ${options})
      else()
        godwit_add_fault(few "${begin}too few tasks: on average [0-9.]* of 4 workers had one, mostly few at PLACE\\."
                         few.${substrate} ${run} few ${options})
      endif()
    endforeach()
    set(options --godwit-substrate=threads --godwit-workers=${workers})
    godwit_add_fault(lock "${begin}${waited} mutex at PLACE, held by lock at END\\." lock.${workers} ${run} lock ${options})
    godwit_add_fault(condition "${begin}${waited} condition variable at PLACE\\." condition.${workers} ${run} condition
                     ${options})
    godwit_add_fault(descriptor "${begin}no thread wanted a CPU for [0-9]* % of the time: read at PLACE\\."
                     descriptor.${workers} ${run} descriptor ${options})
    godwit_add_fault(sleep "${begin}no thread wanted a CPU for [0-9]* % of the time: sleep at PLACE\\." sleep.${workers}
                     ${run} sleep ${options})
  endforeach()
  godwit_add_fault(serial "serial from .* to .*: reading the input, before it spawned\\." named ${run} named
                   --godwit-workers=2)
  # With the number of spawns, where the program was compiled to count them.
  set(tiny "tasks too fine: a spawn for every [0-9.]* ns of work, mostly fib at PLACE\\.")
  set(counted "tasks too fine: [0-9,]* spawns with [0-9.]* ns of work each, mostly fib at PLACE\\.")
  godwit_add_fault(tiny "${tiny}" tiny ${run} tiny --godwit-workers=2)
  godwit_add_fault(tiny "${counted}" tiny.counted $<TARGET_FILE:report_faults_counted> tiny --godwit-workers=2)
  set(ready "threads were ready, and nobody ran them, for [0-9]* % of the lost time: after waits at PLACE\\.")
  foreach(substrate threads processes)
    godwit_add_fault(ready "${ready}" ready.${substrate} ${run} ready --godwit-workers=2 --godwit-policy=stalling
                     --godwit-substrate=${substrate})
  endforeach()
  foreach(policy child_full child_rtc)
    godwit_add_fault(child "one big leaf: child at PLACE ran for up to " ${policy} ${run} ${policy} --godwit-workers=2
                     --godwit-policy=${policy})
  endforeach()
  foreach(substrate threads processes)
    godwit_add_fault(sent "one big leaf: [^ ]* at PLACE ran for up to " sent.${substrate} ${run} sent --godwit-workers=2
                     --godwit-substrate=${substrate})
  endforeach()
  get_property(families GLOBAL PROPERTY GODWIT_MPI_FAMILIES)
  foreach(family IN LISTS families)
    get_property(launcher GLOBAL PROPERTY GODWIT_MPI_LAUNCHER_${family})
    if(launcher)
      set(options "")
      if(family STREQUAL "openmpi")
        set(options --oversubscribe --bind-to none)
      endif()
      set(ranks env GODWIT_HOSTS=ranks OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
                OMPI_MCA_mpi_yield_when_idle=1 ${launcher} ${options} -n 2 $<TARGET_FILE:report_faults>)
      set(begin "^Speed-up [0-9.]* on 2 workers of 2 hosts: ")
      set(gets "8,192 single gets of memory of worker 1's host at PLACE took [0-9]* % of the threads' time\\.")
      set(faults gets serial leaf fine uneven blocking nothing)
      foreach(fault IN LISTS faults)
        godwit_add_fault(${fault} "${begin}${${fault}}" ${fault}.${family} ${ranks} ${fault})
      endforeach()
      add_test(NAME report.cpus.${family}
               COMMAND ${here}/../mpi/cpus_test.sh "$<TARGET_FILE:report_faults> nothing" ${launcher} ${options})
      set_tests_properties(report.cpus.${family} PROPERTIES LABELS report TIMEOUT 120 SKIP_RETURN_CODE 77 RESOURCE_LOCK mpi
                           ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_mpi_yield_when_idle=1")
    endif()
  endforeach()
endif()
