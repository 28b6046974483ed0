# The suites of tests/api and tests/stress as whole programs under mpirun: main and with it GoogleTest run in
# all ranks alike, since run is collective, and every case is many runs (support/schedule.hpp: 1 to 8 workers,
# forced steals, delays). Included by extras.cmake after the suites' targets exist.
#
# Left out, because they cannot work in ranks:
# - cases that let threads count in a page which main mapped (support::shared): each rank maps its own;
# - cases that look at standard error of this rank: only rank 0 (or the rank concerned) says something;
# - cases that fork a child that calls run, or that send signals to it (run_child): it is no rank;
# - api_fault, api_debugger: only such cases. tests/mpi/life_test.sh does what they do.
# A rank in which a case fails goes on with other runs than the rest: then the output of the first failure counts.

set(api_mpi_without_api_spawn
    spawn.detached_threads_run_before_the_end spawn.unforced_on_one_worker_goes_child_first
    spawn.yield_lets_others_run)
set(api_mpi_without_api_invoke invoke.all_void_gives_nothing invoke.what_children_wrote_is_seen_after_it)
set(api_mpi_without_api_future
    future.move_assignment_drops_the_old_thread future.dropped_ones_free_their_results
    shared_future.consumers_that_come_before_completion shared_future.dropped_before_completion
    shared_future.of_a_future_is_refused
    shared_future.void_results)
set(api_mpi_without_api_exception
    exception.leftmost_wins_in_invoke exception.only_unseen_ones_are_reported
    exception.destructors_run_once_on_the_way
    exception.thrown_while_other_threads_are_outstanding
    exception.after_a_migration_is_caught_in_the_migrated_frame
    exception.destructors_that_join_during_unwinding_on_one_worker)
set(api_mpi_without_api_cancel
    cancel.a_thread_that_does_not_begin_has_its_closure_destroyed cancel.nothing_outlives_a_scope*
    cancel.what_else_is_thrown_leaves_a_scope_when_all_below_has_ended
    cancel.frames_are_unwound_when_their_threads_have_ended)
set(api_mpi_without_api_lazy lazy.what_lies_in_frames_ends_once lazy.a_request_is_seen_where_a_child_returns_that_was_found)
set(api_mpi_without_api_migration migration.exceptions_thrown_after_it_and_caught_in_a_migrated_frame)
set(api_mpi_without_api_reducer reducer.mistakes_say_what_to_do reducer.continuations_are_stolen_while_threads_are_created)
set(api_mpi_without_api_task_group
    task_group.what_nobody_waited_for_is_reported task_group.a_group_outside_a_run_is_refused
    task_group.under_every_policy)
set(api_mpi_without_api_foreign foreign.a_library_that_was_set_up_in_another_worker)
set(api_mpi_without_heap_owning Separate.*)  # one rank prints for all
set(api_mpi_without_api_run
    run.exception_becomes_status_1_and_a_line run.a_cancelled_root_becomes_a_line_that_says_what_to_do run.output_of_all_workers_is_flushed run.every_worker_has_its_own_id
    run.on_each_worker_from_several_threads_at_once run.on_tick_is_called_and_sees_shared_memory
    run.stats_count_what_happened run.flag_beats_variable_beats_struct run.ignored_interrupts_stay_ignored
    run.a_signal_* run.in_a_child_of_main_forked_meanwhile_is_refused run.ends_where_others_wait_for_its_workers
    run/bad_options.* run/interrupt.*)
set(api_mpi_without_global_array
    GlobalArray.FreesWhatItOwnsAlsoWhenSomethingIsThrown GlobalArray.WhatIsNotFreedIsReportedWithItsPlace
    GlobalArray.AGlobalVariableLeftFullIsHarmless GlobalArray.OutsideARunItSaysSo GlobalArray.OutlivesItsRun
    GlobalArray.StaysItsOwnersWhereASharedFutureRefuses GlobalArray.ResultsThatNobodyTakesAreFreed)
