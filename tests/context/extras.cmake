# The context switch's variants without assembly (src/context/portable.cpp): the tests of this folder linked with each; with
# GODWIT_ALL_TESTS also those of the API that migrate threads, on both substrates. Included by ../CMakeLists.txt.
set(here ${CMAKE_CURRENT_LIST_DIR})

# godwit_variant_test(VARIANT LAYER NAME SUBSTRATE...): the executable LAYER_NAME_VARIANT.
function(godwit_variant_test variant layer name)
  set(target ${layer}_${name}_${variant})
  add_executable(${target} ${CMAKE_CURRENT_SOURCE_DIR}/${layer}/${name}_test.cpp)
  target_link_libraries(${target} PRIVATE godwit_${variant} godwit_build GTest::gtest_main)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE GODWIT_TEST_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(env)
    set_target_properties(${target} PROPERTIES CROSSCOMPILING_EMULATOR "env;${env};${CMAKE_CROSSCOMPILING_EMULATOR}")
  endif()
  foreach(substrate IN LISTS ARGN)
    gtest_discover_tests(${target} TEST_PREFIX "${target}.${substrate}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES TIMEOUT 360 LABELS context ENVIRONMENT GODWIT_SUBSTRATE=${substrate})
  endforeach()
endfunction()

# What AddressSanitizer puts around longjmp and setcontext takes all stacks for the OS thread's.
if(GODWIT_CONTEXT STREQUAL "asm" AND NOT sanitized)
  foreach(variant ucontext setjmp)
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
