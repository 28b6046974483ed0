# The suites of tests/api, tests/global, tests/algorithm and tests/stress once more with workers that are threads of one process: each as
# one whole program. Cases that need processes say so (support/substrate.hpp). Included by CMakeLists.txt after the suites' targets exist.
function(godwit_add_threads_test suite)
  if(NOT TARGET ${suite})
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME" "ENV")
  if(NOT arg_NAME)
    set(arg_NAME threads.${suite})
  endif()
  if(CMAKE_CROSSCOMPILING)  # the emulator keeps a record per page
    list(APPEND arg_ENV GODWIT_STACK_BYTES=4M)
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${CMAKE_COMMAND} -E env ${env} GODWIT_SUBSTRATE=threads ${arg_ENV}
                                    ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${suite}> --gtest_brief=1)
  set(timeout 300)
  if(sanitized OR CMAKE_CROSSCOMPILING)
    set(timeout 900)
  endif()
  set_tests_properties(${arg_NAME} PROPERTIES LABELS threads TIMEOUT ${timeout})
endfunction()

set(suites api_spawn api_invoke api_exposure)
if(NOT CMAKE_CROSSCOMPILING OR GODWIT_ALL_TESTS)  # the emulator is slow, and these have no code of their own for a CPU
  list(APPEND suites api_cancel api_cancel_policy api_race api_death api_future api_reducer api_exception api_migration api_foreign api_fork api_run api_stuck api_policy api_iso api_span api_codec global_access global_allocate global_array global_atomic global_bytes global_checkout global_linearizable global_litmus global_map
       global_move global_begun global_movable global_nested global_map_owning global_map_file global_control global_group global_team global_spawn_at
       global_freeze global_hints global_move_faults global_move_seen global_on_move global_rebalance
       global_span global_vector algorithm_for_each algorithm_partition algorithm_reduce algorithm_scan algorithm_search
       algorithm_shuffle algorithm_sort stress_stress)
endif()
foreach(suite ${suites})
  godwit_add_threads_test(${suite})
endforeach()
# And with a heap for each worker, where results, arguments and exceptions go as bytes (api_codec always does that, on all schedules).
if(NOT GODWIT_ALL_TESTS)
  set(few_schedules STRESS_SHORT=1)
endif()
foreach(suite api_cancel api_cancel_policy api_exception api_future api_invoke api_iso api_policy api_race global_spawn_at)
  if(main_build AND TARGET ${suite})
    add_test(NAME private_heap.${suite}
             COMMAND ${CMAKE_COMMAND} -E env ${env} GODWIT_HEAP=private ${few_schedules} $<TARGET_FILE:${suite}> --gtest_brief=1)
    set_tests_properties(private_heap.${suite} PROPERTIES LABELS heap TIMEOUT 300)
  endif()
endforeach()
if(CMAKE_CROSSCOMPILING)  # these choose their substrate themselves
  foreach(suite ${whole_in_emulator})
    if(NOT TARGET ${suite})
      continue()
    endif()
    add_test(NAME ${suite} COMMAND ${CMAKE_COMMAND} -E env ${env} GODWIT_STACK_BYTES=1M GODWIT_HEAP_BYTES=64M GODWIT_GLOBAL_BYTES=256M
                                   GODWIT_CACHE_BYTES=4M ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${suite}> --gtest_brief=1)
    set_tests_properties(${suite} PROPERTIES LABELS threads TIMEOUT 900)
  endforeach()
endif()