set(api_mpi_without_global_bytes GlobalBytes.OutlivesItsRunAndFreesAll)
set(api_mpi_without_global_map GlobalMap.FreesAllItHad GlobalMap.ASpawnInUpdateIsFoundOut GlobalMap.OutlivesItsRun)
set(api_mpi_without_global_map_owning MapOwning.FreesAllItHad)
set(api_mpi_without_global_control ControlMistakes.* Control.UnderEveryPolicyWithFutures)
set(api_mpi_without_global_group GroupMistakes.* Group.UnderEveryPolicyWithFutures)
set(api_mpi_without_global_team TeamMistakes.*)
set(api_mpi_without_global_begun Begun.AJoinInBetweenIsFoundOut)
set(api_mpi_without_global_freeze FreezeMistakes.*)
set(api_mpi_without_global_objects Objects.MistakesAreTold)
set(api_mpi_without_global_nested Nested.FreesAllItHad Nested.AJoinWhileAnElementIsMadeIsFoundOut)
set(api_mpi_without_global_spawn_at SpawnAt.UnderEveryPolicy)
set(api_mpi_without_global_worker_local
    WorkerLocal.OnThreads WorkerLocal.InASimulation WorkerLocal.BetweenSimulatedHosts
    WorkerLocal.UnderOtherPolicies WorkerLocal.ValuesEndWithTheRunOrWhenToldTo
    WorkerLocal.ProcessesEndTheirsThemselves WorkerLocal.SpareWorkersCountAsWell
    WorkerLocal.ManyAtATimeAndOneAfterTheOther WorkerLocal.WhatAVisitThrowsComesAfterAll
    WorkerLocal.OutsideOfARunThereIsNone)
set(api_mpi_without_global_vector GlobalVector.FreesAllItHad GlobalVector.OutlivesItsRun)
# Every round trip costs a wake-up or two: two workers, three kinds of steals, no delays.
set(api_mpi_short STRESS_SHORT=1)
if(GODWIT_ALL_MPI_TESTS)
  set(api_mpi_short "")
endif()
set(api_hosts_env_global_litmus STRESS_SHORT=1)
set(api_hosts_env_global_move STRESS_SHORT=1)
set(api_mpi_without_stress_stress stress.campaign)  # as long as a clock says, and each rank has its own

# Every level of a deep chain is a migration between hosts: most of the time of its suite, on a busy machine minutes.
# Between ranks of one host always, between hosts in one way with one MPI.
set(api_mpi_long_api_migration depth.a_chain_under_forced_steals depth.deep_thin_trees)

set(api_mpi_long_algorithm_for_each ForEach.ChangesEveryElementOnce ForEach.IndicesAreCalledOnce
    Transform.UnaryBinaryInPlaceAndToOtherTypes Transform.ElementsThatDoNotDivideBlocksAndMembersAsFunctions)
set(api_mpi_long_algorithm_sort Sort.AgreesWithStd StableSort.KeepsTheOrderOfEquals)
set(api_mpi_long_global_map GlobalMap.ReadersAndWritersOfOneBucketTogether GlobalMap.ReserveMovesEverythingAndViewsRemainValid
    GlobalMap.SizeIsNeverNegative)
set(api_mpi_long_global_objects Objects.TakeLittleRoom)

# godwit_add_api_mpi_test(SUITE RANKS HOSTS.WAY [FAMILY...])
function(godwit_add_api_mpi_test suite ranks mode)
  string(REPLACE "." ";" settings ${mode})
  list(GET settings 0 hosts)
  list(GET settings 1 way)
  set(without ${api_mpi_without_${suite}})
  if(NOT GODWIT_ALL_MPI_TESTS AND NOT hosts STREQUAL "auto")
    list(APPEND without ${api_mpi_long_${suite}})
  endif()
  list(JOIN without ":" without)
  godwit_add_mpi_test(NAME mpi.${suite}.${mode} RANKS ${ranks} TIMEOUT 600 FAMILIES ${ARGN}
                      COMMAND $<TARGET_FILE:${suite}> --gtest_brief=1 --gtest_filter=-${without})
  if(godwit_mpi_tests)
    # The seed is part of what the suites keep on the heap before run: it must be as long in all ranks.
    set_property(TEST ${godwit_mpi_tests} APPEND PROPERTY ENVIRONMENT
                 GODWIT_HOSTS=${hosts} GODWIT_WAY=${way} GODWIT_QUIET=1 GODWIT_OUTPUT=all STRESS_SEED=11 STRESS_RUNS=40
                 ${api_mpi_short})
  endif()
