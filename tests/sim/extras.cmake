# A million spawns deep with a sanitizer: with workers that are processes or threads, not in virtual time.
if(sanitized AND NOT GODWIT_ALL_TESTS)
  set(filter_api_migration --gtest_filter=-depth.*)
endif()
# Suites of tests/api once more in virtual time, each as one whole program. (Others of them are about processes.)
if((main_build OR GODWIT_SANITIZE MATCHES "address") AND NOT CMAKE_CROSSCOMPILING)
  foreach(suite api_spawn api_invoke api_future api_exception api_migration api_codec api_task_group algorithm_ordinary)
    if(TARGET ${suite})
      add_test(NAME sim.${suite} COMMAND ${CMAKE_COMMAND} -E env ${env} GODWIT_SUBSTRATE=sim GODWIT_QUIET=1
                                         $<TARGET_FILE:${suite}> --gtest_brief=1 ${filter_${suite}})
      set_tests_properties(sim.${suite} PROPERTIES LABELS sim TIMEOUT 300)
    endif()
  endforeach()
  # On several simulated hosts, with their companions: these, and suites of global memory.
  set(global_suites global_access global_array global_atomic global_checkout global_held global_hints global_linearizable
                    global_litmus global_movable global_on_move global_rebalance global_team global_vector)
  # With a sanitizer in one way: the others differ in what the simulated companion does, and run without.
  set(ways server assist am rma)
  if(sanitized AND NOT GODWIT_ALL_TESTS)
    set(ways server)
  endif()
  foreach(row "server;2;api_spawn;api_invoke;api_future;api_exception;api_migration;api_codec;api_task_group;${global_suites}"
              "assist;3;api_spawn;api_future;global_access;global_movable" "am;3;api_spawn;api_future;api_migration;api_task_group;global_access;global_movable"
              "rma;2;api_spawn;api_future;api_migration;api_task_group;global_access;global_movable")
    list(POP_FRONT row way hosts)
    foreach(suite ${row})
      if(TARGET ${suite} AND way IN_LIST ways)
        add_test(NAME sim.${way}.${suite}
                 COMMAND ${CMAKE_COMMAND} -E env ${env} GODWIT_SUBSTRATE=sim GODWIT_SIM_HOSTS=${hosts} GODWIT_WAY=${way} GODWIT_QUIET=1
                         $<TARGET_FILE:${suite}> --gtest_brief=1 ${filter_${suite}})
        set_tests_properties(sim.${way}.${suite} PROPERTIES LABELS sim TIMEOUT 300)
      endif()
    endforeach()
  endforeach()
  # Values that own memory, with a heap for each host. (What needs a codec to go to another host ends the process here.)
  foreach(row "server;2" "assist;3" "am;3" "rma;2")
    list(POP_FRONT row way hosts)
    if(TARGET heap_owning AND NOT sanitized)
      add_test(NAME sim.${way}.heap_owning COMMAND $<TARGET_FILE:heap_owning> --gtest_brief=1 --gtest_filter=-Separate.*:*/results:*/sent)
      set_tests_properties(sim.${way}.heap_owning PROPERTIES LABELS sim TIMEOUT 300
                           ENVIRONMENT "${env};GODWIT_SUBSTRATE=sim;GODWIT_SIM_HOSTS=${hosts};GODWIT_WAY=${way};GODWIT_SIM_JITTER_NS=2000;GODWIT_HOSTS=ranks;GODWIT_QUIET=1;STRESS_REPEAT=3")
    endif()
  endforeach()
  # Thieves that do not look before they lock (empty_check=0): one-sided, by a companion, and inside a host.
  foreach(row "rma;GODWIT_SUBSTRATE=sim;GODWIT_SIM_HOSTS=2;GODWIT_WAY=rma"
              "words;GODWIT_SUBSTRATE=sim;GODWIT_SIM_HOSTS=3;GODWIT_WAY=assist;GODWIT_FAR_STEAL=words" "processes;GODWIT_SUBSTRATE=processes;GODWIT_WORKERS=3")
    list(POP_FRONT row where)
    foreach(suite api_spawn api_migration)
      if(TARGET ${suite} AND main_build)
        add_test(NAME no_empty_check.${where}.${suite} COMMAND ${CMAKE_COMMAND} -E env ${env} ${row} GODWIT_EMPTY_CHECK=0 GODWIT_QUIET=1
                                                               $<TARGET_FILE:${suite}> --gtest_brief=1)
        set_tests_properties(no_empty_check.${where}.${suite} PROPERTIES LABELS sim TIMEOUT 300)
      endif()
    endforeach()
  endforeach()
  # The policies that work on several hosts, in each way, and the one that works on one host only. (The cases whose names are left out want a run to fail, which ends the process here.)
  set(policies locked_free:stalling:stalling_locked_free:crude:child_full:child_rtc)
  set(cases "")
  foreach(words fork_join results_larger arguments exceptions futures_with futures_form chains every_worker dropped yielding stays_with given_back deadlocks)
    string(APPEND cases "policy.*${words}*:")
  endforeach()
  foreach(row "sim.server;server;2;${policies}" "sim.assist;assist;3;${policies}" "sim.am;am;3;${policies}" "sim.rma;rma;2;${policies}"
              "sim.iso;server;1;iso")
    list(POP_FRONT row name way hosts of_row)
    set(on_hosts "${env};GODWIT_SUBSTRATE=sim;GODWIT_SIM_HOSTS=${hosts};GODWIT_WAY=${way};GODWIT_QUIET=1")
    if(TARGET api_policy AND way IN_LIST ways)
      add_test(NAME ${name}.api_policy COMMAND $<TARGET_FILE:api_policy> --gtest_brief=1 --gtest_filter=${cases})
      set_tests_properties(${name}.api_policy PROPERTIES LABELS sim TIMEOUT 300
                           ENVIRONMENT "${on_hosts};STRESS_SHORT=1;STRESS_POLICIES=${of_row}")
    endif()
    # The papers' programs, which compute for real: time is measured.
    string(REPLACE ":" "," list ${of_row})
    foreach(program "fib;-n;20" "pfor;-n;256;-k;1" "lcs;-n;2048;-c;128")
      list(POP_FRONT program of)
      if(TARGET bench_${of})
        add_test(NAME ${name}.${of} COMMAND bench_${of} --quick --peers none --policies ${list} --workers 4 --reps 1 ${program})
        set_tests_properties(${name}.${of} PROPERTIES LABELS sim TIMEOUT 60 ENVIRONMENT
                             "${on_hosts};GODWIT_SIM_CLOCK=measured;GODWIT_SIM_MACHINE=wisteria")
      endif()
    endforeach()
  endforeach()
endif()
