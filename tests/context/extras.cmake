# The context switch's variants (without assembly: src/context/portable.cpp; with SPARC's trap): the tests of this folder linked with each; with
# GODWIT_ALL_TESTS also those of the API that migrate threads, on both substrates. Included by ../CMakeLists.txt.
set(here ${CMAKE_CURRENT_LIST_DIR})

# Cases left out: threads: what needs more than a thread's stack, or thread_local data that belongs to the worker; ucontext: a frame of
# 1 KiB and more for each of a million nested spawns does not fit into the stack region.
set(variant_filter_threads "-depth.*:migration.errno_and_thread_local_after_a_migration:migration.very_large_frames")
set(variant_filter_processes_ucontext "-depth.a_chain_of_a_million_spawns")

# godwit_variant_test(VARIANT LAYER NAME SUBSTRATE...): the executable LAYER_NAME_VARIANT.
function(godwit_variant_test variant layer name)
  set(target ${layer}_${name}_${variant})
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${layer}/${name}_test.cpp)
  file(STRINGS ${source} marks LIMIT_COUNT 1 REGEX "^// test: .*skip-qemu")
  if(marks AND CMAKE_CROSSCOMPILING)
    return()
  endif()
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE godwit_${variant} godwit_build GTest::gtest_main)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  if(env)
    set_target_properties(${target} PROPERTIES CROSSCOMPILING_EMULATOR "env;${env};${CMAKE_CROSSCOMPILING_EMULATOR}")
  endif()
  foreach(substrate IN LISTS ARGN)
    gtest_discover_tests(${target} TEST_PREFIX "${target}.${substrate}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         TEST_FILTER "${variant_filter_${substrate}}${variant_filter_${substrate}_${variant}}"
                         PROPERTIES TIMEOUT 360 LABELS context ENVIRONMENT GODWIT_SUBSTRATE=${substrate})
  endforeach()
endfunction()

# What AddressSanitizer puts around longjmp and setcontext takes all stacks for the OS thread's.
if(GODWIT_CONTEXT STREQUAL "asm" AND NOT GODWIT_SANITIZE MATCHES "thread")
  set(variants ucontext setjmp)
  if(NOT main_build AND NOT GODWIT_ALL_TESTS)
    set(variants "")  # in the build of all tests; slow in an emulator
  endif()
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "sparc64")
    # Emulators of user mode know that trap in 64-bit programs since version 8 or 9: older ones end the program.
    set(version "")
    if(CMAKE_CROSSCOMPILING)
      list(GET CMAKE_CROSSCOMPILING_EMULATOR 0 emulator)
      execute_process(COMMAND ${emulator} --version OUTPUT_VARIABLE version ERROR_QUIET)
    endif()
    if(NOT version MATCHES "version ([0-9]+)" OR CMAKE_MATCH_1 GREATER 8)
      list(APPEND variants trap)
    else()
      message(STATUS "tests of the trap variant: left out, ${emulator} is of version ${CMAKE_MATCH_1} and does not know the trap; 9 does")
    endif()
  endif()
  foreach(variant ${variants})
    godwit_context_library(${variant})
    foreach(name switch fork)
      godwit_variant_test(${variant} context ${name} processes)
    endforeach()
    if(GODWIT_ALL_TESTS)
      foreach(name spawn future invoke exception migration)
        godwit_variant_test(${variant} api ${name} threads processes)
      endforeach()
    endif()
  endforeach()
endif()

# A program compiled for one variant and the library of another do not link: the entry of fork_call has the variant in its name.
if(TARGET godwit_setjmp AND main_build)
  foreach(pair "setjmp godwit" "ucontext godwit_setjmp")
    separate_arguments(pair)
    list(GET pair 0 program)
    list(GET pair 1 library)
    add_test(NAME context.variants_do_not_mix.${program}
             COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -pthread -I${PROJECT_SOURCE_DIR}/include
                     -DGODWIT_CONTEXT_$<UPPER_CASE:${program}> ${here}/variants/mixed.cpp $<TARGET_FILE:${library}>
                     -o ${CMAKE_CURRENT_BINARY_DIR}/mixed_${program})
    set_tests_properties(context.variants_do_not_mix.${program} PROPERTIES LABELS context TIMEOUT 120
                         PASS_REGULAR_EXPRESSION "undefined reference to .godwit_ctx_fork_${program}")
  endforeach()
  add_test(NAME context.variants_do_not_mix.asm
           COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -pthread -I${PROJECT_SOURCE_DIR}/include ${here}/variants/mixed.cpp
                   $<TARGET_FILE:godwit_setjmp> -o ${CMAKE_CURRENT_BINARY_DIR}/mixed_asm)
  set_tests_properties(context.variants_do_not_mix.asm PROPERTIES LABELS context TIMEOUT 120
                       PASS_REGULAR_EXPRESSION "undefined reference to .godwit_ctx_fork_on_stack")
endif()

# Ranks are several images of the program: ucontext can go between them, setjmp says that it cannot.
if(TARGET godwit_setjmp AND main_build)
  include(${CMAKE_CURRENT_SOURCE_DIR}/mpi/extras.cmake)
  set(expected_ucontext "fib\\(20\\) = 6765")
  set(expected_setjmp "built with GODWIT_CONTEXT=setjmp, and what that saves can be resumed only in processes forked")
  foreach(variant ucontext setjmp)
    add_executable(context_ranks_${variant} ${here}/variants/ranks.cpp)
    target_link_libraries(context_ranks_${variant} PRIVATE godwit_${variant} godwit_build)
    foreach(family IN LISTS godwit_mpi_families)
      add_dependencies(context_ranks_${variant} godwit-mpi-${family})
    endforeach()
    godwit_add_mpi_test(NAME context.ranks_${variant} RANKS 2 COMMAND $<TARGET_FILE:context_ranks_${variant}>)
    if(godwit_mpi_tests)
      set_tests_properties(${godwit_mpi_tests} PROPERTIES PASS_REGULAR_EXPRESSION "${expected_${variant}}")
    endif()
  endforeach()
endif()

# The corpus of single_step_test.cpp, compiled in several ways.
if(TARGET context_single_step)
  foreach(way "o0 -O0" "o2 -O2" "o3_frame_pointers -O3 -fno-omit-frame-pointer" "os -Os")
    separate_arguments(way)
    list(POP_FRONT way name)
    add_library(context_corpus_${name} OBJECT ${here}/corpus/corpus.cpp)
    target_compile_features(context_corpus_${name} PRIVATE cxx_std_20)
    target_compile_definitions(context_corpus_${name} PRIVATE CORPUS=corpus_${name})
    target_compile_options(context_corpus_${name} PRIVATE ${way})
    target_link_libraries(context_single_step PRIVATE context_corpus_${name})
  endforeach()
endif()