endfunction()

# godwit_add_api_setting_test(SUITE SETTING FILTER): a few cases between three hosts with NAME=VALUE in the environment;
# with the first MPI only, since what is set concerns the scheduler. GODWIT_ALL_MPI_TESTS: with the others two hosts.
function(godwit_add_api_setting_test suite setting filter)
  string(REGEX REPLACE "^GODWIT_" "" name ${setting})
  string(TOLOWER "${name}" name)
  list(GET godwit_mpi_families 0 families)
  set(timeout 120)
  if(GODWIT_ALL_MPI_TESTS)
    set(families ${godwit_mpi_families})
    set(timeout 900)
  endif()
  set(ranks 3)
  foreach(family ${families})
    godwit_add_mpi_test(NAME mpi.${suite}.${name} RANKS ${ranks} TIMEOUT ${timeout} FAMILIES ${family}
                        COMMAND $<TARGET_FILE:${suite}> --gtest_brief=1 --gtest_filter=${filter})
    if(godwit_mpi_tests)
      set_property(TEST ${godwit_mpi_tests} APPEND PROPERTY ENVIRONMENT
                   ${setting} GODWIT_HOSTS=ranks GODWIT_QUIET=1 GODWIT_OUTPUT=all STRESS_SEED=11 ${api_mpi_short})
    endif()
    set(ranks 2)
  endforeach()
endfunction()

# godwit_add_api_hosts_test(SUITE FAMILY HOSTS[xRANKS] [FILTER]): between network namespaces, over TCP (scripts/hosts;
# skipped with 77 where those cannot be made). Several ranks of a host have two companions that carry their requests.
function(godwit_add_api_hosts_test suite family hosts)
  list(JOIN api_mpi_without_${suite} ":" without)
  set(filter -${without})
  if(ARGN AND NOT GODWIT_ALL_MPI_TESTS)
    set(filter ${ARGN})
  endif()
  set(name mpi.hosts.${suite}.${family}.${hosts})
  set(ranks 1)
  set(companions "")
  if(hosts MATCHES "^(.*)x(.*)$")
    set(hosts ${CMAKE_MATCH_1})
    set(ranks ${CMAKE_MATCH_2})
    set(companions GODWIT_COMPANIONS=2)
  endif()
  add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/scripts/hosts --hosts ${hosts} --ranks-per-host ${ranks} --mpi ${family}
                                --timeout 590 -- env STRESS_SEED=11 STRESS_RUNS=40 ${api_mpi_short} ${companions}
                                ${api_hosts_env_${suite}}
                                $<TARGET_FILE:${suite}> --gtest_brief=1 --gtest_filter=${filter})
  set_tests_properties(${name} PROPERTIES LABELS "mpi;hosts" TIMEOUT 600 ${godwit_mpi_beside_others} SKIP_RETURN_CODE 77
                       ENVIRONMENT "GODWIT_QUIET=1;GODWIT_OUTPUT=all")
endfunction()

