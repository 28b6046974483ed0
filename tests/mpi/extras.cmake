# Tests that run under an MPI launcher, once per MPI that godwit has a component for (label mpi). Included by
# ../CMakeLists.txt; an extras.cmake that comes earlier in the alphabet may include it itself.
#
# godwit_add_mpi_test(NAME name RANKS n COMMAND program [argument...] [TIMEOUT seconds] [FAMILIES family...])
# adds a test NAME.FAMILY.n for every family that has a launcher here. {family} in
# an argument stands for the family. The names of the tests it added are left in godwit_mpi_tests.
include_guard()
option(GODWIT_ALL_MPI_TESTS "Run every suite in every way, number of ranks and MPI (about half an hour)" OFF)
get_property(godwit_mpi_families GLOBAL PROPERTY GODWIT_MPI_FAMILIES)
set(godwit_mpi_tests_dir ${CMAKE_CURRENT_LIST_DIR})
# Launchers sleep for much of their time, so something small may run beside; two at a time, whose ranks wait by looking, would be
# in each other's way. They begin first: as the last ones they would be alone.
set(godwit_mpi_beside_others PROCESSORS 2 RESOURCE_LOCK mpi COST 100)
if(GODWIT_SANITIZE MATCHES "thread")
  set(godwit_mpi_families "")  # MPI libraries are not instrumented
elseif(NOT main_build AND NOT sanitized AND NOT GODWIT_ALL_MPI_TESTS)
  set(godwit_mpi_families "")  # gcc's build and the sanitizers' run them
endif()