if(godwit_mpi_families AND NOT CMAKE_CROSSCOMPILING AND NOT sanitized)
  set(suites api_cancel api_race api_spawn api_invoke api_future api_reducer api_exception api_migration api_task_group api_foreign api_run stress_stress global_litmus global_move
             global_linearizable global_move_faults global_move_seen global_hints global_rebalance global_on_move
             global_freeze global_spawn_at global_worker_local global_control global_group global_team global_routed global_objects)
  # By default every suite with one MPI, in turn, and those that migrate most with both; the ways besides with one.
  list(GET godwit_mpi_families 0 first)
  list(GET godwit_mpi_families -1 last)
  set(all ${godwit_mpi_families})
  if(GODWIT_ALL_MPI_TESTS)
    set(first ${all})
    set(last ${all})
  endif()
  set(families_api_cancel ${first})
  set(families_api_race ${last})
  set(families_api_spawn ${last})
  set(families_api_invoke ${first})
  set(families_api_reducer ${last})
  set(families_api_exception ${last})
  set(families_api_task_group ${last})
  set(families_api_foreign ${first})
  set(families_global_worker_local ${last})
  set(families_api_run ${last})
  set(families_stress_stress ${first})
  set(families_global_litmus ${last})
  set(families_global_move ${first})
  set(families_global_linearizable ${last})
  set(families_global_control ${first})
  set(families_global_group ${last})
  set(families_global_team ${first})
  set(families_global_move_seen ${first})
  set(families_global_hints ${first})
  set(families_global_freeze ${last})
  set(families_global_routed ${first})
  set(families_global_objects ${last})
  set(families_global_move_faults ${last})
  set(families_global_rebalance ${first})
  set(families_global_on_move ${last})
  set(families_global_spawn_at ${last})
  foreach(suite IN LISTS suites)
    if(NOT TARGET ${suite})
      continue()
    endif()
    godwit_add_api_mpi_test(${suite} 2 ranks.server ${families_${suite}})
    if(GODWIT_ALL_MPI_TESTS OR suite MATCHES
       "api_(cancel|future|migration|reducer|task_group)|global_(litmus|move|move_faults|linearizable|hints|rebalance|spawn_at|control|group)$")
      # Three ranks of MPICH on two CPUs need ten times as long as of Open MPI, waiting for each other.
      godwit_add_api_mpi_test(${suite} 3 ranks.am ${first})
      godwit_add_api_mpi_test(${suite} 2 auto.server ${first})
      godwit_add_api_mpi_test(${suite} 2 ranks.rma ${last})
    endif()
    if(GODWIT_ALL_MPI_TESTS)
      godwit_add_api_mpi_test(${suite} 3 auto.server)
      godwit_add_api_mpi_test(${suite} 3 ranks.server)
      godwit_add_api_mpi_test(${suite} 2 ranks.am)
      godwit_add_api_mpi_test(${suite} 2 ranks.assist)
    endif()
    set(hosts_api_migration openmpi)
    set(hosts_api_exception mpich)
    set(hosts_api_future openmpi mpich)
    set(hosts_global_litmus openmpi)
    set(hosts_global_move openmpi)
    if(GODWIT_ALL_MPI_TESTS)
      set(hosts_${suite} openmpi mpich)
    endif()
    foreach(family ${hosts_${suite}})
      if(family IN_LIST godwit_mpi_families)
        godwit_add_api_hosts_test(${suite} ${family} 2)
      endif()
    endforeach()
  endforeach()
  if(TARGET heap_owning)  # ranks of one host share their heap; each of several hosts has one
    godwit_add_api_mpi_test(heap_owning 2 auto.server ${all})
    add_executable(mpi_heap_hosts ${godwit_mpi_tests_dir}/heap_hosts.cpp)
    target_link_libraries(mpi_heap_hosts PRIVATE test_support GTest::gtest_main)
    foreach(family IN LISTS godwit_mpi_families)
      godwit_add_api_hosts_test(mpi_heap_hosts ${family} 2)
    endforeach()
    foreach(way server am rma)
      godwit_add_api_mpi_test(mpi_heap_hosts 2 ranks.${way} ${first})
      if(way STREQUAL "server" OR GODWIT_ALL_MPI_TESTS)
        godwit_add_api_mpi_test(heap_owning 3 ranks.${way} ${first})
      endif()
    endforeach()
  endif()
  if(NOT GODWIT_ALL_MPI_TESTS)
    godwit_add_api_setting_test(api_migration GODWIT_WAY=server depth.deep_thin_trees)
  endif()
  # Global memory of other hosts: containers and algorithms, in short.
  foreach(suite global_access global_atomic global_checkout global_begun global_movable global_nested global_map_file global_array global_vector global_bytes global_map global_map_owning
                algorithm_for_each algorithm_reduce algorithm_scan algorithm_search algorithm_partition algorithm_shuffle algorithm_sort)
    if(TARGET ${suite} AND (GODWIT_ALL_MPI_TESTS OR NOT suite MATCHES "reduce|scan|search|partition|shuffle|bytes|sort"))
      godwit_add_api_mpi_test(${suite} 2 ranks.server ${first})
      if(godwit_mpi_tests)
        set_property(TEST ${godwit_mpi_tests} APPEND PROPERTY ENVIRONMENT STRESS_SHORT=1)
      endif()
      if(suite STREQUAL "global_begun")  # answers that nobody waits for, in every way
        godwit_add_api_mpi_test(${suite} 3 ranks.am ${first})
        godwit_add_api_mpi_test(${suite} 2 ranks.rma ${last})
      endif()
    endif()
  endforeach()
  # The same while all memory moves all the time.
  foreach(suite global_litmus global_checkout global_atomic global_access global_array global_vector global_bytes global_map algorithm_for_each
                algorithm_reduce algorithm_scan algorithm_search algorithm_partition algorithm_shuffle algorithm_sort)
    if(TARGET ${suite} AND (GODWIT_ALL_MPI_TESTS OR suite MATCHES "litmus|checkout|atomic|sort"))
      set(without ${api_mpi_without_${suite}})
      if(NOT GODWIT_ALL_MPI_TESTS)
        list(APPEND without ${api_mpi_long_${suite}})
      endif()
      list(JOIN without ":" without)
      godwit_add_api_setting_test(${suite} GODWIT_FORCE_MOVE=random -${without})
    endif()
  endforeach()
  # Small accesses by datagram, of which some are lost, doubled and late; in datagrams the counts need three ranks.
  if(TARGET global_routed)
    godwit_add_api_setting_test(global_routed GODWIT_WAY=server *)
    if(NOT GODWIT_ALL_MPI_TESTS AND "openmpi" IN_LIST godwit_mpi_families)
      godwit_add_api_hosts_test(global_routed openmpi 2)
    endif()
  endif()
  foreach(suite global_litmus global_move global_linearizable global_atomic)
    if(TARGET ${suite})
      list(JOIN api_mpi_without_${suite} ":" without)
      godwit_add_api_setting_test(${suite} GODWIT_DIRECTORY=relay -${without})
      if(godwit_mpi_tests)
        set_property(TEST ${godwit_mpi_tests} APPEND PROPERTY ENVIRONMENT GODWIT_SWITCH_FAULTS=5)
      endif()
    endif()
  endforeach()
  # Spawns that are found on the stack, and frames with all that frames can hold: between ranks, and between hosts.
  if(TARGET api_lazy)
    godwit_add_api_mpi_test(api_lazy 2 auto.server ${all})
    foreach(way server am rma)
      godwit_add_api_mpi_test(api_lazy 2 ranks.${way} ${first})
    endforeach()
    if("openmpi" IN_LIST godwit_mpi_families)
      godwit_add_api_hosts_test(api_lazy openmpi 2)
    endif()
  endif()
  # All policies between two ranks of one host, and those that work on several hosts between such.
  if(TARGET api_policy)
    string(CONCAT policies policy.fork_join:policy.results_larger_than_a_record:policy.coded_results_and_arguments:
                           policy.exceptions_come_out_of_join:policy.futures_with_many_consumers:
                           policy.futures_form_a_wavefront:policy.deep_chains)
    godwit_add_mpi_test(NAME mpi.api_policy RANKS 2 TIMEOUT 120
                        COMMAND $<TARGET_FILE:api_policy> --gtest_brief=1 --gtest_filter=${policies})
    if(godwit_mpi_tests)
      set_property(TEST ${godwit_mpi_tests} APPEND PROPERTY ENVIRONMENT
                   GODWIT_HOSTS=auto GODWIT_QUIET=1 GODWIT_OUTPUT=all STRESS_SEED=11 STRESS_SHORT=1)
    endif()
    foreach(way server assist am rma)
      godwit_add_mpi_test(NAME mpi.api_policy.ranks.${way} RANKS 2 TIMEOUT 120 FAMILIES ${first}
                          COMMAND $<TARGET_FILE:api_policy> --gtest_brief=1 --gtest_filter=${policies}:*given_back*)
      if(godwit_mpi_tests)
        set_property(TEST ${godwit_mpi_tests} APPEND PROPERTY ENVIRONMENT
                     GODWIT_HOSTS=ranks GODWIT_WAY=${way} GODWIT_QUIET=1 GODWIT_OUTPUT=all STRESS_SEED=11 STRESS_SHORT=1
                     STRESS_POLICIES=locked_free:stalling:stalling_locked_free:crude:lazy:child_full:child_rtc)
      endif()
    endforeach()
  endif()
  # Threads that wait with frames of their ancestors, and are fetched by who completes their record.
  if(TARGET api_by_reference)
    godwit_add_mpi_test(NAME mpi.api_by_reference RANKS 2 TIMEOUT 60 FAMILIES ${first}
                        COMMAND $<TARGET_FILE:api_by_reference> --gtest_brief=1
                                --gtest_filter=by_reference.frames_go_with_who_waits)
    if(godwit_mpi_tests)
      set_property(TEST ${godwit_mpi_tests} APPEND PROPERTY ENVIRONMENT
                   GODWIT_HOSTS=ranks GODWIT_QUIET=1 GODWIT_OUTPUT=all STRESS_SEED=11)
    endif()
  endif()
  # The other rank's first request, which comes while worker 0 starts, is carried out, and not only when that waits.
  if(GODWIT_BUILD_BENCH AND main_build)
    godwit_add_mpi_test(NAME mpi.far_steal.ranks.am RANKS 2 TIMEOUT 120
                        COMMAND $<TARGET_FILE:bench_far_steal> --rounds 30 --reps 1 --bytes 664)
    if(godwit_mpi_tests)
      set_property(TEST ${godwit_mpi_tests} APPEND PROPERTY ENVIRONMENT GODWIT_HOSTS=ranks GODWIT_WAY=am GODWIT_QUIET=1)
    endif()
  endif()
  foreach(setting GODWIT_VICTIMS=uniform GODWIT_EMPTY_CHECK=0 GODWIT_FAR_STEAL=words)
    godwit_add_api_setting_test(api_migration ${setting}
                                migration.happens_at_all:migration.large_frames:migration.rounding_mode_*)
    godwit_add_api_setting_test(api_future ${setting}
                                future.travels_*:shared_future.every_*:shared_future.travels_*:shared_future.wavefront)
  endforeach()
  if("openmpi" IN_LIST godwit_mpi_families)
    godwit_add_api_hosts_test(api_future openmpi 3 future.travels_*:shared_future.every_*:shared_future.wavefront)
    godwit_add_api_hosts_test(api_future openmpi 2x3 future.travels_*:shared_future.every_*:shared_future.wavefront)
    if(TARGET global_linearizable)
      godwit_add_api_hosts_test(global_linearizable openmpi 2x3)
    endif()
    if(GODWIT_ALL_MPI_TESTS)
      godwit_add_api_hosts_test(api_invoke openmpi 4)
    endif()
    # The rig itself. Its plain MPI programs can stay in MPICH 4.0's MPI_Finalize (docs/cluster.md): by hand only.
    if(TARGET global_routed)
      add_test(NAME mpi.hosts.switch.openmpi COMMAND ${PROJECT_SOURCE_DIR}/tests/mpi/switch_test.sh $<TARGET_FILE:global_routed>)
      set_tests_properties(mpi.hosts.switch.openmpi PROPERTIES LABELS "mpi;hosts" TIMEOUT 600 ${godwit_mpi_beside_others}
                           SKIP_RETURN_CODE 77)
    endif()
    if(main_build AND TARGET example_fib)  # what the simulator says of a real run's start and end
      add_executable(mpi_collectives_expected ${PROJECT_SOURCE_DIR}/tests/mpi/collectives_expected.cpp)
      target_link_libraries(mpi_collectives_expected PRIVATE godwit_build)
      target_include_directories(mpi_collectives_expected PRIVATE ${PROJECT_SOURCE_DIR}/src)
      add_test(NAME mpi.hosts.collectives.openmpi COMMAND ${PROJECT_SOURCE_DIR}/tests/mpi/collectives_test.sh
                                                          $<TARGET_FILE:mpi_collectives_expected> $<TARGET_FILE:example_fib> 5)
      set_tests_properties(mpi.hosts.collectives.openmpi PROPERTIES LABELS "mpi;hosts" TIMEOUT 600 ${godwit_mpi_beside_others}
                           SKIP_RETURN_CODE 77)
    endif()
    add_test(NAME mpi.hosts.rig.openmpi COMMAND ${PROJECT_SOURCE_DIR}/tests/mpi/hosts_test.sh openmpi)
    set_tests_properties(mpi.hosts.rig.openmpi PROPERTIES LABELS "mpi;hosts" TIMEOUT 600 ${godwit_mpi_beside_others} SKIP_RETURN_CODE 77)
  endif()
endif()