function(godwit_add_mpi_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;RANKS;TIMEOUT" "COMMAND;FAMILIES")
  if(NOT arg_NAME OR NOT arg_RANKS OR NOT arg_COMMAND OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "godwit_add_mpi_test(NAME RANKS COMMAND... [TIMEOUT] [FAMILIES...]): ${ARGV}")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(sanitized)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 3")
  endif()
  # As root, on fewer CPUs than ranks, each rank on all CPUs; Open MPI 5 calls the same things otherwise.
  set(settings OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1
               PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 I_MPI_PIN=0 ${env})
  if(GODWIT_SANITIZE MATCHES "address")  # MPI libraries leave memory to the end of the process
    list(FILTER settings EXCLUDE REGEX "^ASAN_OPTIONS=")
    list(FILTER env INCLUDE REGEX "^ASAN_OPTIONS=")
    list(APPEND settings "${env}:detect_leaks=0")
  endif()
  set(names "")
  foreach(family IN LISTS godwit_mpi_families)
    get_property(launcher GLOBAL PROPERTY GODWIT_MPI_LAUNCHER_${family})
    if(NOT launcher OR (arg_FAMILIES AND NOT family IN_LIST arg_FAMILIES))
      continue()
    endif()
    set(options "")
    if(family STREQUAL "openmpi")
      set(options --oversubscribe --bind-to none)
    endif()
    string(REPLACE "{family}" "${family}" command "${arg_COMMAND}")
    set(name ${arg_NAME}.${family}.${arg_RANKS})
    add_test(NAME ${name} COMMAND ${launcher} ${options} -n ${arg_RANKS} ${command})
    set_tests_properties(${name} PROPERTIES LABELS mpi TIMEOUT ${arg_TIMEOUT} ${godwit_mpi_beside_others}
                         ENVIRONMENT "${settings}")
    list(APPEND names ${name})
  endforeach()
  set(godwit_mpi_tests "${names}" PARENT_SCOPE)
endfunction()

if(godwit_mpi_families)
  function(godwit_add_component_check target)
    add_executable(${target} ${godwit_mpi_tests_dir}/component_check.cpp)
    target_link_libraries(${target} PRIVATE godwit godwit_build)
    foreach(family IN LISTS godwit_mpi_families)
      add_dependencies(${target} godwit-mpi-${family})
    endforeach()
  endfunction()

  godwit_add_component_check(mpi_component_check)
  set(port_ranks 1 2)
  if(main_build)
    list(APPEND port_ranks 4)
  endif()
  foreach(ranks ${port_ranks})
    godwit_add_mpi_test(NAME mpi.component RANKS ${ranks} COMMAND $<TARGET_FILE:mpi_component_check> {family})
    if(godwit_mpi_tests)
      set_tests_properties(${godwit_mpi_tests} PROPERTIES FAIL_REGULAR_EXPRESSION "component_check: line")
    endif()
  endforeach()
  godwit_add_mpi_test(NAME mpi.component_abort RANKS 2 COMMAND $<TARGET_FILE:mpi_component_check> {family} abort)
  if(godwit_mpi_tests)
    set_tests_properties(${godwit_mpi_tests} PROPERTIES PASS_REGULAR_EXPRESSION "component_check aborts")
  endif()
  # Programs that are themselves linked to an MPI and initialise it.
  foreach(family IN LISTS godwit_mpi_families)
    godwit_add_component_check(mpi_component_check_linked_${family})
    target_link_libraries(mpi_component_check_linked_${family} PRIVATE GodwitMpis::${family})
    target_compile_definitions(mpi_component_check_linked_${family} PRIVATE GODWIT_CHECK_LINKED)
    godwit_add_mpi_test(NAME mpi.component_linked RANKS 2 FAMILIES ${family}
                        COMMAND $<TARGET_FILE:mpi_component_check_linked_${family}> {family})
    if(godwit_mpi_tests AND family STREQUAL "openmpi")  # see choose_window_kind in plugin.cpp
      set_property(TEST ${godwit_mpi_tests} APPEND PROPERTY ENVIRONMENT OMPI_MCA_osc=pt2pt)
    endif()
  endforeach()
endif()

# Programs that call MPI themselves, before run and, by on_rank, in it.
if(NOT sanitized)
  foreach(family IN LISTS godwit_mpi_families)
    add_executable(mpi_calls_${family} ${godwit_mpi_tests_dir}/calls_check.cpp)
    target_link_libraries(mpi_calls_${family} PRIVATE godwit godwit_build GodwitMpis::${family})
    foreach(hosts auto ranks)
      foreach(case "multiple sum=^value 3" "multiple plain=^value 610" "multiple throws=on_rank: rank 1: too cold in 1"
                   "multiple all_throw=on_rank: rank 0: too cold in 0" "multiple together=^value 1"
                   "multiple refuses=on_rank: rank 1: .* not one range"
                   "funneled throws=rank 0: MPI was started with less than MPI_THREAD_MULTIPLE: call"
                   "multiple wrong=worker 0: a thread called MPI_Comm_rank: .* gw::on_rank")
        string(REGEX MATCH "^([a-z]+) ([a-z_]+)=(.*)$" case "${case}")
        set(said "${CMAKE_MATCH_3}")
        godwit_add_mpi_test(NAME mpi.calls.${CMAKE_MATCH_1}.${CMAKE_MATCH_2}.${hosts} RANKS 2 FAMILIES ${family}
                            COMMAND $<TARGET_FILE:mpi_calls_${family}> ${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
        if(godwit_mpi_tests)
          set_tests_properties(${godwit_mpi_tests} PROPERTIES PASS_REGULAR_EXPRESSION "${said}"
                               FAIL_REGULAR_EXPRESSION "MPI_FINALIZE|after finalizing|signal")  # a status would not count
          set_property(TEST ${godwit_mpi_tests} APPEND PROPERTY ENVIRONMENT GODWIT_HOSTS=${hosts} GODWIT_QUIET=1)
        endif()
      endforeach()
    endforeach()
  endforeach()
endif()

# Mains whose objects threads change.
if(NOT sanitized AND godwit_mpi_families)
  add_executable(mpi_changed_mains ${godwit_mpi_tests_dir}/changed_mains.cpp)
  target_link_libraries(mpi_changed_mains PRIVATE godwit godwit_build)
  set(said "changed their copy of 1 block .8000 bytes. that main had allocated")
  foreach(how read written)
    godwit_add_mpi_test(NAME mpi.changed_mains.${how} RANKS 3 COMMAND $<TARGET_FILE:mpi_changed_mains> ${how})
    if(godwit_mpi_tests AND how STREQUAL "written")
      set_tests_properties(${godwit_mpi_tests} PROPERTIES PASS_REGULAR_EXPRESSION "threads in 3 workers ${said}")
    elseif(godwit_mpi_tests)
      set_tests_properties(${godwit_mpi_tests} PROPERTIES FAIL_REGULAR_EXPRESSION "changed their copy")
    endif()
  endforeach()
endif()

# Mains that have not allocated the same.
if(NOT sanitized AND godwit_mpi_families)
  add_executable(mpi_unequal_mains ${godwit_mpi_tests_dir}/unequal_mains.cpp)
  target_link_libraries(mpi_unequal_mains PRIVATE godwit godwit_build)
  set(said "before the first run main had allocated")
  foreach(how alike names more)
    godwit_add_mpi_test(NAME mpi.unequal_mains.${how} RANKS 3 COMMAND $<TARGET_FILE:mpi_unequal_mains> ${how})
    if(godwit_mpi_tests AND how STREQUAL "more")
      set_tests_properties(${godwit_mpi_tests} PROPERTIES PASS_REGULAR_EXPRESSION "${said} [0-9]+ bytes in rank 0, and [0-9]+ in rank 1")
    elseif(godwit_mpi_tests)
      set_tests_properties(${godwit_mpi_tests} PROPERTIES FAIL_REGULAR_EXPRESSION "${said}")
    endif()
  endforeach()
endif()

# What a rank's main owns, in the workers that it forks.
if(TARGET heap_kept AND NOT sanitized)
  # (At exit an MPI's own functions are called, and the worker says so.)
  godwit_add_mpi_test(NAME mpi.kept RANKS 1 COMMAND $<TARGET_FILE:heap_kept> --gtest_filter=-*AWorkerThatExits)
  if(godwit_mpi_tests)
    set_property(TEST ${godwit_mpi_tests} APPEND PROPERTY ENVIRONMENT GODWIT_SUBSTRATE=mpi)
  endif()
endif()

# Who writes frozen memory, wherever it lies.
if(TARGET global_freeze AND godwit_mpi_families AND NOT sanitized)
  list(GET godwit_mpi_families 0 first)
  foreach(how RANGE 5)
    godwit_add_mpi_test(NAME mpi.frozen.${how} RANKS 2 FAMILIES ${first} COMMAND $<TARGET_FILE:global_freeze>
                        --gtest_also_run_disabled_tests --gtest_filter=FreezeFar.*)
    if(godwit_mpi_tests)
      set_tests_properties(${godwit_mpi_tests} PROPERTIES PASS_REGULAR_EXPRESSION "which is frozen .gw::freeze.")
      set_property(TEST ${godwit_mpi_tests} APPEND PROPERTY ENVIRONMENT FREEZE_WRITE=${how} GODWIT_HOSTS=ranks)
    endif()
  endforeach()
endif()

include(${CMAKE_CURRENT_LIST_DIR}/layout.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/far_suite.cmake)
# Minutes each: in one build only, unless everything is asked for.
if(GODWIT_ALL_MPI_TESTS OR main_build)
  include(${CMAKE_CURRENT_LIST_DIR}/life.cmake)
  include(${CMAKE_CURRENT_LIST_DIR}/api_under_mpi.cmake)
endif()

if(NOT sanitized AND TARGET example_fib AND godwit_mpi_families)
  list(GET godwit_mpi_families 0 first)
  foreach(hosts auto ranks)
    godwit_add_mpi_test(NAME mpi.trace_sample.${hosts} RANKS 4 FAMILIES ${first}
                        COMMAND $<TARGET_FILE:example_fib> 22 --godwit-trace=mpi_sample_${hosts}.trace --godwit-trace-workers=2
                                --godwit-hosts=${hosts})
    if(godwit_mpi_tests)
      set_tests_properties(${godwit_mpi_tests} PROPERTIES PASS_REGULAR_EXPRESSION " events of 2 of 4 workers")
    endif()
  endforeach()
endif()

if(NOT CMAKE_CROSSCOMPILING AND NOT sanitized AND TARGET example_fib)
  foreach(family IN LISTS godwit_mpi_families)
    add_test(NAME mpi.trace.${family} COMMAND ${godwit_mpi_tests_dir}/trace_test.sh $<TARGET_FILE:example_fib> ${family})
    set_tests_properties(mpi.trace.${family} PROPERTIES LABELS mpi TIMEOUT 150 ${godwit_mpi_beside_others} SKIP_RETURN_CODE 77)
  endforeach()
endif()
